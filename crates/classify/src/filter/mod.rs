//! The rule language of `IPFilter` and `IPClassifier`.

mod condition;
mod operand;
mod parse;
mod primitive;
mod problem;
mod rules;
mod vocabulary;
mod words;

pub use problem::{Problem, ProblemKind};
pub use rules::{classifier_rules, filter_rules};
