//! How long flows live: for a guaranteed time, then as long as there is room.
//!
//! A flow whose guarantee has not run out is never removed to make room for another. Afterwards it lives on until its
//! timeout; when flows are too many the best-effort flow that would expire first goes.

use crate::Timeouts;

/// When a flow ends, and whether that is a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Whether it is the guarantee that ends then.
    pub guaranteed: bool,
    /// In the owner's ticks.
    pub deadline: u64,
}

/// The flows themselves, which keep their own lifetimes: a packet puts a deadline off there and nowhere else.
pub trait Lifetimed {
    /// The deadline of a flow.
    fn deadline(&self, flow: u32) -> u64;

    /// Makes a flow whose guarantee has run out a best-effort one, and returns the deadline that it has now.
    fn demote(&mut self, flow: u32) -> u64;
}

/// The lifetimes of many flows, in order.
#[derive(Default)]
pub struct Lifetimes {
    best_effort: Timeouts,
    guaranteed: Timeouts,
}

impl Lifetimes {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of flows.
    pub fn len(&self) -> usize {
        self.best_effort.len() + self.guaranteed.len()
    }

    /// Whether there are no flows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Begins a flow's lifetime, or changes it in any way.
    pub fn set(&mut self, flow: u32, lifetime: Lifetime) {
        let Lifetime { guaranteed, deadline } = lifetime;
        let (mine, other) = match guaranteed {
            true => (&mut self.guaranteed, &mut self.best_effort),
            false => (&mut self.best_effort, &mut self.guaranteed),
        };
        other.remove(flow);
        mine.set(flow, deadline);
    }

    /// Tells that a flow's lifetime, which was `old`, is now `new`. Costs nothing if the deadline was only put off.
    #[inline]
    pub fn renew(&mut self, flow: u32, old: Lifetime, new: Lifetime) {
        if old.guaranteed != new.guaranteed {
            self.set(flow, new);
        } else if new.deadline < old.deadline {
            let timeouts = if new.guaranteed { &mut self.guaranteed } else { &mut self.best_effort };
            timeouts.hasten(flow, new.deadline);
        }
    }

    /// Forgets a flow; false if it is not known.
    pub fn remove(&mut self, flow: u32) -> bool {
        self.best_effort.remove(flow) || self.guaranteed.remove(flow)
    }

    /// Takes out a flow that has ended at `now`; called until `None`, it gives all of them, the earliest first.
    pub fn pop_expired(&mut self, now: u64, flows: &mut impl Lifetimed) -> Option<u32> {
        self.demote_expired(now, flows);
        self.best_effort.pop_expired(now, |flow| flows.deadline(flow))
    }

    /// The flow that has to go at `now` to make room: the best-effort one that ends first. `None` if all are
    /// guaranteed; then it is the newest flow that finds no room.
    pub fn victim(&mut self, now: u64, flows: &mut impl Lifetimed) -> Option<u32> {
        self.demote_expired(now, flows);
        self.best_effort.earliest(|flow| flows.deadline(flow)).map(|(flow, _)| flow)
    }

    /// The flow that goes first when promises don't count: the earliest best-effort one, else the earliest.
    pub fn first(&mut self, flows: &impl Lifetimed) -> Option<u32> {
        let deadline = |flow| flows.deadline(flow);
        let first = self.best_effort.earliest(deadline).or_else(|| self.guaranteed.earliest(deadline));
        first.map(|(flow, _)| flow)
    }

    /// All flows, in no order.
    pub fn flows(&self) -> impl Iterator<Item = u32> {
        self.best_effort.handles().chain(self.guaranteed.handles())
    }

    fn demote_expired(&mut self, now: u64, flows: &mut impl Lifetimed) {
        while let Some(flow) = self.guaranteed.pop_expired(now, |flow| flows.deadline(flow)) {
            self.best_effort.set(flow, flows.demote(flow));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use random::Random;

    /// Ticks that a best-effort flow lives on after its guarantee.
    const AFTERLIFE: u64 = 50;

    #[derive(Default)]
    struct Flows(BTreeMap<u32, Lifetime>);

    impl Lifetimed for Flows {
        fn deadline(&self, flow: u32) -> u64 {
            self.0[&flow].deadline
        }

        fn demote(&mut self, flow: u32) -> u64 {
            let lifetime = self.0.get_mut(&flow).expect("a flow");
            assert!(lifetime.guaranteed);
            *lifetime = Lifetime { guaranteed: false, deadline: lifetime.deadline + AFTERLIFE };
            lifetime.deadline
        }
    }

    impl Flows {
        /// What the flow's lifetime is at `now`, if guarantees that have run out count as such.
        fn effective(&self, now: u64) -> impl Iterator<Item = (u64, u32)> {
            self.0.iter().filter_map(move |(&flow, lifetime)| match *lifetime {
                Lifetime { guaranteed: true, deadline } if deadline > now => None,
                Lifetime { guaranteed: true, deadline } => Some((deadline + AFTERLIFE, flow)),
                Lifetime { guaranteed: false, deadline } => Some((deadline, flow)),
            })
        }
    }

    #[test]
    fn agrees_with_a_search_through_all_flows() {
        let mut random = Random::new(6);
        let mut flows = Flows::default();
        let mut lifetimes = Lifetimes::new();
        for now in 0..20_000u64 {
            let flow = random.below(60);
            let guaranteed = random.below(2) == 0;
            let new = Lifetime { guaranteed, deadline: now + 1 + u64::from(random.below(200)) };
            match (flows.0.insert(flow, new), random.below(8)) {
                (Some(_), 0) => {
                    flows.0.remove(&flow);
                    assert!(lifetimes.remove(flow) && !lifetimes.remove(flow));
                }
                (Some(old), _) => lifetimes.renew(flow, old, new),
                (None, _) => lifetimes.set(flow, new),
            }
            assert_eq!((lifetimes.len(), lifetimes.flows().count()), (flows.0.len(), flows.0.len()));

            let earliest = flows.effective(now).min();
            let victim = lifetimes.victim(now, &mut flows);
            assert_eq!(victim.map(|flow| flows.deadline(flow)), earliest.map(|(deadline, _)| deadline));
            if let (None, Some(first)) = (victim, lifetimes.first(&flows)) {
                assert_eq!(
                    Some(flows.deadline(first)),
                    flows.0.values().map(|lifetime| lifetime.deadline).min()
                );
            }
            if random.below(10) == 0 {
                let mut last = 0;
                while let Some(flow) = lifetimes.pop_expired(now, &mut flows) {
                    let Lifetime { guaranteed, deadline } = flows.0[&flow];
                    assert!(!guaranteed && last <= deadline && deadline <= now);
                    last = deadline;
                    flows.0.remove(&flow);
                }
                assert!(flows.0.values().all(|lifetime| lifetime.deadline > now));
            }
        }
    }
}
