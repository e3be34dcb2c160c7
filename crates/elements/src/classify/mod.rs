//! Rule sets: the languages of `Classifier`, `IPClassifier` and `IPFilter`, and their compiler, and the elements that
//! use them.

mod classifier;
mod diagram;
mod expression;
mod filter;
mod headers;
mod index;
mod ipclassifier;
mod ipfilter;
mod lanes;
mod listing;
mod map;
mod names;
mod pattern;
mod program;
mod rows;
mod slots;
mod spans;
mod split;
mod terms;

use element::Class;

pub use classifier::Classifier;
pub use expression::{Expression, Relation, Rule, Test, first_match};
pub use filter::{Problem, ProblemKind, classifier_rules, filter_rules};
pub use headers::{Base, Headers};
pub use ipclassifier::IPClassifier;
pub use ipfilter::IPFilter;
pub use lanes::{DROP, Decision, Lanes};
pub use listing::listing;
pub use names::{BuiltInNames, NameKind, Names, built_in};
pub use pattern::{PatternProblem, PatternProblemKind, pattern_rules};
pub use program::{Layout, Program, Strategy, Summary, Unreachable};

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] =
    &[Class::of::<Classifier>(), Class::of::<IPClassifier>(), Class::of::<IPFilter>()];
