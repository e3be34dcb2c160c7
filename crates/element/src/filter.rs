//! Elements that map a packet to a packet or a verdict.

use alloc::rc::Rc;
use core::any::Any;

use packet::{Batch, Packet};
use reason::Reason;

use crate::arguments::{Args, Setup};
use crate::context::Context;
use crate::contract::Element;
use crate::error::SetupError;
use crate::handler::Handler;

/// What becomes of a packet.
pub enum Verdict {
    /// Goes on by output 0.
    Pass(Packet),
    /// Goes to output 1 if that exists, else is dropped and counted under the reason.
    Divert(Packet, Reason),
    /// Is dropped and counted under the reason.
    Drop(Packet, Reason),
    /// Goes to the given output; a missing one drops it.
    To(usize, Packet),
    /// The element keeps it, or has sent what it became.
    Taken,
}

/// An element of one input whose work is done packet by packet: Click's `simple_action`.
///
/// The framework makes push, pull, batches and the accounting of drops from [`Filter::filter`]. On a pull path every
/// verdict but `Pass` yields no packet.
pub trait Filter: Sized + 'static {
    /// Its arguments.
    type Args: Args;
    /// Its handlers.
    const HANDLERS: &'static [Handler<Self>] = &[];
    /// Whether `config` may be written while it runs.
    const LIVE: bool = false;

    /// Makes one.
    fn new(args: Self::Args, setup: &mut Setup) -> Result<Self, SetupError>;

    /// Finds what its arguments name of other elements, when all exist.
    fn resolve(&mut self, _cx: &mut Context) -> Result<(), SetupError> {
        Ok(())
    }

    /// Prepares to run, when all elements are configured.
    fn initialize(&mut self, _cx: &mut Context) -> Result<(), SetupError> {
        Ok(())
    }

    /// Judges one packet.
    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict;

    /// Does in place what `filter` does with a packet that plainly passes. If this one may not, or needs the context,
    /// returns `false` without having changed anything, and `filter` judges it.
    #[inline(always)]
    fn pass(&mut self, _packet: &mut Packet) -> bool {
        false
    }

    /// Looks at a batch before its packets are judged one by one: to prefetch, or to read the clock once.
    #[inline(always)]
    fn begin(&mut self, _cx: &mut Context, _batch: &Batch) {}

    /// Runs the task.
    fn task(&mut self, _cx: &mut Context) -> bool {
        false
    }

    /// Runs a timer.
    fn timer(&mut self, _cx: &mut Context, _timer: usize) {}

    /// Takes over the state of an old element of the same name and class.
    fn inherit(&mut self, _old: &mut Self, _cx: &mut Context) {}

    /// What other elements may use of it.
    fn export(&self) -> Option<Rc<dyn Any>> {
        None
    }

    /// The router stops for good: flush and close.
    fn cleanup(&mut self, _cx: &mut Context) {}
}

impl<F: Filter> Element for F {
    type Args = F::Args;
    const HANDLERS: &'static [Handler<Self>] = F::HANDLERS;
    const LIVE: bool = F::LIVE;

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
        let mut place = (passed > 0).then_some(0);
        batch.filter_map_from(passed, |packet| match self.filter(cx, packet) {
            Verdict::Pass(packet) if cx.is_untouched() => {
                place = Some(0);
                Some(packet)
            }
            verdict => settle_in_order(cx, verdict, &mut place),
        });
        // Behind what was emitted before the first of them, as single packets would have come.
        cx.emit_at(place.unwrap_or(0), 0, batch);
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

    fn cleanup(&mut self, cx: &mut Context) {
        Filter::cleanup(self, cx);
    }
}

/// Lets packets pass in place up to the first that `filter` has to judge; how many.
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

/// Settles a verdict among others of a batch: gives a packet back that passes, unless something was emitted that must
/// come before it. `place` becomes that of the first that came back.
#[inline(never)]
fn settle_in_order(cx: &mut Context, verdict: Verdict, place: &mut Option<usize>) -> Option<Packet> {
    match verdict {
        Verdict::Pass(packet) if !cx.is_touched(0) => {
            place.get_or_insert(cx.place());
            Some(packet)
        }
        verdict => {
            settle(cx, verdict);
            None
        }
    }
}

/// Sends or drops a packet as the verdict says.
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
