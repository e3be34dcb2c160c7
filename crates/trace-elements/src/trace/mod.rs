//! Traces: elements that read and write packets as captures (pcap, pcapng) and as summaries, which are lines of text.
//!
//! The capture formats are in the `capture` crate. Files come from the environment, which also decompresses them.

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

element::classes![FromDump, ToDump, FromIPSummaryDump, ToIPSummaryDump,];
