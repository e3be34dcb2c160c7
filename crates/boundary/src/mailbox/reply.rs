//! Replies of a box to requests.

use super::channel::MessageKind;
use super::message::Message;
use super::packet_account::PacketAccount;
use crate::codec::{DecodeError, Decoder, Encoder};
use crate::limits::{MAX_DROP_REASON, MAX_DROP_REASONS, MAX_PORTS};
use alloc::string::String;
use alloc::vec::Vec;

/// The reply to a request. The box wrote it: texts must be escaped before display, and never trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// The request was done. The contents depend on it: a read handler's result, encoded [`Stats`] or
    /// [`Diagnostic`](crate::Diagnostic)s, or nothing.
    Done(&'a [u8]),
    /// The request was refused, with a reason of one or more lines.
    Failed(&'a [u8]),
    /// The configuration, element or handler does not exist; the text says which.
    Missing(&'a [u8]),
    /// The configuration was rejected, with encoded [`Diagnostic`](crate::Diagnostic)s.
    Rejected(&'a [u8]),
}

impl<'a> Reply<'a> {
    /// The message that replies to request `number`.
    pub fn encode(&self, number: u32) -> Message {
        let (kind, payload) = match *self {
            Self::Done(value) => (MessageKind::Done, value),
            Self::Failed(reason) => (MessageKind::Failed, reason),
            Self::Missing(reason) => (MessageKind::Missing, reason),
            Self::Rejected(diagnostics) => (MessageKind::Rejected, diagnostics),
        };
        Message { kind, number, payload: payload.to_vec() }
    }

    /// Decodes the reply in a message.
    pub fn decode(message: &'a Message) -> Result<Self, DecodeError> {
        match message.kind {
            MessageKind::Done => Ok(Self::Done(&message.payload)),
            MessageKind::Failed => Ok(Self::Failed(&message.payload)),
            MessageKind::Missing => Ok(Self::Missing(&message.payload)),
            MessageKind::Rejected => Ok(Self::Rejected(&message.payload)),
            other => Err(DecodeError::Value(other as u64)),
        }
    }
}

/// The traffic of one port, as counted by the box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Packets taken from the receive ring.
    pub received_packets: u64,
    /// Bytes of these packets.
    pub received_bytes: u64,
    /// Packets put into the transmit ring.
    pub sent_packets: u64,
    /// Bytes of these packets.
    pub sent_bytes: u64,
    /// Packets dropped because the transmit ring was full.
    pub full_drops: u64,
}

/// A box's counters since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Cycles of the time stamp counter spent on work, without polling.
    pub busy_cycles: u64,
    /// Bytes of the heap in use.
    pub heap_used: u64,
    /// Maximum bytes of the heap that were in use.
    pub heap_peak: u64,
    /// Log lines and file pieces dropped because the event channel was full.
    pub lost_events: u64,
    /// The ports, in order.
    pub ports: Vec<PortStats>,
    /// Dropped packets by reason.
    pub drops: Vec<(String, u64)>,
    /// What became of the others.
    pub account: PacketAccount,
}

impl Stats {
    /// Encodes the counters for [`Reply::Done`].
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Encoder::default();
        fields.u64(self.busy_cycles).u64(self.heap_used).u64(self.heap_peak).u64(self.lost_events);
        fields.u32(self.ports.len() as u32);
        for port in &self.ports {
            fields.u64(port.received_packets).u64(port.received_bytes);
            fields.u64(port.sent_packets).u64(port.sent_bytes).u64(port.full_drops);
        }
        fields.u32(self.drops.len() as u32);
        for (reason, count) in &self.drops {
            fields.bytes(reason.as_bytes()).u64(*count);
        }
        self.account.encode(&mut fields);
        fields.0
    }

    /// Decodes the counters in a reply.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut fields = Decoder(bytes);
        let mut stats = Self {
            busy_cycles: fields.u64()?,
            heap_used: fields.u64()?,
            heap_peak: fields.u64()?,
            lost_events: fields.u64()?,
            ..Self::default()
        };
        for _ in 0..fields.count(MAX_PORTS)? {
            stats.ports.push(PortStats {
                received_packets: fields.u64()?,
                received_bytes: fields.u64()?,
                sent_packets: fields.u64()?,
                sent_bytes: fields.u64()?,
                full_drops: fields.u64()?,
            });
        }
        for _ in 0..fields.count(MAX_DROP_REASONS)? {
            let reason = fields.text()?;
            let reason = &reason[..reason.floor_char_boundary(MAX_DROP_REASON)];
            stats.drops.push((reason.into(), fields.u64()?));
        }
        stats.account = PacketAccount::decode(&mut fields)?;
        fields.end()?;
        Ok(stats)
    }
}
