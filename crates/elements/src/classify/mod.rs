//! Elements that send packets where a rule set says.

mod classifier;
mod ipclassifier;
mod ipfilter;
mod names;
mod split;

use element::Class;

pub use classifier::Classifier;
pub use ipclassifier::IPClassifier;
pub use ipfilter::IPFilter;
pub use names::AssignedNames;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] =
    &[Class::of::<Classifier>(), Class::of::<IPClassifier>(), Class::of::<IPFilter>()];
