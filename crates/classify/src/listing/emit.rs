//! Rules to steps, in the order in which they are written.

use alloc::vec::Vec;

use super::step::{Step, Target};
use crate::expression::{Expression, Relation, Rule, Test};
use crate::headers::Base;
use crate::program::Layout;

/// The steps of one rule, which leave it for its output or for `Next`.
pub(super) fn emit(rule: &Rule, layout: Layout) -> Vec<Step> {
    let mut emitter = Emitter { layout, steps: Vec::new(), labels: Vec::new() };
    let output = rule.output.map_or(Target::Drop, Target::Output);
    emitter.expression(&rule.condition, Place::End(output), Place::End(Target::Next));
    emitter.finish()
}

/// A target that may not be known yet.
#[derive(Clone, Copy)]
enum Place {
    End(Target),
    Label(usize),
}

struct Emitter {
    layout: Layout,
    steps: Vec<(Step, [Place; 2])>,
    /// The step at each label.
    labels: Vec<usize>,
}

impl Emitter {
    fn finish(self) -> Vec<Step> {
        let resolve = |place: &Place| match place {
            Place::End(target) => *target,
            Place::Label(label) => Target::Step(self.labels[*label]),
        };
        let steps = self.steps.iter();
        steps
            .map(|(step, places)| Step { targets: [resolve(&places[0]), resolve(&places[1])], ..*step })
            .collect()
    }

    /// A label to be placed later.
    fn label(&mut self) -> usize {
        self.labels.push(0);
        self.labels.len() - 1
    }

    fn place(&mut self, label: usize) {
        self.labels[label] = self.steps.len();
    }

    fn push(&mut self, step: Step, no: Place, yes: Place) {
        self.steps.push((step, [no, yes]));
    }

    fn expression(&mut self, expression: &Expression, yes: Place, no: Place) {
        match expression {
            Expression::Constant(value) => self.constant(*value, yes, no),
            Expression::Test(test) => self.test(test, yes, no),
            Expression::Not(inner) => self.expression(inner, no, yes),
            Expression::All(parts) => self.sequence(parts, yes, no, true),
            Expression::Any(parts) => self.sequence(parts, yes, no, false),
            Expression::Choose(parts) => {
                let [condition, then, otherwise] = &**parts;
                let (first, second) = (self.label(), self.label());
                self.expression(condition, Place::Label(first), Place::Label(second));
                self.place(first);
                self.expression(then, yes, no);
                self.place(second);
                self.expression(otherwise, yes, no);
            }
        }
    }

    fn sequence(&mut self, parts: &[Expression], yes: Place, no: Place, all: bool) {
        let Some((last, before)) = parts.split_last() else { return self.constant(all, yes, no) };
        for part in before {
            let next = self.label();
            match all {
                true => self.expression(part, Place::Label(next), no),
                false => self.expression(part, yes, Place::Label(next)),
            }
            self.place(next);
        }
        self.expression(last, yes, no);
    }

    fn constant(&mut self, value: bool, yes: Place, no: Place) {
        let (yes, no) = if value { (yes, no) } else { (no, yes) };
        self.push(Step::always(Target::Next), no, yes);
    }

    fn test(&mut self, test: &Test, yes: Place, no: Place) {
        let (yes, no) = if test.negated { (no, yes) } else { (yes, no) };
        let offset = u32::from(test.offset)
            + match (self.layout, test.base) {
                (Layout::Bytes, _) => 0,
                // Words of the link header lie so that the network header, 14 bytes on, starts one.
                (Layout::Ip, Base::Link) => 2,
                (Layout::Ip, Base::Network) => 256,
                (Layout::Ip, Base::Transport) => 512,
            };
        let (whole, within) = (offset & !3, offset % 4 * 8);
        let step = |mask: u32, value: u32, short: bool| Step {
            offset: whole,
            mask: (mask << test.shift) >> within,
            value: (value << test.shift) >> within,
            short,
            ..Step::always(Target::Next)
        };
        match test.relation {
            Relation::Equal => self.push(step(test.mask, test.value, test.negated), no, yes),
            Relation::Greater => {
                let steps: Vec<(u32, bool)> = test.steps().collect();
                for (index, (mask, ones)) in steps.iter().enumerate() {
                    let next = match index + 1 == steps.len() {
                        true if *ones => yes,
                        true => no,
                        false => Place::Label(self.label()),
                    };
                    // All ones means: equal, go on. All zeros: equal, go on; else greater.
                    let (value, otherwise) = if *ones { (*mask, no) } else { (0, yes) };
                    self.push(step(*mask, value, test.negated == *ones), otherwise, next);
                    if let Place::Label(label) = next
                        && index + 1 < steps.len()
                    {
                        self.place(label);
                    }
                }
                if steps.is_empty() {
                    self.constant(false, yes, no);
                }
            }
        }
    }
}
