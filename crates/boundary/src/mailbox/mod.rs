//! Messages between a box and its host, over byte channels in shared memory.
//!
//! There are three channels: requests (host to box), replies (box to host), events (box to host; a box
//! drops and counts what doesn't fit, so that a console never holds packets up).

mod channel;
mod diagnostic;
mod event;
mod message;
mod reply;
mod request;

pub(crate) use channel::CHANNEL_BYTES;
pub use channel::{ChannelError, Frame, FrameReader, FrameWriter, MessageKind};
pub use diagnostic::{Diagnostic, Severity};
pub use event::Event;
pub use message::{Inbox, Message, Outbox};
pub use reply::{PortStats, Reply, Stats};
pub use request::Request;

#[cfg(test)]
mod tests;
