//! Shows a compiled rule set as text, for the `program` handlers.
//!
//! A small set is a list of numbered steps, one per line:
//!
//! ```text
//!  0 network+8 & 00ff0000 = 00060000 -> 2
//!  1 -> drop
//!  2 transport+0 & 0000ffff in 00000050..0000005a -> output 1
//!  3 -> output 0
//! ```
//!
//! A step reads the 32-bit word at an offset from a header, masks it, and compares it with a value or a range, all in
//! hexadecimal. A range whose end is below its start wraps around. If the comparison holds, the arrow gives the next
//! step, the output or the drop; otherwise the next line follows.
//!
//! A large set looks up each field once and intersects the results:
//!
//! ```text
//! look up network+12, 4 bytes: 58 classes
//! look up transport+2, 2 bytes: 31 classes
//! intersect 100 terms of 100 rules: 0 compared with their rule
//! otherwise -> output 0
//! ```
//!
//! A class is a set of values that no term distinguishes. A term that the fields do not decide is compared with its
//! rule's expression.

use alloc::string::String;
use core::fmt::{self, Write};

use crate::diagram::{Diagram, END, Step};
use crate::expression::DROP;
use crate::headers::Base;
use crate::program::Program;
use crate::slots::NONE;

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Base::Link => "link",
            Base::Network => "network",
            Base::Transport => "transport",
        })
    }
}

/// The action for packets, shown as `output 3` or `drop`.
struct Outcome(u32);

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            DROP => f.write_str("drop"),
            output => write!(f, "output {output}"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comparison = &self.comparison;
        if !comparison.is_always() {
            let high = comparison.low.wrapping_add(comparison.span);
            write!(f, "{}+{} & {:08x} ", comparison.base, comparison.offset, comparison.mask)?;
            match comparison.span {
                0 => write!(f, "= {high:08x} ")?,
                _ => write!(f, "in {:08x}..{high:08x} ", comparison.low)?,
            }
        }
        match self.target {
            DROP => f.write_str("-> drop"),
            target if target >= END => write!(f, "-> {}", Outcome(target & !END)),
            step => write!(f, "-> {step}"),
        }
    }
}

impl fmt::Display for Diagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().enumerate().try_for_each(|(number, step)| writeln!(f, "{number:2} {step}"))
    }
}

impl Program {
    /// The program as text, in the format that the module describes.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = match &self.diagram {
            Some(diagram) => write!(text, "{diagram}"),
            None => self.write_lookups(&mut text),
        };
        text
    }

    fn write_lookups(&self, text: &mut String) -> fmt::Result {
        let terms = self.slot_rules.iter().filter(|rule| **rule != NONE).count();
        let otherwise = Outcome(self.output_of(self.fallback));
        if terms == 0 {
            return writeln!(text, "all -> {otherwise}");
        }
        for index in &self.indexes {
            let field = &index.field;
            let (bytes, classes) = (field.width, index.rows.len());
            writeln!(text, "look up {}+{}, {bytes} bytes: {classes} classes", field.base, field.offset)?;
        }
        let compared: u32 = self.checked.iter().map(|word| word.count_ones()).sum();
        let rules = self.rules().len();
        writeln!(text, "intersect {terms} terms of {rules} rules: {compared} compared with their rule")?;
        writeln!(text, "otherwise -> {otherwise}")
    }
}
