//! Which fabrics are being rebuilt: connected, but without all of their boxes and switches.

use std::sync::atomic::{AtomicU64, Ordering};

/// The rebuilds of all fabrics.
#[derive(Debug, Default)]
pub(super) struct Rebuilds {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// A rebuild in progress. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Rebuild<'a>(&'a Rebuilds);

/// How many rebuilds had ended at a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment(u64);

impl Rebuilds {
    /// A rebuild begins.
    pub(super) fn begin(&self) -> Rebuild<'_> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        Rebuild(self)
    }

    /// The present moment.
    pub(super) fn watch(&self) -> Moment {
        Moment(self.ended.load(Ordering::SeqCst))
    }

    /// Whether there was a rebuild at any time since that moment.
    pub(super) fn was_any(&self, since: Moment) -> bool {
        self.begun.load(Ordering::SeqCst) > since.0
    }
}

impl Drop for Rebuild<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rebuild_is_seen_while_it_lasts_and_by_those_who_watched_before() {
        let rebuilds = Rebuilds::default();
        let before = rebuilds.watch();
        assert!(!rebuilds.was_any(before));
        let one = rebuilds.begin();
        assert!(rebuilds.was_any(before) && rebuilds.was_any(rebuilds.watch()));
        let other = rebuilds.begin();
        drop(one);
        assert!(rebuilds.was_any(rebuilds.watch()));
        drop(other);
        assert!(rebuilds.was_any(before) && !rebuilds.was_any(rebuilds.watch()));
    }
}
