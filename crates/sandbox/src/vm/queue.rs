//! Who wants a turn of a worker: now, or when an alarm comes.

use crate::cpu;
use crate::vm::seat::Seat;
use crate::vm::turns::{Class, Turns};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What machines that end their turns by themselves may use, after a rest, before strays are served again.
const CREDIT: Duration = Duration::from_millis(20);

/// The machines of a worker that want a turn, now or at some time.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) ready: Turns<Arc<Seat>>,
    /// Who wants to be woken when, by time stamp counter and address: one entry a seat.
    pub(super) alarms: BTreeMap<(u64, usize), Arc<Seat>>,
    /// What has its turn.
    pub(super) running: Option<(Arc<Seat>, Class)>,
    /// The worker waits to be notified.
    pub(super) sleeping: bool,
    pub(super) ended: bool,
}

impl Queue {
    pub(super) fn new() -> Self {
        let ready = Turns::new(cpu::ticks(CREDIT));
        Self { ready, alarms: BTreeMap::new(), running: None, sleeping: false, ended: false }
    }

    /// Adds a seat, unless it is there already.
    pub(super) fn add(&mut self, seat: Arc<Seat>) {
        if !seat.queued.swap(true, Ordering::SeqCst) {
            self.push(seat);
        }
    }

    /// Adds a seat that says of itself that it is there. Who has a turn may no longer overdraw it.
    pub(super) fn push(&mut self, seat: Arc<Seat>) {
        if let Some((running, _)) = &self.running {
            running.set_uncontended_until(0);
        }
        let class = match seat.strays.load(Ordering::Relaxed) {
            false => Class::Prompt,
            true => Class::Stray,
        };
        self.ready.push(seat, class);
    }

    /// Sets a seat's alarm, instead of the one that it has; 0 for none.
    pub(super) fn set_alarm(&mut self, seat: &Arc<Seat>, at: u64) {
        let key = |at| (at, Arc::as_ptr(seat) as usize);
        let before = seat.alarm.swap(at, Ordering::Relaxed);
        if before != 0 {
            self.alarms.remove(&key(before));
        }
        if at != 0 {
            self.alarms.insert(key(at), seat.clone());
        }
    }

    /// Makes ready whose alarm has come; the time until the next one.
    pub(super) fn wake(&mut self) -> Option<Duration> {
        while let Some(alarm) = self.alarms.first_entry() {
            let left = alarm.key().0.saturating_sub(cpu::cycles());
            if left > 0 {
                return Some(cpu::time(left));
            }
            let seat = alarm.remove();
            seat.alarm.store(0, Ordering::Relaxed);
            self.add(seat);
        }
        None
    }
}
