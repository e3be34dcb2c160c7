//! Polling for a moment before sleeping.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A pause between two looks that is longer shows that others need the processor.
const CONTENDED: Duration = Duration::from_micros(300);

/// How long no thread polls then. To get the processor back may take some milliseconds, which sleeping threads need not wait.
const ABSTINENCE: Duration = Duration::from_millis(100);

/// Looks for something for `time` at most, and lets others run between two looks. A thread that sleeps on another processor takes
/// longer to wake (20 to 30 us in a virtual machine) than most answers. Where others need the processor, it looks once, and
/// for a while no thread of this process polls.
pub fn poll_briefly<T>(time: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    static START: OnceLock<Instant> = OnceLock::new();
    static CONTENDED_UNTIL: AtomicU64 = AtomicU64::new(0);
    let begin = Instant::now();
    let since_start = |at: Instant| -> u64 {
        let start = START.get_or_init(|| begin);
        u64::try_from(at.saturating_duration_since(*start).as_micros()).unwrap_or(u64::MAX)
    };
    let found = look();
    if found.is_some() || since_start(begin) < CONTENDED_UNTIL.load(Ordering::Relaxed) {
        return found;
    }
    let mut before = Instant::now();
    while before.saturating_duration_since(begin) < time {
        thread::yield_now();
        let found = look();
        if found.is_some() {
            return found;
        }
        let now = Instant::now();
        if now.saturating_duration_since(before) >= CONTENDED {
            CONTENDED_UNTIL.store(since_start(now + ABSTINENCE), Ordering::Relaxed);
            return None;
        }
        before = now;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, because what one thread finds out concerns all.
    #[test]
    fn threads_poll_unless_others_need_the_processor() {
        const LONG: Duration = Duration::from_secs(60);
        let mut looks = 0;
        let mut count = |most: u32, pause: Duration| {
            looks = 0;
            let look = || {
                looks += 1;
                thread::sleep(pause);
                (looks >= most).then_some(looks)
            };
            poll_briefly(LONG, look)
        };
        assert_eq!(count(1, Duration::ZERO), Some(1));
        // A busy machine may end this one early.
        assert!(matches!(count(3, Duration::ZERO), Some(3) | None));
        // From then on it looks once.
        let begin = Instant::now();
        assert_eq!(count(9, CONTENDED), None);
        let polled = count(9, Duration::ZERO);
        if begin.elapsed() < ABSTINENCE / 2 {
            assert_eq!(polled, None);
        }
    }
}
