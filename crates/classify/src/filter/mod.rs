//! The rule language of `IPFilter` and `IPClassifier`.

mod condition;
mod diagnostic;
mod operand;
mod parse;
mod primitive;
mod rules;
mod vocabulary;
mod words;

pub use diagnostic::{RuleDiagnostic, RuleDiagnosticKind};
pub use rules::{classifier_rule, classifier_rules, filter_rule, filter_rules};
