//! What the engine publishes of its account after each turn, so that it is known when the box has ended.

use crate::port::Port;
use boundary::{Mapped, PacketFates, PublishedAccount, StatusPage};
use element::{Fate, FateCounts, Reason};
use router::{Router, Totals};

/// Rounds with work after which the account is published at the latest.
const MAX_ROUNDS: u32 = 32;

/// The published account.
#[derive(Default)]
pub(crate) struct AccountPublisher {
    /// Of configurations that were removed.
    pub(crate) past: Totals,
    totals: Totals,
    page: PublishedAccount,
    /// Rounds with work since it was published.
    rounds: u32,
}

impl AccountPublisher {
    /// Whether it is to be published after a round: if something has happened since the last time, and this was the last round
    /// of a turn.
    #[inline]
    pub(crate) fn is_due(&mut self, worked: bool, is_turn_over: bool) -> bool {
        self.rounds += u32::from(worked);
        self.rounds > 0 && (!worked || is_turn_over || self.rounds >= MAX_ROUNDS)
    }

    /// Publishes the account of these routers and ports.
    pub(crate) fn publish<'a>(
        &mut self,
        routers: impl Iterator<Item = &'a Router>,
        ports: &[Port],
        status: &StatusPage<Mapped>,
    ) {
        let Self { past, totals, page, rounds } = self;
        *rounds = 0;
        totals.clear();
        totals.add(past);
        routers.for_each(|router| router.add_totals(totals));
        (page.received, page.sent) = (0, 0);
        for port in ports {
            let stats = port.stats();
            page.received += stats.received_packets;
            page.sent += stats.sent_packets;
            // Packets that found no buffer at a port reached no element.
            if port.no_buffer() > 0 {
                totals.add_lost(Reason::NO_BUFFER, port.no_buffer());
            }
        }
        page.fates = fates(&totals.fates);
        page.fates.received += ports.iter().map(Port::no_buffer).sum::<u64>();
        page.unlisted = totals.unlisted;
        page.lost.clear();
        let listed =
            totals.lost.iter().filter_map(|(reason, packets)| Some((reason.listed_number()?, *packets)));
        page.lost.extend(listed);
        status.publish_account(page);
    }
}

/// Numbers of packets as the host gets them.
pub(crate) fn fates(counts: &FateCounts) -> PacketFates {
    PacketFates {
        received: counts.of(Fate::Received),
        made: counts.of(Fate::Made),
        copied: counts.of(Fate::Copied),
        delivered: counts.of(Fate::Delivered),
        discarded: counts.of(Fate::Discarded),
        consumed: counts.of(Fate::Consumed),
        merged: counts.of(Fate::Merged),
    }
}
