//! Lifetimes of flows: a guaranteed period, then best effort until the timeout.
//!
//! During its guaranteed period a flow is never evicted to make room for another. Afterwards it is best-effort: it
//! lives until its timeout, but when the table is full, the best-effort flow that would expire first is evicted.

use crate::Timeouts;

/// The end of a flow's current period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Whether the period is the guaranteed one.
    pub guaranteed: bool,
    /// In the owner's ticks.
    pub deadline: u64,
}

/// The flows, which store their own lifetimes. A packet that postpones a deadline changes it only there.
pub trait LifetimeStore {
    /// The deadline of a flow.
    fn deadline(&self, flow: u32) -> u64;

    /// Makes a flow best-effort after its guaranteed period, and returns its new deadline.
    fn demote(&mut self, flow: u32) -> u64;
}

/// The lifetimes of many flows, ordered by deadline.
#[derive(Default)]
pub struct Lifetimes {
    best_effort: Timeouts,
    guaranteed: Timeouts,
}

impl Lifetimes {
    /// Creates an empty set.
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

    /// Starts a flow's lifetime, or replaces it.
    pub fn set(&mut self, flow: u32, lifetime: Lifetime) {
        let Lifetime { guaranteed, deadline } = lifetime;
        let (mine, other) = match guaranteed {
            true => (&mut self.guaranteed, &mut self.best_effort),
            false => (&mut self.best_effort, &mut self.guaranteed),
        };
        other.remove(flow);
        mine.set(flow, deadline);
    }

    /// Updates a flow's lifetime from `old` to `new`. Free if the deadline was only postponed.
    #[inline]
    pub fn renew(&mut self, flow: u32, old: Lifetime, new: Lifetime) {
        if old.guaranteed != new.guaranteed {
            self.set(flow, new);
        } else if new.deadline < old.deadline {
            let timeouts = if new.guaranteed { &mut self.guaranteed } else { &mut self.best_effort };
            timeouts.set_if_earlier(flow, new.deadline);
        }
    }

    /// Removes a flow; false if it is not in the set.
    pub fn remove(&mut self, flow: u32) -> bool {
        self.best_effort.remove(flow) || self.guaranteed.remove(flow)
    }

    /// Removes and returns a flow that has expired at `now`. Repeated calls until `None` return all of them, the
    /// earliest first.
    pub fn pop_expired(&mut self, now: u64, flows: &mut impl LifetimeStore) -> Option<u32> {
        self.demote_expired(now, flows);
        self.best_effort.pop_expired(now, |flow| flows.deadline(flow))
    }

    /// The flow to evict at `now`: the best-effort flow that expires first. `None` if all flows are guaranteed; then
    /// there is no room for a new flow.
    pub fn victim(&mut self, now: u64, flows: &mut impl LifetimeStore) -> Option<u32> {
        self.demote_expired(now, flows);
        self.best_effort.earliest(|flow| flows.deadline(flow)).map(|(flow, _)| flow)
    }

    /// The flow to evict when guarantees are ignored: the earliest best-effort flow, or else the earliest flow.
    pub fn first(&mut self, flows: &impl LifetimeStore) -> Option<u32> {
        let deadline = |flow| flows.deadline(flow);
        let first = self.best_effort.earliest(deadline).or_else(|| self.guaranteed.earliest(deadline));
        first.map(|(flow, _)| flow)
    }

    /// All flows, in unspecified order.
    pub fn flows(&self) -> impl Iterator<Item = u32> {
        self.best_effort.handles().chain(self.guaranteed.handles())
    }

    fn demote_expired(&mut self, now: u64, flows: &mut impl LifetimeStore) {
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

    /// Ticks that a flow lives after its guaranteed period.
    const BEST_EFFORT_TICKS: u64 = 50;

    #[derive(Default)]
    struct Flows(BTreeMap<u32, Lifetime>);

    impl LifetimeStore for Flows {
        fn deadline(&self, flow: u32) -> u64 {
            self.0[&flow].deadline
        }

        fn demote(&mut self, flow: u32) -> u64 {
            let lifetime = self.0.get_mut(&flow).expect("a flow");
            assert!(lifetime.guaranteed);
            *lifetime = Lifetime { guaranteed: false, deadline: lifetime.deadline + BEST_EFFORT_TICKS };
            lifetime.deadline
        }
    }

    impl Flows {
        /// The deadlines of the flows that are best-effort at `now`, including those whose guaranteed period has ended.
        fn effective(&self, now: u64) -> impl Iterator<Item = (u64, u32)> {
            self.0.iter().filter_map(move |(&flow, lifetime)| match *lifetime {
                Lifetime { guaranteed: true, deadline } if deadline > now => None,
                Lifetime { guaranteed: true, deadline } => Some((deadline + BEST_EFFORT_TICKS, flow)),
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
