//! Reports the writes to handlers that elements make on their own, and that change the configuration.

use crate::configuration::Configuration;
use crate::context::BoxContext;
use crate::limits::OWN_WRITES_INTERVAL;
use boundary::{Event, WriteEffect, Written};
use packet::Timestamp;

/// The reports. A first write is reported at once.
#[derive(Default)]
pub(crate) struct OwnWriteReports {
    /// When the next report may follow.
    next: Timestamp,
}

impl OwnWriteReports {
    /// When a report is due, if there is something to report.
    pub(crate) fn next(&self, configurations: &[Configuration]) -> Option<Timestamp> {
        let has_news = configurations.iter().any(|configuration| configuration.router.has_new_writes());
        has_news.then_some(self.next)
    }

    /// Reports new writes, if it is time. Rows that were reported before are replaced.
    #[inline]
    pub(crate) fn report(&mut self, context: &BoxContext, configurations: &[Configuration]) {
        if self.next(configurations).is_some() {
            self.report_now(context, configurations);
        }
    }

    #[cold]
    fn report_now(&mut self, context: &BoxContext, configurations: &[Configuration]) {
        let now = context.steady();
        let mut events = context.events.borrow_mut();
        if now < self.next {
            return;
        }
        self.next = now + OWN_WRITES_INTERVAL;
        if events.is_full() {
            return;
        }
        for Configuration { name, router, .. } in configurations {
            let name = name.as_bytes();
            if !router.has_new_writes() {
                continue;
            }
            let omitted = router.own_writes(|path, write| {
                let written =
                    for_mailbox(router::Written { effect: write.effect, in_config: write.in_config });
                let (handler, value) = (path.as_bytes(), write.value.as_bytes());
                events.send(&Event::OwnWrites { name, handler, value, written, count: write.count });
            });
            if omitted > 0 {
                events.send(&Event::MoreOwnWrites { name, count: omitted });
            }
        }
    }
}

/// What a write changed, as the mailbox says it.
pub(crate) fn for_mailbox(written: router::Written) -> Written {
    let effect = match written.effect {
        element::WriteEffect::Action => WriteEffect::Action,
        element::WriteEffect::Setting => WriteEffect::Setting,
        element::WriteEffect::Edit => WriteEffect::Edit,
    };
    Written { effect, in_config: written.in_config }
}
