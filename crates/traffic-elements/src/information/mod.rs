//! Names and hints for other elements.

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

element::classes![
    AddressInfo,
    PortInfo,
    AnnotationInfo,
    ScheduleInfo,
    AlignmentInfo,
    IPNameInfo,
    IPFieldInfo,
    RandomSeed,
    ClickyInfo,
];
