//! Elements that process one packet at a time and return a verdict.

use alloc::rc::Rc;
use core::any::Any;

use packet::{Batch, Packet};
use reason::Reason;

use crate::arguments::{Args, Setup};
use crate::context::Context;
use crate::contract::Element;
use crate::error::SetupError;
use crate::flow_states::FlowKeeping;
use crate::handler::Handler;
use crate::waiting::Waiting;

/// The outcome for a packet.
pub enum Verdict {
    /// Send to output 0.
    Pass(Packet),
    /// Send to output 1 if it exists, otherwise drop and count under the reason.
    Divert(Packet, Reason),
    /// Drop and count under the reason.
    Drop(Packet, Reason),
    /// Send to the given output; drop if it does not exist.
    To(usize, Packet),
    /// The element keeps the packet, or has already sent or ended it.
    Taken,
}

/// An element with one input that processes packets one by one: Click's `simple_action`.
///
/// The framework derives push, pull, batching and drop accounting from [`Filter::filter`]. On a pull path, every
/// verdict except `Pass` yields no packet.
pub trait Filter: Sized + 'static {
    /// Its arguments.
    type Args: Args;
    /// Its handlers.
    const HANDLERS: &'static [Handler<Self>] = &[];
    /// Whether `config` may be written while the element runs.
    const LIVE_RECONFIGURE: bool = false;

    /// Creates the element.
    fn new(args: Self::Args, setup: &mut Setup) -> Result<Self, SetupError>;

    /// Resolves references to other elements, once all exist.
    fn resolve(&mut self, _cx: &mut Context) -> Result<(), SetupError> {
        Ok(())
    }

    /// Prepares to run, once all elements are configured.
    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        cx.needs_no_such_call();
        Ok(())
    }

    /// Processes one packet. Elements that pass every packet implement only [`pass`](Filter::pass).
    #[inline(always)]
    fn filter(&mut self, _cx: &mut Context, mut packet: Packet) -> Verdict {
        self.pass(&mut packet);
        Verdict::Pass(packet)
    }

    /// Fast path of `filter`: processes in place a packet that simply passes. Returns `false`, having changed nothing,
    /// for a packet that may not pass or that needs the context; `filter` then processes it.
    #[inline(always)]
    fn pass(&mut self, _packet: &mut Packet) -> bool {
        false
    }

    /// Called with each batch before its packets are processed: to prefetch, or to read the clock once.
    #[inline(always)]
    fn begin(&mut self, _cx: &mut Context, _batch: &Batch) {}

    /// Runs the task.
    fn task(&mut self, _cx: &mut Context) -> bool {
        false
    }

    /// A timer has expired.
    fn timer(&mut self, _cx: &mut Context, _timer: usize) {}

    /// Takes over the state of the old element of the same name and class.
    fn inherit(&mut self, _old: &mut Self, cx: &mut Context) {
        cx.needs_no_such_call();
    }

    /// The object that this element shares with others.
    fn export(&self) -> Option<Rc<dyn Any>> {
        None
    }

    /// Reports the packets that it holds. Each must be reported. The class declares `fates = "waiting"`.
    fn waiting(&self, _waiting: &mut Waiting) {}

    /// The state of flows that it keeps, for the box in which these go on.
    fn flow_states(&mut self) -> FlowKeeping<'_> {
        FlowKeeping::Nothing
    }

    /// The router stops for good, or another takes over: flush and close.
    fn cleanup(&mut self, cx: &mut Context) {
        cx.needs_no_such_call();
    }
}

impl<F: Filter> Element for F {
    type Args = F::Args;
    const HANDLERS: &'static [Handler<Self>] = F::HANDLERS;
    const LIVE_RECONFIGURE: bool = F::LIVE_RECONFIGURE;

    fn new(args: Self::Args, setup: &mut Setup) -> Result<Self, SetupError> {
        F::new(args, setup)
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        Filter::resolve(self, cx)
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        Filter::initialize(self, cx)
    }

    fn push(&mut self, cx: &mut Context, _port: usize, mut batch: Batch) {
        self.begin(cx, &batch);
        let passed = pass_first(self, batch.as_mut_slice());
        if passed == batch.len() {
            return cx.emit(0, batch);
        }
        let mut pass_index = (passed > 0).then_some(0);
        batch.filter_map_from(passed, |packet| match self.filter(cx, packet) {
            Verdict::Pass(packet) if cx.emitted() == 0 => {
                pass_index = Some(0);
                Some(packet)
            }
            verdict => settle_in_order(cx, verdict, &mut pass_index),
        });
        // Emit behind the batches that preceded the first of these packets, as single packets would have been.
        cx.emit_at(pass_index.unwrap_or(0), 0, batch);
    }

    fn pull(&mut self, cx: &mut Context, _port: usize, most: usize, into: &mut Batch) {
        let mut batch = cx.batch();
        cx.pull(0, most, &mut batch);
        self.begin(cx, &batch);
        let passed = pass_first(self, batch.as_mut_slice());
        batch.filter_map_from(passed, |packet| match self.filter(cx, packet) {
            Verdict::Pass(packet) => Some(packet),
            verdict => {
                settle(cx, verdict);
                None
            }
        });
        into.append(&mut batch);
        cx.recycle(batch);
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        Filter::task(self, cx)
    }

    fn timer(&mut self, cx: &mut Context, timer: usize) {
        Filter::timer(self, cx, timer);
    }

    fn inherit(&mut self, old: &mut Self, cx: &mut Context) {
        Filter::inherit(self, old, cx);
    }

    fn export(&self) -> Option<Rc<dyn Any>> {
        Filter::export(self)
    }

    fn waiting(&self, waiting: &mut Waiting) {
        Filter::waiting(self, waiting);
    }

    fn flow_states(&mut self) -> FlowKeeping<'_> {
        Filter::flow_states(self)
    }

    fn cleanup(&mut self, cx: &mut Context) {
        Filter::cleanup(self, cx);
    }
}

/// Passes packets in place up to the first that needs `filter`; returns how many.
#[inline(always)]
fn pass_first<F: Filter>(filter: &mut F, packets: &mut [Packet]) -> usize {
    let mut passed = 0;
    for packet in packets {
        if !filter.pass(packet) {
            break;
        }
        passed += 1;
    }
    passed
}

/// Applies a verdict within a batch. Returns a packet that passes, unless something was emitted that must precede it.
/// `pass_index` is set at the first packet returned.
#[inline(never)]
fn settle_in_order(cx: &mut Context, verdict: Verdict, pass_index: &mut Option<usize>) -> Option<Packet> {
    match verdict {
        Verdict::Pass(packet) if !cx.has_emitted_in_group_of(0) => {
            pass_index.get_or_insert(cx.emitted());
            Some(packet)
        }
        verdict => {
            settle(cx, verdict);
            None
        }
    }
}

/// Applies a verdict: sends or drops the packet.
#[inline]
fn settle(cx: &mut Context, verdict: Verdict) {
    match verdict {
        Verdict::Pass(packet) => cx.send(0, packet),
        Verdict::Divert(packet, reason) if cx.outputs() < 2 => cx.drop(packet, reason),
        Verdict::Divert(packet, _) => cx.send(1, packet),
        Verdict::Drop(packet, reason) => cx.drop(packet, reason),
        Verdict::To(port, packet) => cx.send(port, packet),
        Verdict::Taken => {}
    }
}
