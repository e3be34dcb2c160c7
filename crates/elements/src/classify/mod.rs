//! Rule sets: the languages of `Classifier`, `IPClassifier` and `IPFilter`, and their compiler.

mod expression;
mod filter;
mod headers;
mod index;
mod map;
mod names;
mod near;
mod program;
mod rows;
mod slots;
mod spans;
mod terms;

pub use expression::{Expression, Relation, Rule, Test, first_match};
pub use filter::{Problem, ProblemKind, classifier_rules, filter_rules};
pub use headers::{Base, Headers};
pub use names::{BuiltInNames, NameKind, Names, built_in};
pub use program::{Layout, Program, Strategy, Summary, Unreachable};
