//! What a function can do during a call.

use core::time::Duration;

use alloc::format;
use element::{Context, Fate, Reason};
use packet::{Packet, Timestamp};

/// The interface to the router that a function has during a call.
pub struct Call<'c, 'r> {
    context: &'c mut Context<'r>,
    names: &'static [&'static str],
    reasons: &'c [Reason],
}

/// A time span as the router has it. One that is too long never ends.
pub(crate) fn span(time: Duration) -> Timestamp {
    Timestamp::from_nanos(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX / 2))
}

impl<'c, 'r> Call<'c, 'r> {
    pub(crate) fn new(
        context: &'c mut Context<'r>,
        names: &'static [&'static str],
        reasons: &'c [Reason],
    ) -> Call<'c, 'r> {
        Call { context, names, reasons }
    }

    /// Sends a packet to an output. If the output does not exist, the packet is dropped as `no_output`.
    pub fn send(&mut self, output: usize, packet: Packet) {
        self.context.send(output, packet);
    }

    /// Drops a packet for a reason in the function's `DROPS`.
    pub fn drop(&mut self, packet: Packet, reason: &'static str) {
        self.context.drop(packet, self.reason(reason));
    }

    /// The reason of a name. One that the function does not declare, or too many of them, count as `undeclared`.
    fn reason(&self, name: &str) -> Reason {
        let found = self.names.iter().position(|known| *known == name);
        found.and_then(|index| self.reasons.get(index)).copied().unwrap_or(Reason::UNDECLARED)
    }

    /// Makes a packet. `None` if there is no buffer, which is counted. The class declares `fates = "made"`.
    pub fn packet(&self, bytes: &[u8]) -> Option<Packet> {
        self.context.packet(bytes)
    }

    /// A copy of a packet. `None` if there is no buffer, which is counted. The class declares `fates = "copied"`.
    pub fn copy(&self, packet: &Packet) -> Option<Packet> {
        self.context.duplicate(packet)
    }

    /// Ends a packet that the function has used up. The class declares `fates = "consumed"`.
    pub fn consume(&mut self, packet: Packet) {
        self.context.end(packet, Fate::Consumed);
    }

    /// Monotonic time. It is the same during a whole call.
    pub fn now(&self) -> Timestamp {
        self.context.steady()
    }

    /// The time of day.
    pub fn wall_clock(&self) -> Timestamp {
        self.context.now()
    }

    /// Has [`Function::timer`](crate::Function::timer) called after a time, once. It replaces an earlier setting of this
    /// timer.
    pub fn set_timer(&self, timer: usize, after: Duration) {
        self.context.set_timer_after(timer, span(after));
    }

    /// Cancels a timer.
    pub fn clear_timer(&self, timer: usize) {
        self.context.clear_timer(timer);
    }

    /// Sends a message to another function of the configuration, by the name of its element. It arrives after this call; if
    /// it is refused, the log says so.
    pub fn message(&self, to: &str, text: &str) {
        self.context.defer_write(&format!("{to}.message"), text);
    }

    /// Writes a line to the log of the box.
    pub fn log(&self, text: &str) {
        self.context.log(text);
    }

    /// A random number below 2^31.
    pub fn random(&self) -> u32 {
        self.context.random()
    }

    /// The number of connected outputs.
    pub fn outputs(&self) -> usize {
        self.context.outputs()
    }

    /// Everything that elements can do.
    pub fn context(&mut self) -> &mut Context<'r> {
        self.context
    }
}
