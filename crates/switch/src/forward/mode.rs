//! Selects the forwarding method at run time.

use super::contract::{Decision, Forward, FrameHead, Outcome};
use super::{LearningBridge, StaticTable, Steering};
use crate::batch::UnreadFrame;
use crate::port::PortId;
use boundary::DirectPacket;
use flow_table::TokenBucket;
use packet::MacAddr;

/// One of the forwarding methods.
#[derive(Debug)]
pub enum ForwardingMode {
    /// By a configured table.
    Static(StaticTable),
    /// By learned addresses.
    Learning(LearningBridge),
    /// By flows.
    Steering(Box<Steering>),
}

impl ForwardingMode {
    /// The bridge that learns addresses, if there is one.
    fn bridge_mut(&mut self) -> Option<&mut LearningBridge> {
        match self {
            Self::Static(_) => None,
            Self::Learning(bridge) => Some(bridge),
            Self::Steering(steering) => Some(steering.bridge_mut()),
        }
    }
}

impl Forward for ForwardingMode {
    #[inline]
    fn decide(&mut self, destination: MacAddr, source: MacAddr, from: PortId, now: u64) -> Decision {
        match self {
            Self::Static(table) => table.decide(destination, source, from, now),
            Self::Learning(bridge) => bridge.decide(destination, source, from, now),
            Self::Steering(steering) => steering.decide(destination, source, from, now),
        }
    }

    #[inline]
    fn reads_headers(&self) -> bool {
        matches!(self, Self::Steering(_))
    }

    #[inline]
    fn leaves_unread(&self, from: PortId) -> bool {
        matches!(self, Self::Steering(steering) if steering.leaves_unread(from))
    }

    fn pass_on(
        &mut self,
        frames: &[UnreadFrame],
        from: PortId,
        now: u64,
        decisions: &mut Vec<Option<Decision>>,
    ) {
        if let Self::Steering(steering) = self {
            steering.pass_on(frames, from, now, decisions);
        }
    }

    fn pass_direct(&mut self, packets: &mut [DirectPacket], from: PortId, to: PortId, now: u64) -> usize {
        match self {
            Self::Steering(steering) => steering.pass_direct(packets, from, to, now),
            _ => 0,
        }
    }

    fn count_direct(&mut self, packets: u64, bytes: u64, now: u64) {
        if let Self::Steering(steering) = self {
            steering.count_direct(packets, bytes, now);
        }
    }

    fn decide_heads(&mut self, heads: &[FrameHead<'_>], from: PortId, now: u64, decisions: &mut [Decision]) {
        if let Self::Steering(steering) = self {
            steering.decide_heads(heads, from, now, decisions);
        }
    }

    fn begin_batch(&mut self) {
        if let Self::Steering(steering) = self {
            steering.begin_batch();
        }
    }

    fn perform(&mut self, frame: &[u8], from: PortId, now: u64, outcome: &mut dyn Outcome) {
        if let Self::Steering(steering) = self {
            steering.perform(frame, from, now, outcome);
        }
    }

    fn remove_port(&mut self, port: PortId) {
        match self {
            Self::Static(table) => table.remove_port(port),
            Self::Learning(bridge) => bridge.remove_port(port),
            Self::Steering(steering) => steering.remove_port(port),
        }
    }

    fn limit_new_addresses(&mut self, port: PortId, quota: TokenBucket) {
        match self {
            Self::Static(table) => table.limit_new_addresses(port, quota),
            Self::Learning(bridge) => bridge.limit_new_addresses(port, quota),
            Self::Steering(steering) => steering.limit_new_addresses(port, quota),
        }
    }

    fn resume_port(&mut self, port: PortId) {
        if let Self::Steering(steering) = self {
            steering.resume_port(port);
        }
    }

    fn set_crowded(&mut self, port: PortId, is_crowded: bool) {
        if let Self::Steering(steering) = self {
            steering.set_crowded(port, is_crowded);
        }
    }

    fn set_silent(&mut self, port: PortId, is_silent: bool) {
        if let Self::Steering(steering) = self {
            steering.set_silent(port, is_silent);
        }
    }

    fn translates(&self, port: PortId) -> bool {
        matches!(self, Self::Steering(steering) if steering.translates(port))
    }

    fn translated(&mut self, frame: &FrameHead<'_>, from: PortId, now: u64) -> Option<u64> {
        match self {
            Self::Steering(steering) => steering.translated(frame, from, now),
            _ => None,
        }
    }

    fn passed_translated(&mut self, tag: u64) {
        if let Self::Steering(steering) = self {
            steering.passed_translated(tag);
        }
    }

    fn report_news(&mut self) {
        self.bridge_mut().into_iter().for_each(Forward::report_news);
    }

    #[inline]
    fn take_news(&mut self, into: &mut Vec<(MacAddr, PortId)>) {
        self.bridge_mut().into_iter().for_each(|bridge| bridge.take_news(into));
    }

    fn learn_elsewhere(&mut self, address: MacAddr, port: PortId, now: u64) {
        self.bridge_mut().into_iter().for_each(|bridge| bridge.learn_elsewhere(address, port, now));
    }

    #[inline]
    fn next_held(&self) -> Option<Option<PortId>> {
        match self {
            Self::Steering(steering) => steering.next_held(),
            _ => None,
        }
    }

    fn release_held(&mut self, now: u64, outcome: &mut dyn Outcome) {
        if let Self::Steering(steering) = self {
            steering.release_held(now, outcome);
        }
    }

    fn count_lost(&mut self, tag: u64, frames: u64) {
        if let Self::Steering(steering) = self {
            steering.count_lost(tag, frames);
        }
    }

    fn flush_port(&mut self, port: PortId) {
        match self {
            Self::Static(table) => table.flush_port(port),
            Self::Learning(bridge) => bridge.flush_port(port),
            Self::Steering(steering) => steering.flush_port(port),
        }
    }
}
