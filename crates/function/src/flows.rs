//! The state of flows.

use core::time::Duration;

use element::ImportError;
use flow::{Seed, Table, Timeouts};
use packet::{Packet, Timestamp};

use crate::call::span;
use crate::flow_key::FlowKey;
use crate::flow_limits::FlowLimits;

/// Flows that are forgotten at most in one call: packets must not wait.
const MAX_EXPIRED: usize = 64;

/// What a function remembers of each flow, within limits.
pub struct Flows<S> {
    table: Table<[u128; 3], Entry<S>>,
    timeouts: Timeouts,
    limits: FlowLimits,
    /// Flows that were forgotten because there were too many.
    evicted: u64,
}

struct Entry<S> {
    state: S,
    /// When the flow is forgotten, in nanoseconds of monotonic time.
    deadline: u64,
}

fn ticks(time: Timestamp) -> u64 {
    u64::try_from(time.nanos()).unwrap_or(0)
}

impl<S: Default> Flows<S> {
    pub(crate) fn new(seed: Seed, limits: FlowLimits) -> Flows<S> {
        Flows { table: Table::new(seed), timeouts: Timeouts::new(), limits, evicted: 0 }
    }

    /// The number of flows.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no flow.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The number of flows that were forgotten because there were too many.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// The state of the flow of a packet that has just arrived: that of a known flow in either direction, or a new one. `None`
    /// for a packet without a flow.
    pub fn of(&mut self, packet: &Packet, now: Timestamp) -> Option<&mut S> {
        self.at(FlowKey::of(packet)?, now)
    }

    /// The same by the key of the flow. The flow counts as active now.
    pub fn at(&mut self, key: FlowKey, now: Timestamp) -> Option<&mut S> {
        let deadline = ticks(now.wrapping_add(span(self.limits.idle)));
        let words = key.words();
        let handle = match self.table.find(words) {
            Some(handle) => handle,
            None => {
                if self.table.len() >= self.limits.flows {
                    self.evict()?;
                }
                let (handle, _) = self.table.insert(words, Entry { state: S::default(), deadline }).ok()?;
                self.timeouts.set(handle, deadline);
                handle
            }
        };
        let entry = self.table.value_mut(handle)?;
        entry.deadline = deadline;
        Some(&mut entry.state)
    }

    /// The state of a flow, if it is known. It does not count as active.
    pub fn find(&self, key: FlowKey) -> Option<&S> {
        self.table.get(key.words()).map(|entry| &entry.state)
    }

    /// Forgets a flow.
    pub fn remove(&mut self, key: FlowKey) -> Option<S> {
        let handle = self.table.find(key.words())?;
        self.timeouts.remove(handle);
        self.table.remove_handle(handle).map(|(_, entry)| entry.state)
    }

    /// Forgets all flows.
    pub fn clear(&mut self) {
        for handle in self.timeouts.handles() {
            self.table.remove_handle(handle);
        }
        self.timeouts.clear();
    }

    /// The flow with the lowest handle that is not below this one, and its handle.
    pub(crate) fn at_or_after(&self, handle: u32) -> Option<(u32, FlowKey)> {
        let (handle, words, _) = self.table.at_or_after(handle)?;
        Some((handle, FlowKey::from_words(words)))
    }

    /// How long a flow is remembered without packets.
    pub(crate) fn left(&self, key: FlowKey, now: Timestamp) -> Option<Duration> {
        let deadline = self.table.get(key.words())?.deadline;
        Some(Duration::from_nanos(deadline.saturating_sub(ticks(now))))
    }

    /// Adds a flow that another instance had. It forgets no other one for it.
    pub(crate) fn take_over(
        &mut self,
        key: FlowKey,
        state: S,
        left: Duration,
        now: Timestamp,
    ) -> Result<(), ImportError> {
        let words = key.words();
        if self.table.find(words).is_some() {
            return Err(ImportError::Taken);
        }
        if self.table.len() >= self.limits.flows {
            return Err(ImportError::NoRoom);
        }
        let deadline = ticks(now.wrapping_add(span(left.min(self.limits.idle))));
        let inserted = self.table.insert(words, Entry { state, deadline });
        let (handle, _) = inserted.map_err(|_| ImportError::NoRoom)?;
        self.timeouts.set(handle, deadline);
        Ok(())
    }

    /// Forgets the flow that will be idle first.
    fn evict(&mut self) -> Option<()> {
        let table = &self.table;
        let deadline = |handle| table.value(handle).map_or(0, |entry| entry.deadline);
        let (handle, _) = self.timeouts.earliest(deadline)?;
        self.timeouts.remove(handle);
        self.table.remove_handle(handle);
        self.evicted += 1;
        Some(())
    }

    /// Forgets flows that were idle for too long.
    pub(crate) fn expire(&mut self, now: Timestamp) {
        let mut budget = MAX_EXPIRED;
        let now = ticks(now);
        loop {
            let table = &self.table;
            let deadline = |handle| table.value(handle).map_or(0, |entry| entry.deadline);
            let Some(handle) = self.timeouts.pop_expired_within(now, &mut budget, deadline) else { return };
            self.table.remove_handle(handle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv6Addr;
    use core::time::Duration;

    fn key(number: u16) -> FlowKey {
        FlowKey { ends: [(Ipv6Addr::LOCALHOST, 1), (Ipv6Addr::LOCALHOST, number)], protocol: 17 }
    }

    fn seconds(time: i64) -> Timestamp {
        Timestamp::from_parts(time, 0)
    }

    #[test]
    fn flows_are_forgotten_when_idle_or_too_many() {
        let limits = FlowLimits { flows: 3, idle: Duration::from_secs(10) };
        let mut flows: Flows<u32> = Flows::new(Seed::new(1, 2), limits);
        for number in 0..3 {
            *flows.at(key(number), seconds(number.into())).unwrap() += 1;
        }
        *flows.at(key(0), seconds(5)).unwrap() += 1;
        // The second one was idle for longest.
        flows.at(key(3), seconds(6)).unwrap();
        assert_eq!((flows.len(), flows.evicted()), (3, 1));
        assert_eq!(
            [0, 1, 2, 3].map(|number| flows.find(key(number)).copied()),
            [Some(2), None, Some(1), Some(0)]
        );
        flows.expire(seconds(12));
        assert_eq!([0, 2, 3].map(|number| flows.find(key(number)).is_some()), [true, false, true]);
        assert_eq!((flows.remove(key(0)), flows.remove(key(0)), flows.len()), (Some(2), None, 1));
        flows.clear();
        assert!(flows.is_empty() && flows.at(key(3), seconds(13)) == Some(&mut 0));
    }
}
