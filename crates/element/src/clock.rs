//! Time as elements see it: read at most once per turn, simulated, or faster or slower than real time.

use alloc::string::{String, ToString};
use core::cell::Cell;

use packet::Timestamp;

use crate::environment::Environment;

/// Time as elements see it.
#[derive(Default)]
pub struct Clock {
    now: Cell<Option<Timestamp>>,
    steady: Cell<Option<Timestamp>>,
    simulated: Cell<Option<Timestamp>>,
    warp: Cell<Option<Warp>>,
}

/// The relation between router time and environment time.
#[derive(Clone, Copy, Debug)]
struct Warp {
    /// Router seconds per environment second.
    speed: f64,
    /// Whether the router never waits: time jumps to the next event.
    no_wait: bool,
    /// The environment's steady time at the start of the warp, followed by both router times.
    environment_steady: Timestamp,
    now: Timestamp,
    steady: Timestamp,
}

impl Clock {
    /// A clock that starts with simulated time, if given.
    pub fn new(simulated: Option<Timestamp>) -> Clock {
        Clock { simulated: Cell::new(simulated), ..Clock::default() }
    }

    /// The current time, if it is simulated.
    pub fn simulated(&self) -> Option<Timestamp> {
        self.simulated.get()
    }

    /// Continues with simulated time from `time`.
    pub fn simulate(&self, time: Timestamp) {
        self.simulated.set(Some(time));
        self.refresh();
    }

    /// Makes the next access read the clock again.
    #[inline]
    pub fn refresh(&self) {
        self.now.set(None);
        self.steady.set(None);
    }

    /// Wall-clock time.
    #[inline]
    pub fn now(&self, environment: &dyn Environment) -> Timestamp {
        read(&self.now, || match (self.simulated.get(), self.warp.get()) {
            (Some(time), _) => time,
            (None, Some(warp)) => warp.now + warp.since(environment),
            (None, None) => environment.now(),
        })
    }

    /// Monotonic time.
    #[inline]
    pub fn steady(&self, environment: &dyn Environment) -> Timestamp {
        read(&self.steady, || match (self.simulated.get(), self.warp.get()) {
            (Some(time), _) => time,
            (None, Some(warp)) => warp.steady + warp.since(environment),
            (None, None) => environment.steady(),
        })
    }

    /// Whether time jumps to the next event instead of waiting for it.
    pub fn skips_waits(&self) -> bool {
        self.simulated.get().is_some() || self.warp.get().is_some_and(|warp| warp.no_wait)
    }

    /// Advances to a later time, if time jumps.
    pub fn skip_to(&self, to: Timestamp, environment: &dyn Environment) {
        if self.simulated.get().is_some() {
            self.simulated.set(Some(to));
        } else if let Some(mut warp) = self.warp.get() {
            let ahead = to - self.steady(environment);
            warp.now += ahead;
            warp.steady += ahead;
            self.warp.set(Some(warp));
        }
        self.refresh();
    }

    /// Converts router time to the environment's steady time.
    pub fn to_environment_time(&self, time: Timestamp) -> Timestamp {
        match self.warp.get().filter(|_| self.simulated.get().is_none()) {
            Some(warp) => warp.environment_steady + scaled(time - warp.steady, 1.0 / warp.speed),
            None => time,
        }
    }

    /// The value of the handler `timewarp`: `simulation`, `nowait`, or the speed.
    pub fn warp_text(&self) -> String {
        match (self.simulated.get(), self.warp.get()) {
            (Some(_), _) => "simulation".into(),
            (None, Some(warp)) if warp.no_wait => "nowait".into(),
            (None, warp) => warp.map_or(1.0, |warp| warp.speed).to_string(),
        }
    }

    /// Sets the speed of time, or makes it jump.
    pub fn set_warp(&self, speed: f64, no_wait: bool, environment: &dyn Environment) {
        self.refresh();
        let (now, steady) = (self.now(environment), self.steady(environment));
        let environment_steady = environment.steady();
        self.warp.set(Some(Warp { speed, no_wait, environment_steady, now, steady }));
    }

    /// Continues with the time and speed of another clock.
    pub fn continue_from(&self, other: &Clock) {
        self.simulated.set(other.simulated.get());
        self.warp.set(other.warp.get());
        self.refresh();
    }
}

impl Warp {
    /// Router time since the start of the warp.
    fn since(&self, environment: &dyn Environment) -> Timestamp {
        scaled(environment.steady() - self.environment_steady, self.speed)
    }
}

fn scaled(span: Timestamp, by: f64) -> Timestamp {
    Timestamp::from_nanos((span.nanos() as f64 * by) as i64)
}

/// The cached time, or else the current one.
#[inline]
fn read(kept: &Cell<Option<Timestamp>>, look: impl FnOnce() -> Timestamp) -> Timestamp {
    kept.get().unwrap_or_else(|| {
        let time = look();
        kept.set(Some(time));
        time
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Descriptor;
    use alloc::vec::Vec;

    /// An environment whose time the test sets; wall-clock time is 1,000 s ahead of steady time.
    struct World(Cell<i64>);

    impl Environment for World {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(1_000_000 + self.0.get())
        }
        fn steady(&self) -> Timestamp {
            Timestamp::from_millis(self.0.get())
        }
        fn seed(&self) -> u64 {
            0
        }
        fn console(&self, _: &str) {}
        fn wait(&self, _: &[(Descriptor, bool, bool)], _: Option<Timestamp>) -> Vec<Descriptor> {
            Vec::new()
        }
    }

    #[test]
    fn time_runs_at_the_set_speed() {
        let (world, clock) = (World(Cell::new(0)), Clock::default());
        let at = |milliseconds: i64| {
            world.0.set(milliseconds);
            clock.refresh();
            (clock.now(&world).millis() - 1_000_000, clock.steady(&world).millis())
        };
        assert_eq!((at(10), clock.warp_text().as_str(), clock.skips_waits()), ((10, 10), "1", false));
        clock.set_warp(0.5, false, &world);
        assert_eq!((at(30), clock.warp_text().as_str()), ((20, 20), "0.5"));
        assert_eq!(clock.to_environment_time(Timestamp::from_millis(25)), Timestamp::from_millis(40));
        clock.set_warp(1.0, true, &world);
        assert_eq!((at(35), clock.warp_text().as_str(), clock.skips_waits()), ((25, 25), "nowait", true));
        clock.skip_to(Timestamp::from_millis(1_000), &world);
        assert_eq!((at(35), at(37)), ((1_000, 1_000), (1_002, 1_002)));
        let successor = Clock::default();
        successor.continue_from(&clock);
        assert_eq!(successor.steady(&world).millis(), 1_002);
        clock.simulate(Timestamp::from_millis(5));
        clock.skip_to(Timestamp::from_millis(7), &world);
        assert_eq!((clock.steady(&world).millis(), clock.warp_text().as_str()), (7, "simulation"));
    }
}
