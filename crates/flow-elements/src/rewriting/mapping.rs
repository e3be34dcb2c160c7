//! A flow of a rewriter and its lifetime.

use alloc::boxed::Box;
use packet::checksum::Delta;

use super::sequence_shifts::SequenceShifts;
use flow::Ip4Flow;

/// A flow of a rewriter. With its two keys it fills one cache line.
pub(crate) struct Mapping {
    /// The end of its current period, in milliseconds of monotonic time.
    pub(crate) deadline: u64,
    /// Shifts of TCP sequence numbers.
    pub(crate) shifts: Option<Box<SequenceShifts>>,
    /// The checksum change caused by the new addresses of forward packets.
    pub(crate) addresses: Delta,
    /// The checksum change caused by the new addresses and ports of forward packets.
    pub(crate) transport: Delta,
    /// Output ports of forward packets and of replies.
    pub(crate) outputs: [u16; 2],
    /// The input on which it began.
    pub(crate) input: u16,
    /// Its protocol; 0 if it may be any.
    pub(crate) protocol: u8,
    /// State bits, defined by the rewriter's [`Tracking`].
    pub(crate) progress: u8,
    /// The reply annotation, copied from its first packet.
    pub(crate) reply_annotation: u8,
    /// Whether the current period is the guaranteed one.
    pub(crate) guaranteed: bool,
}

impl Mapping {
    /// Creates a flow that rewrites packets `from` to `to`.
    pub(crate) fn new(from: Ip4Flow, to: Ip4Flow, outputs: [u16; 2], input: u16, protocol: u8) -> Mapping {
        let addresses = Delta::NONE.word32(from.source, to.source).word32(from.destination, to.destination);
        let transport =
            addresses.word(from.source_port, to.source_port).word(from.destination_port, to.destination_port);
        Mapping {
            deadline: 0,
            shifts: None,
            addresses: addresses.normalised(),
            transport: transport.normalised(),
            outputs,
            input,
            protocol,
            progress: 0,
            reply_annotation: 0,
            guaranteed: false,
        }
    }
}

/// State bits of a TCP flow: whether forward packets and replies have ended or have carried data. The bit for replies
/// is twice the one for forward packets.
pub(crate) mod tcp {
    /// The forward direction has ended.
    pub(crate) const DONE: u8 = 1;
    /// Both directions have ended.
    pub(crate) const BOTH_DONE: u8 = 3;
    /// The forward direction has carried data.
    pub(crate) const DATA: u8 = 4;
    /// Both directions have carried data.
    pub(crate) const BOTH_DATA: u8 = 12;
}

/// State of a UDP flow: the first packets add 2 each, and the lowest bit is set by a reply.
pub(crate) mod udp {
    /// A reply was seen.
    pub(crate) const REPLY: u8 = 1;
    /// Packets are counted up to this value.
    pub(crate) const MAX_COUNT: u8 = 6;
}

/// How a flow's progress is tracked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tracking {
    /// Not tracked.
    #[default]
    None,
    /// By TCP flags and data.
    Tcp,
    /// By packet count: three packets and a reply make a stream.
    Udp,
}

/// Lifetimes of flows, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lifetimes {
    /// Time after each packet during which a flow can't be evicted; 0 for no guarantee.
    pub(crate) guarantee: u64,
    /// Lifetime after the last packet, initially.
    pub(crate) early: u64,
    /// Lifetime once both directions have carried data, or packets stream.
    pub(crate) settled: u64,
    /// Lifetime once both directions have ended.
    pub(crate) done: u64,
    /// How these states are distinguished.
    pub(crate) tracking: Tracking,
}

impl Lifetimes {
    /// The lifetime of a flow after its last packet.
    #[inline]
    pub(crate) fn span(&self, progress: u8) -> u64 {
        match self.tracking {
            Tracking::Tcp if progress & tcp::BOTH_DONE == tcp::BOTH_DONE => self.done,
            Tracking::Tcp if progress & tcp::BOTH_DATA == tcp::BOTH_DATA => self.settled,
            Tracking::Udp if progress > udp::MAX_COUNT => self.settled,
            _ => self.early,
        }
    }

    /// The deadline of a flow whose last packet arrived now, and whether it is that of the guaranteed period.
    #[inline]
    pub(crate) fn deadline(&self, progress: u8, now: u64) -> (u64, bool) {
        match self.guarantee {
            0 => (now + self.span(progress), false),
            guarantee => (now + guarantee, true),
        }
    }

    /// Postpones a flow's deadline after a packet. Returns false and changes nothing if the flow must move to the other
    /// queue or the deadline gets earlier.
    #[inline(always)]
    pub(crate) fn postpone(&self, mapping: &mut Mapping, now: u64) -> bool {
        let (deadline, guaranteed) = self.deadline(mapping.progress, now);
        let waits = guaranteed == mapping.guaranteed && deadline >= mapping.deadline;
        if waits {
            mapping.deadline = deadline;
        }
        waits
    }

    /// The final deadline of a flow whose guaranteed period ends at `deadline`.
    pub(crate) fn after_guarantee(&self, deadline: u64, progress: u8) -> u64 {
        (deadline + self.span(progress)).saturating_sub(self.guarantee)
    }
}
