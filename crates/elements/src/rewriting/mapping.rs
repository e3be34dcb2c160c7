//! One flow of a rewriter, and how long it lives.

use alloc::boxed::Box;
use packet::checksum::Delta;

use super::splice::Splices;
use flow::Ip4Flow;

/// A flow of a rewriter. With its two keys it fills a cache line.
pub(crate) struct Mapping {
    /// When it may go, in milliseconds of steady time.
    pub(crate) deadline: u64,
    /// Changes of TCP sequence numbers.
    pub(crate) splices: Option<Box<Splices>>,
    /// What the new addresses of forward packets do to a checksum.
    pub(crate) addresses: Delta,
    /// What the new addresses and ports of forward packets do to a checksum.
    pub(crate) transport: Delta,
    /// Outputs of forward packets and of replies.
    pub(crate) outputs: [u16; 2],
    /// The input that it began on.
    pub(crate) input: u16,
    /// Its protocol; 0 if it is of any.
    pub(crate) protocol: u8,
    /// How far it has come, as its rewriter sees it.
    pub(crate) progress: u8,
    /// The annotation of the packet that it began with.
    pub(crate) reply_annotation: u8,
    /// Whether the deadline is that of its guarantee.
    pub(crate) guaranteed: bool,
}

impl Mapping {
    /// A flow of packets `from` that are rewritten `to`.
    pub(crate) fn new(from: Ip4Flow, to: Ip4Flow, outputs: [u16; 2], input: u16, protocol: u8) -> Mapping {
        let addresses = Delta::NONE.long(from.source, to.source).long(from.destination, to.destination);
        let transport =
            addresses.word(from.source_port, to.source_port).word(from.destination_port, to.destination_port);
        Mapping {
            deadline: 0,
            splices: None,
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

/// The progress of a TCP flow: forward packets and replies have ended, or have carried data. The bit of a reply is
/// twice that of a forward packet.
pub(crate) mod tcp {
    /// A forward packet was the last.
    pub(crate) const DONE: u8 = 1;
    /// Both directions have ended.
    pub(crate) const BOTH_DONE: u8 = 3;
    /// A forward packet had data.
    pub(crate) const DATA: u8 = 4;
    /// Both directions had data.
    pub(crate) const BOTH_DATA: u8 = 12;
}

/// The progress of a UDP flow: 2 for each of the first packets, and 1 once there was a reply.
pub(crate) mod udp {
    /// There was a reply.
    pub(crate) const REPLY: u8 = 1;
    /// Packets are counted up to this.
    pub(crate) const ENOUGH: u8 = 6;
}

/// What tells a flow's progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tracking {
    /// Nothing.
    #[default]
    None,
    /// The flags and data of TCP.
    Tcp,
    /// Three packets and a reply make a stream.
    Udp,
}

/// How long flows live, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lifetimes {
    /// For so long after a packet a flow is not taken away to make room; 0 for no such promise.
    pub(crate) guarantee: u64,
    /// From the last packet on, at the beginning.
    pub(crate) early: u64,
    /// Once data went both ways, or packets stream.
    pub(crate) settled: u64,
    /// Once both directions have ended.
    pub(crate) done: u64,
    /// What tells these apart.
    pub(crate) tracking: Tracking,
}

impl Lifetimes {
    /// The time that a flow lives after its last packet.
    #[inline]
    pub(crate) fn span(&self, progress: u8) -> u64 {
        match self.tracking {
            Tracking::Tcp if progress & tcp::BOTH_DONE == tcp::BOTH_DONE => self.done,
            Tracking::Tcp if progress & tcp::BOTH_DATA == tcp::BOTH_DATA => self.settled,
            Tracking::Udp if progress > udp::ENOUGH => self.settled,
            _ => self.early,
        }
    }

    /// When a flow may go whose last packet came now, and whether its guarantee lasts until then.
    #[inline]
    pub(crate) fn deadline(&self, progress: u8, now: u64) -> (u64, bool) {
        match self.guarantee {
            0 => (now + self.span(progress), false),
            guarantee => (now + guarantee, true),
        }
    }

    /// Puts a flow's deadline off after a packet; not if the flow has to wait elsewhere from now on, or to go earlier.
    #[inline(always)]
    pub(crate) fn put_off(&self, mapping: &mut Mapping, now: u64) -> bool {
        let (deadline, guaranteed) = self.deadline(mapping.progress, now);
        let waits = guaranteed == mapping.guaranteed && deadline >= mapping.deadline;
        if waits {
            mapping.deadline = deadline;
        }
        waits
    }

    /// When a flow goes at last whose guarantee ends at `deadline`.
    pub(crate) fn after_guarantee(&self, deadline: u64, progress: u8) -> u64 {
        (deadline + self.span(progress)).saturating_sub(self.guarantee)
    }
}
