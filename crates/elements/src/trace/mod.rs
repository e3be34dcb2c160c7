//! Traces: elements that read and write packets as captures (pcap, pcapng) and as summaries, which are lines of text.
//!
//! The capture formats are the `capture` crate's. Files come from the environment, which also decompresses them.

use element::Class;

mod fromdump;
mod fromipsummarydump;
pub(crate) mod link;
mod multipacket;
mod playback;
pub mod summary;
mod todump;
mod toipsummarydump;
mod trace_file;

pub use fromdump::FromDump;
pub use fromipsummarydump::FromIPSummaryDump;
pub use todump::ToDump;
pub use toipsummarydump::ToIPSummaryDump;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<FromDump>(),
    Class::of::<ToDump>(),
    Class::of::<FromIPSummaryDump>(),
    Class::of::<ToIPSummaryDump>(),
];
