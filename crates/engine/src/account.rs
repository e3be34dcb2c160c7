//! What became of the packets of a box.

use crate::account_publisher::fates;
use crate::engine::Engine;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use boundary::limits::MAX_ACCOUNT_PLACES;
use boundary::{DiscardedPackets, LostPackets, PacketAccount, WaitingPackets};
use core::cmp::Reverse;
use element::Reason;
use packet::Timestamp;

impl Engine {
    /// Publishes the account.
    #[inline(never)]
    pub(crate) fn publish_account(&mut self) {
        let routers = self.configurations.iter().map(|configuration| &configuration.router);
        self.publisher.publish(routers, &self.context.ports, &self.status);
    }

    /// Drops by reason, and what became of the other packets, in all configurations since the box started.
    #[cold]
    pub(crate) fn packet_account(&self) -> (Vec<(String, u64)>, PacketAccount) {
        let (mut all, mut account) = (self.past.clone(), PacketAccount::default());
        let mut templates = 0;
        for configuration in &self.configurations {
            let own = configuration.router.account();
            all.add(&own);
            account.waiting += own.waiting;
            account.oldest = account.oldest.max(nanos(own.oldest));
            templates += own.templates;
            let name = &configuration.name;
            account.losses.extend(configuration.router.losses().into_iter().map(|loss| {
                let router::Loss { element, reason, packets } = loss;
                LostPackets { configuration: name.clone(), element, reason: reason.into_owned(), packets }
            }));
            account.discards.extend(configuration.router.discards().into_iter().map(|discard| {
                let router::DiscardedBy { connection, packets } = discard;
                DiscardedPackets { configuration: name.clone(), connection, packets }
            }));
            account.waits.extend(configuration.router.waiting().map(|(element, packets, oldest)| {
                let (configuration, element) = (name.clone(), element.to_string());
                WaitingPackets { configuration, element, packets, oldest: nanos(oldest) }
            }));
        }
        // Packets that found no buffer at a port reached no element.
        let no_buffer: u64 = self.context.ports.iter().map(|port| port.no_buffer()).sum();
        all.add_lost(Reason::NO_BUFFER.name().into(), no_buffer);
        account.fates = fates(&all.fates);
        account.fates.received += no_buffer;
        account.in_use = (self.context.pool.packets() as u64).saturating_sub(templates);
        sorting::sort_by_key(&mut account.losses, |place| Reverse(place.packets));
        account.losses.truncate(MAX_ACCOUNT_PLACES);
        sorting::sort_by_key(&mut account.discards, |place| Reverse(place.packets));
        account.discards.truncate(MAX_ACCOUNT_PLACES);
        sorting::sort_by_key(&mut account.waits, |place| Reverse(place.packets));
        account.waits.truncate(MAX_ACCOUNT_PLACES);
        sorting::sort(&mut all.lost);
        let drops = all.lost.into_iter().map(|(reason, packets)| (reason.into_owned(), packets));
        (drops.collect(), account)
    }
}

fn nanos(age: Option<Timestamp>) -> u64 {
    age.map_or(0, |age| u64::try_from(age.nanos()).unwrap_or(0))
}
