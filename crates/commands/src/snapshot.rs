//! The counters of a running configuration, of one engine or of several together.

use element::Fate;
use packet::Timestamp;
use router::{Account, Router};

/// The counters of a running configuration.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) elements: Vec<ElementCounts>,
    /// The connections that lead to elements that discard packets, with the packets.
    pub(crate) discards: Vec<(String, u64)>,
    /// The elements in which packets wait, with their number and the highest age.
    pub(crate) waiting: Vec<(String, u64, Option<Timestamp>)>,
    pub(crate) account: Account,
}

/// The counters of an element.
#[derive(Debug)]
pub(crate) struct ElementCounts {
    pub(crate) name: String,
    pub(crate) class: &'static str,
    pub(crate) packets_in: u64,
    pub(crate) packets_out: u64,
    /// Lost packets by reason.
    pub(crate) lost: Vec<(String, u64)>,
}

impl Snapshot {
    /// The present counters of an engine.
    pub(crate) fn of(router: &Router) -> Snapshot {
        let losses = router.losses();
        let elements = router.elements().zip(router.classes()).zip(router.counts());
        let elements = elements.map(|((name, class), (packets_in, packets_out))| {
            let own = losses.iter().filter(|loss| loss.element == name);
            let lost = own.map(|loss| (loss.reason.to_string(), loss.packets)).collect();
            ElementCounts { name: name.to_string(), class, packets_in, packets_out, lost }
        });
        let discards = router.discards().into_iter().map(|one| (one.connection, one.packets));
        let waiting = router.waiting().map(|(element, packets, age)| (element.to_string(), packets, age));
        Snapshot {
            elements: elements.collect(),
            discards: discards.collect(),
            waiting: waiting.collect(),
            account: router.account(),
        }
    }

    /// Adds the counters of another engine that runs the same configuration.
    pub(crate) fn add(&mut self, other: Snapshot) {
        if self.elements.is_empty() {
            return *self = other;
        }
        for (own, other) in self.elements.iter_mut().zip(other.elements) {
            own.packets_in += other.packets_in;
            own.packets_out += other.packets_out;
            add_all(&mut own.lost, other.lost);
        }
        add_all(&mut self.discards, other.discards);
        for (name, packets, age) in other.waiting {
            match self.waiting.iter_mut().find(|(known, ..)| *known == name) {
                Some((_, sum, oldest)) => {
                    *sum += packets;
                    *oldest = (*oldest).max(age);
                }
                None => self.waiting.push((name, packets, age)),
            }
        }
        self.account.add(&other.account);
    }

    /// Packets by fate, as pairs.
    pub(crate) fn fates(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Fate::COUNTED.into_iter().map(|fate| (fate.name(), self.account.fates.of(fate)))
    }
}

impl ElementCounts {
    /// Lost packets.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.iter().map(|(_, packets)| packets).sum()
    }
}

/// Adds counters of the same name.
fn add_all(sums: &mut Vec<(String, u64)>, more: Vec<(String, u64)>) {
    for (name, packets) in more {
        match sums.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += packets,
            None => sums.push((name, packets)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_the_same_name_add_up() {
        let shard = |lost: &str| Snapshot {
            elements: vec![ElementCounts {
                name: "q".into(),
                class: "Queue",
                packets_in: 3,
                packets_out: 2,
                lost: vec![(lost.into(), 1)],
            }],
            discards: vec![("q -> d".into(), 2)],
            waiting: vec![("q".into(), 1, Some(Timestamp::from_millis(lost.len() as i64)))],
            account: Account::default(),
        };
        let mut sum = Snapshot::default();
        ["reset", "overflow", "reset"].into_iter().for_each(|lost| sum.add(shard(lost)));
        let q = &sum.elements[0];
        assert_eq!((q.packets_in, q.packets_out, q.lost()), (9, 6, 3));
        assert_eq!(q.lost, [("reset".into(), 2), ("overflow".into(), 1)]);
        assert_eq!(sum.discards, [("q -> d".into(), 6)]);
        assert_eq!(sum.waiting, [("q".into(), 3, Some(Timestamp::from_millis(8)))]);
    }
}
