//! Going to sleep: set the flags, check for work once more, then sleep.

use crate::device;
use crate::engine::Engine;
use crate::error::EngineError;
use packet::Timestamp;

impl Engine {
    /// Sleeps until there is work or a timer expires, unless there is work already.
    pub(crate) fn idle(&mut self) -> Result<(), EngineError> {
        let platform = self.context.platform.clone();
        let seen = platform.prepare_idle();
        let mut sleeps = self.requests.prepare_sleep()?;
        if !self.outbox.is_empty() {
            sleeps &= self.replies.prepare_sleep()?;
        }
        sleeps &= self.context.events.borrow_mut().prepare_sleep()?;
        let mut ring_error = Ok(());
        for configuration in &self.configurations {
            configuration.router.watched(|descriptor, _, _| {
                let (number, side) = device::port_and_side(descriptor);
                let Some(port) = self.context.ports.get(number) else { return };
                match port.prepare_sleep(side) {
                    Ok(empty) => sleeps &= empty,
                    Err(error) => ring_error = Err(error),
                }
            });
        }
        ring_error?;
        let changed = self.status.stop_requested() || self.status.generation() != self.generation;
        if sleeps && !changed {
            let next = self.next_timer();
            // A copy would have these, and its host would not know.
            let differs = self.configurations.iter().any(|configuration| {
                configuration.router.is_seeded() || configuration.router.has_own_writes()
            });
            self.status.set_clone_safe(Some(next.is_none() && !differs && !self.context.is_mac_used()));
            platform.idle(seen, next.map(|at| self.context.clock.tsc(at)));
            self.status.set_clone_safe(None);
            // Only a box that has slept starts a new turn. If its last check finds work, it continues its turn.
            self.context.quota.begin();
        }
        self.requests.end_sleep();
        self.replies.end_sleep();
        self.context.events.borrow().end_sleep();
        self.context.ports.iter().for_each(|port| port.end_sleep());
        Ok(())
    }

    /// When the next timer of any configuration expires, or own writes are to be reported.
    fn next_timer(&self) -> Option<Timestamp> {
        let timers = self.configurations.iter().filter_map(|configuration| configuration.next_timer);
        timers.chain(self.own_writes.next(&self.configurations)).min()
    }
}
