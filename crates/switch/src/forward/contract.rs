//! The contract of a forwarding method.

use crate::batch::{FrameMark, UnreadFrame};
use crate::port::PortId;
use boundary::DirectPacket;
use flow_table::TokenBucket;
use packet::MacAddr;
use reason::Reason;

/// Where a frame is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// To one port.
    To(PortId),
    /// To the port of a function, which notes the tag until the function returns the frame.
    ToFunction(PortId, u64),
    /// To all ports except the source port.
    Flood,
    /// To no port.
    Drop,
    /// To no port, for this reason.
    Lose(Reason),
    /// To no port, because the source address is bound to another port.
    Spoofed,
    /// To no port, because the source address is new, and the port has taught as many as it may in this time.
    Capped,
    /// To no port, because the source address is valid for no sender.
    BadSource,
    /// To no port, because no flow matches.
    FlowMiss,
    /// To no port, because a flow drops it.
    FlowDrop,
    /// Where [`Forward::perform`] sends it, possibly changed or several times.
    Perform,
}

/// Where a frame is sent that a method made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To one port, unless the frame was received there.
    Port(PortId),
    /// To the port of a function, which notes the tag until the function returns the frame.
    Function(PortId, u64),
    /// To the port where the frame was received.
    Back,
    /// To all ports except the one where the frame was received.
    All,
    /// To those of them that may be flooded.
    Flood,
}

/// What became of a frame that a method performs operations on.
pub trait Outcome {
    /// Sends a frame.
    fn send(&mut self, target: Target, frame: &[u8]);
    /// Notes that the method took the frame, or a copy.
    fn take(&mut self);
    /// Notes that the frame, or a copy, was lost.
    fn lose(&mut self, reason: Reason);
}

/// Frames that a method decides from their headers at once.
pub const MAX_HEADS: usize = flow_table::BATCH;

/// The first bytes of a frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct FrameHead<'a> {
    /// At least an Ethernet header.
    pub head: &'a [u8],
    /// The length of the frame, in bytes.
    pub length: usize,
    /// What the port noted when a function got the frame, and what the function answered.
    pub mark: FrameMark,
}

/// A forwarding method. It sees only addresses, or headers, does no I/O, and gets the time from its caller.
pub trait Forward: Send {
    /// Decides where a frame from `source` to `destination` goes that was received at port `from`. `now` is in
    /// nanoseconds of a monotonic clock.
    fn decide(&mut self, destination: MacAddr, source: MacAddr, from: PortId, now: u64) -> Decision;

    /// Whether the method decides from the headers of frames: by [`decide_heads`](Self::decide_heads) instead of
    /// [`decide`](Self::decide).
    fn reads_headers(&self) -> bool {
        false
    }

    /// Whether frames from a port may be passed on unread: by [`pass_on`](Self::pass_on).
    fn leaves_unread(&self, _from: PortId) -> bool {
        false
    }

    /// Decides where a function's frames go that need not be read: one decision for each, or `None` if the frame must be read.
    fn pass_on(&mut self, _: &[UnreadFrame], _from: PortId, _now: u64, _: &mut Vec<Option<Decision>>) {}

    /// Sets the tags of packets that a function passes on, as far as they go to port `to`, another function, in the same way.
    /// Returns their number. It counts none: [`count_direct`](Self::count_direct) follows.
    fn pass_direct(&mut self, _: &mut [DirectPacket], _from: PortId, _to: PortId, _now: u64) -> usize {
        0
    }

    /// Counts the packets of the last [`pass_direct`](Self::pass_direct) that moved.
    fn count_direct(&mut self, _packets: u64, _bytes: u64, _now: u64) {}

    /// Decides where frames go that were received at port `from`: at most [`MAX_HEADS`], each with a place for its decision.
    /// A head has all headers of its frame, as far as [`flow_table::Key::needs_more`] says so.
    fn decide_heads(&mut self, _: &[FrameHead<'_>], _from: PortId, _now: u64, _: &mut [Decision]) {}

    /// Forgets the frames of earlier batches that were to be performed.
    fn begin_batch(&mut self) {}

    /// Performs the next frame that [`decide_heads`](Self::decide_heads) decided to [`Perform`](Decision::Perform): frames
    /// are given in the order of these decisions, since the last [`begin_batch`](Self::begin_batch).
    fn perform(&mut self, _frame: &[u8], _from: PortId, _now: u64, _outcome: &mut dyn Outcome) {}

    /// Removes a port: no frame is sent to it any more.
    fn remove_port(&mut self, port: PortId);

    /// Limits the addresses that are learned from a port: each of them takes a token. A method that learns none does nothing.
    fn limit_new_addresses(&mut self, _port: PortId, _quota: TokenBucket) {}

    /// Forgets the addresses learned at a port that went down. Its assigned addresses stay. Callers may repeat it while
    /// the port is down, so it must be cheap when there is nothing to forget.
    fn flush_port(&mut self, _port: PortId) {}

    /// Notes that a port has a driver that works, until [`flush_port`](Self::flush_port).
    fn resume_port(&mut self, _port: PortId) {}

    /// Notes whether the other end of a port has little room left.
    fn set_crowded(&mut self, _port: PortId, _is_crowded: bool) {}

    /// Notes whether the function at the other end of a port stands still.
    fn set_silent(&mut self, _port: PortId, _is_silent: bool) {}

    /// Notes that frames that were decided to go to a function, with this tag, were lost on the way to it.
    fn count_lost(&mut self, _tag: u64, _frames: u64) {}

    /// Whether a function behind a port translates addresses, so that its frames may belong to other shards than those that it got.
    fn translates(&self, _port: PortId) -> bool {
        false
    }

    /// Looks at a frame with a tag that such a port received, and that belongs to another shard by its addresses. Returns the tag for
    /// that shard; `None` if the frame stays here.
    fn translated(&mut self, _: &FrameHead<'_>, _from: PortId, _now: u64) -> Option<u64> {
        None
    }

    /// Notes that a frame with this tag was passed on so.
    fn passed_translated(&mut self, _tag: u64) {}

    /// Notes that other threads run shards of the same switch: addresses that are learned are reported from now on.
    fn report_news(&mut self) {}

    /// Takes the addresses that were learned since the last call, for the other shards.
    fn take_news(&mut self, _: &mut Vec<(MacAddr, PortId)>) {}

    /// Learns an address that another shard reported.
    fn learn_elsewhere(&mut self, _: MacAddr, _: PortId, _now: u64) {}

    /// Where the next frame goes that the method kept and that may go on now: a port that should have room, if it is known.
    fn next_held(&self) -> Option<Option<PortId>> {
        None
    }

    /// Sends that frame.
    fn release_held(&mut self, _now: u64, _outcome: &mut dyn Outcome) {}
}

impl<F: Forward + ?Sized> Forward for Box<F> {
    fn decide(&mut self, destination: MacAddr, source: MacAddr, from: PortId, now: u64) -> Decision {
        (**self).decide(destination, source, from, now)
    }

    fn reads_headers(&self) -> bool {
        (**self).reads_headers()
    }

    fn leaves_unread(&self, from: PortId) -> bool {
        (**self).leaves_unread(from)
    }

    fn pass_on(
        &mut self,
        frames: &[UnreadFrame],
        from: PortId,
        now: u64,
        decisions: &mut Vec<Option<Decision>>,
    ) {
        (**self).pass_on(frames, from, now, decisions);
    }

    fn pass_direct(&mut self, packets: &mut [DirectPacket], from: PortId, to: PortId, now: u64) -> usize {
        (**self).pass_direct(packets, from, to, now)
    }

    fn count_direct(&mut self, packets: u64, bytes: u64, now: u64) {
        (**self).count_direct(packets, bytes, now);
    }

    fn decide_heads(&mut self, heads: &[FrameHead<'_>], from: PortId, now: u64, decisions: &mut [Decision]) {
        (**self).decide_heads(heads, from, now, decisions);
    }

    fn begin_batch(&mut self) {
        (**self).begin_batch();
    }

    fn perform(&mut self, frame: &[u8], from: PortId, now: u64, outcome: &mut dyn Outcome) {
        (**self).perform(frame, from, now, outcome);
    }

    fn remove_port(&mut self, port: PortId) {
        (**self).remove_port(port);
    }

    fn limit_new_addresses(&mut self, port: PortId, quota: TokenBucket) {
        (**self).limit_new_addresses(port, quota);
    }

    fn flush_port(&mut self, port: PortId) {
        (**self).flush_port(port);
    }

    fn resume_port(&mut self, port: PortId) {
        (**self).resume_port(port);
    }

    fn set_crowded(&mut self, port: PortId, is_crowded: bool) {
        (**self).set_crowded(port, is_crowded);
    }

    fn set_silent(&mut self, port: PortId, is_silent: bool) {
        (**self).set_silent(port, is_silent);
    }

    fn count_lost(&mut self, tag: u64, frames: u64) {
        (**self).count_lost(tag, frames);
    }

    fn translates(&self, port: PortId) -> bool {
        (**self).translates(port)
    }

    fn translated(&mut self, frame: &FrameHead<'_>, from: PortId, now: u64) -> Option<u64> {
        (**self).translated(frame, from, now)
    }

    fn passed_translated(&mut self, tag: u64) {
        (**self).passed_translated(tag);
    }

    fn report_news(&mut self) {
        (**self).report_news();
    }

    fn take_news(&mut self, into: &mut Vec<(MacAddr, PortId)>) {
        (**self).take_news(into);
    }

    fn learn_elsewhere(&mut self, address: MacAddr, port: PortId, now: u64) {
        (**self).learn_elsewhere(address, port, now);
    }

    fn next_held(&self) -> Option<Option<PortId>> {
        (**self).next_held()
    }

    fn release_held(&mut self, now: u64, outcome: &mut dyn Outcome) {
        (**self).release_held(now, outcome);
    }
}
