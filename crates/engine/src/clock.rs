//! Derives time from the time stamp counter.

use boundary::BootInfo;
use core::cell::Cell;
use packet::Timestamp;

/// The clock fields of the boot info.
#[derive(Clone, Copy, Debug)]
struct ClockBase {
    tsc: u64,
    unix_ns: i64,
    /// Nanoseconds per cycle, times 2^32.
    scale: u64,
}

/// A clock whose steady time is that of the counter, starting at zero.
#[derive(Debug)]
pub(crate) struct Clock(Cell<ClockBase>);

impl Clock {
    pub(crate) fn new(info: &BootInfo) -> Clock {
        Clock(Cell::new(ClockBase::of(info)))
    }

    /// Switches to another boot info, after the box was copied. Steady time continues: the counter is the host's.
    pub(crate) fn set(&self, info: &BootInfo) {
        self.0.set(ClockBase::of(info));
    }

    /// Steady time at this value of the counter.
    pub(crate) fn steady(&self, tsc: u64) -> Timestamp {
        Timestamp::from_nanos(nanoseconds(tsc, self.0.get().scale))
    }

    /// Wall-clock time at this value of the counter.
    pub(crate) fn wall(&self, tsc: u64) -> Timestamp {
        let base = self.0.get();
        let since = nanoseconds(tsc, base.scale).saturating_sub(nanoseconds(base.tsc, base.scale));
        Timestamp::from_nanos(base.unix_ns.saturating_add(since))
    }

    /// The first value of the counter at which steady time has reached `at`.
    pub(crate) fn tsc(&self, at: Timestamp) -> u64 {
        let nanoseconds = u128::from(at.nanos().max(0).unsigned_abs());
        let cycles = (nanoseconds << 32).div_ceil(u128::from(self.0.get().scale.max(1)));
        u64::try_from(cycles).unwrap_or(u64::MAX)
    }
}

impl ClockBase {
    fn of(info: &BootInfo) -> ClockBase {
        let scale = (1_000_000_000u128 << 32) / u128::from(info.tsc_hz.max(1));
        ClockBase {
            tsc: info.clock_tsc,
            unix_ns: i64::try_from(info.clock_unix_ns).unwrap_or(i64::MAX),
            scale: u64::try_from(scale).unwrap_or(u64::MAX),
        }
    }
}

fn nanoseconds(cycles: u64, scale: u64) -> i64 {
    i64::try_from((u128::from(cycles) * u128::from(scale)) >> 32).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use boundary::{CpuFeatures, PlatformKind};

    fn clock(tsc_hz: u64) -> Clock {
        Clock::new(&BootInfo {
            platform: PlatformKind::Thread,
            features: CpuFeatures::default(),
            tsc_hz,
            clock_tsc: 1_000,
            clock_unix_ns: 5_000_000_000,
            seeds: [0; 4],
            regions: Vec::new(),
            ports: Vec::new(),
            pairs: 1,
        })
    }

    #[test]
    fn time_follows_the_counter() {
        let clock = clock(2_000_000_000);
        assert_eq!(clock.wall(1_000), Timestamp::from_parts(5, 0));
        assert_eq!(clock.wall(3_000), Timestamp::from_parts(5, 1_000));
        assert_eq!(clock.steady(4_000_000_000).seconds(), 2);
        assert_eq!(clock.tsc(Timestamp::from_parts(2, 0)), 4_000_000_000);
    }

    #[test]
    fn alarms_are_never_early_and_nothing_overflows() {
        for rate in [1, 999_999_937, 2_099_998_001, 5_000_000_000] {
            let clock = clock(rate);
            for nanos in [1, 12_345, 999_999_999, 86_400_000_000_000] {
                let at = Timestamp::from_nanos(nanos);
                let late = (clock.steady(clock.tsc(at)) - at).nanos();
                assert!((0..=1_000_000_000 / rate as i64 + 1).contains(&late), "{rate} {nanos}: {late}");
            }
            clock.wall(u64::MAX);
            clock.tsc(Timestamp::MAX);
        }
    }
}
