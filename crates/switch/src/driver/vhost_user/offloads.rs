//! Offloads of a peer: what was agreed on, the large frame from the peer that is being cut, and the groups of frames that it
//! gets as one.

use crate::batch::{Batch, MAX_FRAME};
use crate::device::{
    CONGESTION, Coalescer, LargeFrame, MAX_MESSAGE, NEEDS_CHECKSUM, OFFLOAD_HEADER, Offload, Segmenter,
    TCP_OVER_IP4, TCP_OVER_IP6, UDP,
};
use crate::driver::contract::Received;

/// Features with which the peer leaves work to the switch: checksums, and segmentation of TCP (over IPv4, over IPv6, and with
/// congestion notification) and of UDP.
const CHECKSUMS: u64 = 1 << 0;
const CUTS_TCP4: u64 = 1 << 11;
const CUTS_TCP6: u64 = 1 << 12;
const CUTS_CONGESTED: u64 = 1 << 13;
const CUTS_UDP: u64 = 1 << 56;
/// Features with which the peer takes over such work.
const TAKES_UNFINISHED: u64 = 1 << 1;
const TAKES_TCP4: u64 = 1 << 7;
const TAKES_TCP6: u64 = 1 << 8;
const TAKES_CONGESTED: u64 = 1 << 9;
const TAKES_UDP4: u64 = 1 << 54;
const TAKES_UDP6: u64 = 1 << 55;
/// The kind of UDP does not say over which protocol.
const TAKES_UDP: u64 = TAKES_UDP4 | TAKES_UDP6;

/// All features of offloads that the switch has.
pub(super) const OFFLOADS: u64 = CHECKSUMS
    | CUTS_TCP4
    | CUTS_TCP6
    | CUTS_CONGESTED
    | CUTS_UDP
    | TAKES_UNFINISHED
    | TAKES_TCP4
    | TAKES_TCP6
    | TAKES_CONGESTED
    | TAKES_UDP;

/// What was agreed on about offloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OffloadFeatures(u64);

impl OffloadFeatures {
    /// The offloads among the features that a peer has accepted. Those without the checksums that they need do not count.
    pub(super) fn new(features: u64) -> Self {
        let mut accepted = features & OFFLOADS;
        if accepted & CHECKSUMS == 0 {
            accepted &= !(CUTS_TCP4 | CUTS_TCP6 | CUTS_UDP);
        }
        if accepted & TAKES_UNFINISHED == 0 {
            accepted &= !(TAKES_TCP4 | TAKES_TCP6 | TAKES_UDP);
        }
        Self(accepted)
    }

    /// Whether headers from the peer mean something.
    #[inline(always)]
    pub(super) fn has_headers(self) -> bool {
        self.0 & CHECKSUMS != 0
    }

    /// Whether the peer may send large frames of a kind.
    fn may_send(self, kind: u8) -> bool {
        let needed = match kind & !CONGESTION {
            TCP_OVER_IP4 => CUTS_TCP4,
            TCP_OVER_IP6 => CUTS_TCP6,
            UDP => CUTS_UDP,
            _ => 0,
        };
        self.0 & needed != 0
    }

    /// Whether the peer takes joined frames of any kind.
    #[inline(always)]
    pub(super) fn takes_joined(self) -> bool {
        self.0 & (TAKES_TCP4 | TAKES_TCP6) != 0 || self.takes_datagrams()
    }

    /// Whether the peer takes joined datagrams.
    pub(super) fn takes_datagrams(self) -> bool {
        self.0 & TAKES_UDP == TAKES_UDP
    }

    /// Whether the peer takes joined frames with this offload header.
    pub(super) fn takes(self, header: &[u8]) -> bool {
        let needed = match header.get(1) {
            Some(&TCP_OVER_IP4) => TAKES_TCP4,
            Some(&TCP_OVER_IP6) => TAKES_TCP6,
            Some(&UDP) => return self.takes_datagrams(),
            _ => 0,
        };
        self.0 & needed != 0
    }
}

/// The offload header of a frame from the peer, copied once.
#[derive(Clone, Copy, Debug)]
pub(super) struct OffloadHeader([u8; OFFLOAD_HEADER]);

impl OffloadHeader {
    /// The header, if it asks for anything.
    #[inline(always)]
    pub(super) fn new(bytes: [u8; OFFLOAD_HEADER]) -> Option<Self> {
        (bytes[0] & NEEDS_CHECKSUM | bytes[1] != 0).then_some(Self(bytes))
    }

    /// Whether it belongs to a frame that is to be cut.
    pub(super) fn is_large(self) -> bool {
        self.0[1] != 0
    }

    /// Finishes a frame that is not to be cut. Returns false if its checksum has no place in it.
    pub(super) fn finish(self, frame: &mut [u8]) -> bool {
        Offload::new(self.0).fill_in(frame)
    }
}

/// The work on frames of a port. It outlives connections: what a peer has handed over is passed on when it is gone.
#[derive(Debug, Default)]
pub(super) struct Offloads {
    /// Cuts the last large frame from the peer.
    segmenter: Segmenter,
    /// Room for a large frame, after room for an offload header.
    message: Vec<u8>,
    /// Joins frames to the peer.
    pub(super) coalescer: Coalescer,
}

impl Offloads {
    /// The number of frames that were cut and wait to be passed on.
    #[inline]
    pub(super) fn waiting(&self) -> usize {
        if self.segmenter.is_empty() { 0 } else { self.segmenter.left() }
    }

    /// Passes on frames that were cut. Returns false if the batch has no room for all.
    #[inline]
    pub(super) fn pass_on(&mut self, batch: &mut Batch) -> bool {
        while !self.segmenter.is_empty() {
            let Some(length) = batch.space().and_then(|space| self.segmenter.take(space)) else {
                return false;
            };
            batch.commit(length);
        }
        true
    }

    /// Room for a large frame.
    pub(super) fn room(&mut self) -> &mut [u8] {
        self.message.resize(MAX_MESSAGE, 0);
        self.message.get_mut(OFFLOAD_HEADER..).unwrap_or_default()
    }

    /// Cuts the frame of `length` bytes in the [`room`](Self::room), and passes on the first of its parts. Counts one that
    /// cannot be cut.
    pub(super) fn cut(
        &mut self,
        features: OffloadFeatures,
        header: OffloadHeader,
        length: usize,
        batch: &mut Batch,
        received: &mut Received,
    ) {
        let offload = Offload::new(header.0);
        let (true, Some((_, size)), Some(_)) =
            (features.may_send(header.0[1]), offload.segmentation, offload.checksum)
        else {
            received.faulty += 1;
            return;
        };
        let frame = LargeFrame::new(offload, length);
        if length > MAX_MESSAGE - OFFLOAD_HEADER || size > MAX_FRAME {
            received.long += 1;
        } else if !self.segmenter.load_message(&mut self.message, frame, MAX_FRAME) {
            // Its headers are not those of its kind, or its parts are longer than a frame with them.
            received.faulty += 1;
        } else {
            self.pass_on(batch);
        }
    }
}
