//! Names and hints for other elements.

use element::Class;

mod addressinfo;
mod alignmentinfo;
mod annotationinfo;
mod clickyinfo;
mod ipfieldinfo;
mod ipnameinfo;
mod portinfo;
mod problems;
mod randomseed;
mod scheduleinfo;

pub use addressinfo::AddressInfo;
pub use alignmentinfo::AlignmentInfo;
pub use annotationinfo::AnnotationInfo;
pub use clickyinfo::ClickyInfo;
pub use ipfieldinfo::IPFieldInfo;
pub use ipnameinfo::IPNameInfo;
pub use portinfo::PortInfo;
pub use randomseed::RandomSeed;
pub use scheduleinfo::ScheduleInfo;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<AddressInfo>(),
    Class::of::<PortInfo>(),
    Class::of::<AnnotationInfo>(),
    Class::of::<ScheduleInfo>(),
    Class::of::<AlignmentInfo>(),
    Class::of::<IPNameInfo>(),
    Class::of::<IPFieldInfo>(),
    Class::of::<RandomSeed>(),
    Class::of::<ClickyInfo>(),
];
