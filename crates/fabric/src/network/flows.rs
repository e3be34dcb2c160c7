//! Flows of steering switches.

use super::attach::Network;
use super::ended_flows::EndedFlows;
use super::faces::prepare_port;
use super::records::SwitchRecord;
use crate::error::{OperationError, PortError};
use crate::limits::{
    MAX_CONDITION_BYTES, MAX_CONDITIONS, MAX_EXPIRED_FLOWS, MAX_FLOWS, MAX_FLOWS_OF_REPLY, MAX_MATCHES,
};
use model::{FlowOutput, FlowStatus, PortName, SteeringStatus, SwitchName};
use protocol::fabric::{FieldMatch, FlowDefinition};
use std::time::Duration;
use switch::{Field, Flow, FlowError, ForwardingMode, Match, PortKey, Shards, Steering, SteeringShards};

/// Why a flow is refused that no daemon of ours orders.
pub(super) fn malformed(what: &'static str) -> OperationError {
    PortError::Malformed(what).into()
}

pub(super) fn steering<'a>(
    switch: &SwitchName,
    runner: &'a mut Shards<ForwardingMode>,
) -> Result<&'a mut Steering, OperationError> {
    match runner.forward() {
        ForwardingMode::Steering(steering) => Ok(steering),
        _ => Err(PortError::NotSteering(switch.clone()).into()),
    }
}

/// The flows of each thread's shard: what changes one must change all.
pub(super) fn all_steering<'a>(
    switch: &SwitchName,
    runner: &'a mut Shards<ForwardingMode>,
) -> Result<Vec<&'a mut Steering>, OperationError> {
    let steering = |forward: &'a mut ForwardingMode| match forward {
        ForwardingMode::Steering(steering) => Ok(&mut **steering),
        _ => Err(PortError::NotSteering(switch.clone()).into()),
    };
    runner.forwards().map(steering).collect()
}

/// The key of a port's name.
pub(super) fn port_key(record: &mut SwitchRecord, name: &PortName) -> Result<PortKey, OperationError> {
    record.port_number(name).map(PortKey)
}

/// The match with these conditions, which a stranger may have written.
fn checked_match(conditions: &[FieldMatch]) -> Result<Match, OperationError> {
    if conditions.len() > MAX_CONDITIONS {
        return Err(malformed("a match has too many conditions"));
    }
    let wide = |[high, low]: [u64; 2]| u128::from(high) << 64 | u128::from(low);
    conditions.iter().try_fold(Match::any(), |all, condition| {
        let field = Field::ALL.iter().find(|field| **field as u8 == condition.field);
        let field = field.ok_or_else(|| malformed("a match has an unknown field"))?;
        let with = all.with_masked(*field, wide(condition.value), wide(condition.mask));
        with.map_err(|error| PortError::Match(error).into())
    })
}

fn seconds(count: Option<u32>) -> Option<Duration> {
    count.map(|count| Duration::from_secs(count.into()))
}

impl Network {
    /// Gives a port of a steering switch the key of its name, and the number of the tunnel that it is.
    pub(super) fn name_port(&mut self, switch: &SwitchName, name: &PortName) -> Result<(), OperationError> {
        let (record, runner) = self.record_and_runner(switch)?;
        let Some(entry) = record.ports.get(name) else { return Ok(()) };
        let (id, tunnel) = (entry.id, entry.definition.driver.tunnel().map(|tunnel| u32::from(tunnel.vni)));
        let Ok(mut all) = all_steering(switch, runner) else { return Ok(()) };
        let named =
            port_key(record, name).map(|key| all.iter_mut().all(|steering| steering.set_port_key(id, key)));
        match named {
            Ok(true) => {
                if let Some(tunnel) = tunnel {
                    all.iter_mut().for_each(|steering| steering.set_tunnel(id, tunnel.into()));
                }
                prepare_port(record, runner, name);
                Ok(())
            }
            failed => {
                self.drop_port(switch, name);
                failed.and(Err(malformed("the flows name too many ports")))
            }
        }
    }

    /// Adds a flow.
    pub(crate) fn add_flow(
        &mut self,
        switch: &SwitchName,
        definition: &FlowDefinition,
    ) -> Result<(), OperationError> {
        let FlowDefinition { id, matches, flow } = definition;
        let (record, runner) = self.record_and_runner(switch)?;
        let now = runner.now();
        let mut all = all_steering(switch, runner)?;
        if all.iter().any(|steering| steering.len() >= MAX_FLOWS) {
            return Err(OperationError::Limit("flows of the switch", MAX_FLOWS));
        }
        if matches.len() > MAX_MATCHES
            || flow.condition.as_ref().is_some_and(|text| text.len() > MAX_CONDITION_BYTES)
        {
            return Err(malformed("the condition of the flow is too long"));
        }
        if [flow.idle_seconds, flow.timeout_seconds].contains(&Some(0)) {
            return Err(malformed("a timeout is zero"));
        }
        let matches = matches.iter().map(|conditions| checked_match(conditions)).collect::<Result<_, _>>()?;
        if record.flows.contains_key(id) {
            return Err(PortError::Flow(FlowError::Exists(*id)).into());
        }
        let from = flow.in_port.as_ref().map(|name| port_key(record, name)).transpose()?;
        // The ingress port keeps its key meanwhile.
        record.flows.insert(*id, flow.clone());
        let output = match &flow.output {
            FlowOutput::Port(name) => port_key(record, name).map(switch::FlowOutput::Port),
            FlowOutput::Normal => Ok(switch::FlowOutput::Normal),
            FlowOutput::Flood => Ok(switch::FlowOutput::Flood),
            FlowOutput::Drop => Ok(switch::FlowOutput::Drop),
            FlowOutput::Chain(name) => record.chain_number(name).map(switch::FlowOutput::Chain),
        };
        let added = output.and_then(|output| {
            let flow = Flow {
                id: *id,
                matches,
                from,
                priority: flow.effective_priority(),
                output,
                idle_timeout: seconds(flow.idle_seconds),
                hard_timeout: seconds(flow.timeout_seconds),
            };
            let added = all.iter_mut().try_for_each(|steering| steering.add_flow(flow.clone(), now));
            added.map_err(|error| {
                // All shards have the same flows, so none of them has added it; else it is removed again.
                for steering in &mut all {
                    steering.remove_flow(*id, now);
                }
                PortError::Flow(error).into()
            })
        });
        if added.is_err() {
            record.flows.remove(id);
        }
        added
    }

    /// Removes a flow.
    pub(crate) fn remove_flow(&mut self, switch: &SwitchName, id: u64) -> Result<(), OperationError> {
        let (record, runner) = self.record_and_runner(switch)?;
        let now = runner.now();
        let mut all = all_steering(switch, runner)?;
        let removed = all.iter_mut().filter_map(|steering| steering.remove_flow(id, now)).last();
        removed.ok_or_else(|| PortError::NoFlow(switch.clone(), id))?;
        record.flows.remove(&id);
        Ok(())
    }

    /// The flows of a switch with numbers above `after`, with their counters: at most `most`, and at most those of a reply.
    pub(crate) fn flows(
        &mut self,
        switch: &SwitchName,
        after: u64,
        most: Option<u32>,
    ) -> Result<Vec<FlowStatus>, OperationError> {
        let (record, runner) = self.record_and_runner(switch)?;
        let now = runner.now();
        let most = most.map_or(MAX_FLOWS_OF_REPLY, |most| MAX_FLOWS_OF_REPLY.min(most as usize));
        let mut lists =
            all_steering(switch, runner)?.into_iter().map(|steering| steering.flows(after, most, now));
        let mut flows = lists.next().unwrap_or_default();
        for list in lists {
            for (sum, found) in flows.iter_mut().zip(list).filter(|(sum, found)| sum.id == found.id) {
                *sum += found;
            }
        }
        let status = |found: switch::FlowStatus| {
            Some(FlowStatus {
                id: found.id,
                flow: record.flows.get(&found.id)?.clone(),
                packets: found.packets,
                bytes: found.bytes,
                age_seconds: found.age.as_secs(),
                unused_seconds: found.idle.as_secs(),
            })
        };
        Ok(flows.into_iter().filter_map(status).collect())
    }

    /// The state of a steering switch; `None` for others.
    pub(super) fn steering_status(&mut self, switch: &SwitchName) -> Option<SteeringStatus> {
        let (_, runner) = self.record_and_runner(switch).ok()?;
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let of_shard = |steering: &mut Steering| {
            let (cache, fragments) = (steering.cache_counters(), steering.fragment_counters());
            let cache_hits = cache.hits + cache.confirmed;
            SteeringStatus {
                flows: number(steering.len()),
                controller_entries: number(steering.controller_entries()),
                lookups: cache_hits + cache.misses + cache.ended + cache.superseded,
                cache_hits,
                cache_evictions: cache.evicted,
                fragments_followed: fragments.resolved,
                fragments_unknown: fragments.unresolved,
                lost_reports: steering.lost_reports(),
            }
        };
        let all = all_steering(switch, runner).ok()?.into_iter().map(of_shard);
        all.reduce(|sum, other| SteeringStatus {
            lookups: sum.lookups + other.lookups,
            cache_hits: sum.cache_hits + other.cache_hits,
            cache_evictions: sum.cache_evictions + other.cache_evictions,
            fragments_followed: sum.fragments_followed + other.fragments_followed,
            fragments_unknown: sum.fragments_unknown + other.fragments_unknown,
            lost_reports: sum.lost_reports + other.lost_reports,
            ..sum
        })
    }

    /// Reports flows that end by a timeout from now on.
    pub(crate) fn report_ended_flows(&mut self, report: EndedFlows) {
        self.ended_flows = Some(report);
    }

    /// Ends flows whose timeouts have passed: a bounded number. Returns the time until the next one may end.
    pub(super) fn expire_flows(&mut self) -> Option<Duration> {
        let mut next: Option<Duration> = None;
        // With several threads a look is rarer, because it stops them: it takes less than a millisecond.
        let times = self.thread_count().pow(2).min(8);
        for (record, runner) in self.switches.iter_mut().zip(self.runners.iter_mut().skip(1)) {
            let now = runner.now();
            let mut all: Vec<&mut Steering> = runner
                .forwards()
                .filter_map(|forward| match forward {
                    ForwardingMode::Steering(steering) => Some(&mut **steering),
                    _ => None,
                })
                .collect();
            for ended in Steering::expire_flows_of(&mut all, now, MAX_EXPIRED_FLOWS * times) {
                record.flows.remove(&ended.status.id);
                if let Some(report) = &mut self.ended_flows {
                    report.note(&record.name, ended);
                }
            }
            let mut shards = SteeringShards::new(all);
            shards.expire_entries(now, MAX_EXPIRED_FLOWS * times);
            let due = shards.next_deadline().map(|time| Duration::from_nanos(time.saturating_sub(now)));
            next = [next, due].into_iter().flatten().min();
        }
        next
    }
}
