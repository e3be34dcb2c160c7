//! Rule sets: the languages of `Classifier`, `IPClassifier` and `IPFilter`, and their compiler.
//!
//! [`pattern_rules`], [`classifier_rules`] and [`filter_rules`] parse text into [`Rule`]s, and [`Program::new`]
//! compiles the rules. [`Program::decide`] then finds the output of each packet of a batch. [`Program::text`] shows
//! the program.
//!
//! Invariants, each held by a test:
//! - a compiled program gives the same result as [`first_match`], which evaluates the rules one by one, whatever form it
//!   has: tables that combine classes of field values, or rows of bits, which are slower and need less memory;
//! - no rule text and no packet makes this crate panic;
//! - `decide` does not allocate, except to grow [`Columns`] at its first use.
//!
//! Absent: elements, and the names that a configuration defines; the caller resolves those through [`Names`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod columns;
mod compile;
mod cover;
mod diagram;
mod expression;
mod filter;
mod flat;
mod headers;
mod index;
mod map;
mod merge;
mod names;
mod pace;
mod pattern;
mod program;
mod row_store;
mod rows;
mod slots;
mod spans;
mod tables;
mod terms;
mod text;
mod words;

pub use columns::{Columns, Decision};
pub use compile::{RULE_MEMORY, Steps, free_in_steps};
pub use cover::Unreachable;
pub use expression::{DROP, Expression, Relation, Rule, Test, first_match};
pub use filter::{
    RuleDiagnostic, RuleDiagnosticKind, classifier_rule, classifier_rules, filter_rule, filter_rules,
};
pub use headers::{Base, Headers};
pub use names::{NameKind, Names, NoNames};
pub use pattern::{PatternError, PatternErrorKind, pattern_rule, pattern_rules};
pub use program::{Layout, Program, Strategy, Summary};
