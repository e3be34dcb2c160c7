//! One end of a conversation between two processes of this host: messages with descriptors.

mod error;
mod memory_file;
mod socket;

pub use error::{ChannelError, MemoryFileFault};
pub use socket::{Channel, MAX_DESCRIPTORS, Received};
