//! The mailbox: messages between a box and its host, over byte channels in shared memory.
//!
//! There are three channels: requests (host to box), replies (box to host) and events (box to host). A box drops and
//! counts events that do not fit, so that logging never delays packets.

mod channel;
mod diagnostic;
mod event;
mod flow_state;
mod handler_write;
mod message;
mod packet_account;
mod reply;
mod request;
mod shards;

pub(crate) use channel::CHANNEL_BYTES;
pub use channel::{ChannelError, Frame, FrameReader, FrameWriter, MessageKind};
pub use diagnostic::{Diagnostic, Severity};
pub use event::Event;
pub use flow_state::{
    FlowExport, FlowList, FlowPosition, RefusedState, StateRecord, StateTuple, decode_groups, decode_states,
    encode_groups, encode_states,
};
pub use handler_write::{RefusedWrite, WriteEffect, Written};
pub use message::{Inbox, Message, Outbox};
pub use packet_account::{DiscardedPackets, LostPackets, PacketAccount, PacketFates, WaitingPackets};
pub use reply::{PortStats, Reply, Stats};
pub use request::Request;
pub use shards::{SpreadRange, decode_answers, encode_answers};

#[cfg(test)]
mod tests;
