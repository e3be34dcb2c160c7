//! Timeouts of flows. All shards of a switch have the same flows, with the same deadlines.

use super::flow::{EndedFlow, FlowStatus};
use super::steering::{Steering, StoredFlow};
use flow_table::RemovalReason;
use std::time::Duration;

impl Steering {
    /// Ends flows whose timeouts have passed. Looks at `limit` flows at most, so that frames wait for a bounded time.
    pub fn expire_flows(&mut self, now: u64, limit: usize) -> Vec<EndedFlow> {
        Self::expire_flows_of(&mut [self], now, limit)
    }

    /// As [`expire_flows`](Self::expire_flows), of all shards of a switch: a flow is idle if it is in all of them.
    pub fn expire_flows_of(shards: &mut [&mut Self], now: u64, limit: usize) -> Vec<EndedFlow> {
        let time = Duration::from_nanos(now);
        let mut ended = Vec::new();
        for shard in shards.iter_mut() {
            shard.chains.expire(now);
            shard.tidy_cache(now);
        }
        for _ in 0..limit {
            let Some(due) = shards.first().and_then(|shard| shard.first_due(now)) else { break };
            let (_, id) = due;
            let looks = shards.iter_mut().filter_map(|shard| shard.look_at(due, time));
            let Some((status, timeouts)) = looks.reduce(|(mut sum, timeouts), (status, _)| {
                sum += status;
                (sum, timeouts)
            }) else {
                continue;
            };
            let passed =
                |timeout: Option<Duration>, since: Duration| timeout.is_some_and(|timeout| since >= timeout);
            let [idle_timeout, hard_timeout] = timeouts;
            let reason = if passed(hard_timeout, status.age) {
                RemovalReason::HardTimeout
            } else if passed(idle_timeout, status.idle) {
                RemovalReason::IdleTimeout
            } else {
                let used = time.saturating_sub(status.idle);
                shards.iter_mut().for_each(|shard| shard.schedule_again(id, used));
                continue;
            };
            for shard in shards.iter_mut() {
                shard.remove_flow(id, now);
            }
            ended.push(EndedFlow { status, reason });
        }
        ended
    }

    /// The first deadline, with its flow, if it is time.
    fn first_due(&self, now: u64) -> Option<(u64, u64)> {
        self.deadlines.first().filter(|(deadline, _)| *deadline <= now).copied()
    }

    /// Takes a deadline from the list. Returns the state of its flow, the idle timeout and the hard timeout.
    fn look_at(&mut self, due: (u64, u64), now: Duration) -> Option<(FlowStatus, [Option<Duration>; 2])> {
        self.deadlines.remove(&due);
        let (_, id) = due;
        let mut stored = self.flows.remove(&id)?;
        if let Some(deadline) = stored.deadline.take() {
            self.deadlines.remove(&(deadline, id));
        }
        let status = self.status(&stored, now);
        let timeouts = [stored.flow.idle_timeout, stored.flow.hard_timeout];
        self.flows.insert(id, stored);
        Some((status, timeouts))
    }

    fn schedule_again(&mut self, id: u64, used: Duration) {
        if let Some(mut stored) = self.flows.remove(&id) {
            self.schedule(&mut stored, used);
            self.flows.insert(id, stored);
        }
    }

    /// Notes when the timeouts of a flow are looked at next, which was last used at `used`.
    pub(super) fn schedule(&mut self, stored: &mut StoredFlow, used: Duration) {
        let hard = stored.flow.hard_timeout.map(|timeout| stored.created.saturating_add(timeout));
        let idle = stored.flow.idle_timeout.map(|timeout| used.saturating_add(timeout));
        let deadline = [hard, idle].into_iter().flatten().min();
        stored.deadline = deadline.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        if let Some(deadline) = stored.deadline {
            self.deadlines.insert((deadline, stored.flow.id));
        }
    }
}
