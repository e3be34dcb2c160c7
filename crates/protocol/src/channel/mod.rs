//! One end of a conversation between two processes of this host: messages with descriptors.

mod error;
mod limits;
pub mod memory_file;
mod socket;

pub use error::{ChannelError, MemoryFileFault};
pub use limits::MAX_DESCRIPTORS;
pub use socket::{Channel, Received};
