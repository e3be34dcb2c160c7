//! Classifiers and filters.

mod classifier;
mod ipclassifier;
mod ipfilter;
mod names;
mod rule_set;
mod split;
mod update;

pub use classifier::Classifier;
pub use ipclassifier::IPClassifier;
pub use ipfilter::IPFilter;

element::classes![Classifier, IPClassifier, IPFilter,];
