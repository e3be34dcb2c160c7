//! What a box answers.

use super::channel::MessageKind;
use super::message::Message;
use crate::codec::{DecodeError, Decoder, Encoder};
use crate::limits::{MAX_DROP_REASON, MAX_DROP_REASONS, MAX_PORTS};
use alloc::string::String;
use alloc::vec::Vec;

/// The answer to a request. The box wrote it: a text of it is shown escaped, never trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// It is done; what a read handler returned, encoded [`Stats`] or [`Diagnostic`](crate::Diagnostic)s, else
    /// empty.
    Done(&'a [u8]),
    /// It was refused; the reason in a sentence or several lines.
    Failed(&'a [u8]),
    /// There is no such configuration, element or handler; which one, in a sentence.
    Missing(&'a [u8]),
    /// The configuration can't run; encoded [`Diagnostic`](crate::Diagnostic)s say why.
    Rejected(&'a [u8]),
}

impl<'a> Reply<'a> {
    /// The message that answers request `number`.
    pub fn encode(&self, number: u32) -> Message {
        let (kind, payload) = match *self {
            Self::Done(value) => (MessageKind::Done, value),
            Self::Failed(reason) => (MessageKind::Failed, reason),
            Self::Missing(reason) => (MessageKind::Missing, reason),
            Self::Rejected(diagnostics) => (MessageKind::Rejected, diagnostics),
        };
        Message { kind, number, payload: payload.to_vec() }
    }

    /// The reply in a message.
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

/// What went through one port, as the box counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Packets taken from the receive ring.
    pub received_packets: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Packets put into the transmit ring.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that found the transmit ring full.
    pub full_drops: u64,
}

/// A box's counters since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Cycles of the time stamp counter spent on work, not on looking for it.
    pub busy_cycles: u64,
    /// Bytes of the heap in use.
    pub heap_used: u64,
    /// Most bytes of the heap ever in use.
    pub heap_peak: u64,
    /// Console lines and file pieces that the event channel had no room for.
    pub lost_events: u64,
    /// Ports in order.
    pub ports: Vec<PortStats>,
    /// Dropped packets by reason.
    pub drops: Vec<(String, u64)>,
}

impl Stats {
    /// The bytes that [`Reply::Done`] carries.
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
        fields.0
    }

    /// The counters in a reply's bytes.
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
        fields.end()?;
        Ok(stats)
    }
}
