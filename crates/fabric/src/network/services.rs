//! Services and chains of steering switches.

use super::attach::Network;
use super::faces::prepare_faces;
use super::flows::{all_steering, malformed, port_key};
use super::functions::{counters, fill_in, ports_of};
use super::handover_record::range_plan;
use super::numbers::number;
use super::records::{ServiceRecord, SwitchRecord};
use crate::error::{OperationError, PortError};
use crate::limits::{MAX_CHAINS, MAX_SERVICES};
use ::protocol::fabric::{
    InstanceDefinition, ServiceDefinition, SteeringDefinition, SteeringReply, TranslationDefinition,
};
use flow_table::Output;
use model::{
    AddressRange, BoxName, ChainName, ChainStatus, CreateChain, Destination, HopStatus, HopTraffic,
    InstanceStatus, MAX_CHAIN_LENGTH, MAX_DESTINATIONS, MAX_REPLICAS, MAX_STATIC_MAPPINGS, MappedEnd,
    MappedProtocol, OpenFlowPort, OverruledAnswers, RefusedTuples, RemovedInstances, ServiceName,
    StaticMapping, SwitchName, TranslationStatus,
};
use packet::protocol;
use std::collections::{BTreeMap, BTreeSet};
use switch::{
    ChainPlan, ChainsPlan, DestinationPlan, FlowEnd, ForwardingMode, HopCounters, InstancePlan, MappingPlan,
    PortKey, ServicePlan, Shards, Steering, TranslationPlan,
};

impl ServiceRecord {
    /// The services and chains as outputs of flows, and as the ports that controllers see.
    pub(super) fn outputs(&self) -> impl Iterator<Item = (Output, OpenFlowPort)> {
        let SteeringDefinition { services, chains } = &self.definition;
        let services = services.iter().filter_map(|service| {
            let number = self.services.get(&service.name)?;
            Some((Output::Service(number.into()), OpenFlowPort::Service(service.name.clone())))
        });
        let chains = chains.iter().filter_map(|chain| {
            let number = self.chains.get(&chain.name)?;
            Some((Output::Chain(number.into()), OpenFlowPort::Chain(chain.name.clone())))
        });
        services.chain(chains)
    }
}

/// Checks what a stranger may have written.
fn check(definition: &SteeringDefinition) -> Result<(), OperationError> {
    let SteeringDefinition { services, chains } = definition;
    if services.len() > MAX_SERVICES {
        return Err(OperationError::Limit("services of the switch", MAX_SERVICES));
    }
    if chains.len() > MAX_CHAINS {
        return Err(OperationError::Limit("chains of the switch", MAX_CHAINS));
    }
    let names: BTreeSet<&ServiceName> = sorting::collect(services.iter().map(|service| &service.name));
    let chain_names: BTreeSet<&ChainName> = sorting::collect(chains.iter().map(|chain| &chain.name));
    if names.len() != services.len() || chain_names.len() != chains.len() {
        return Err(malformed("a service or a chain is defined twice"));
    }
    let mut boxes = BTreeSet::new();
    for ServiceDefinition { destinations, instances, faces, translation, .. } in services {
        if instances.len() > usize::from(MAX_REPLICAS) {
            return Err(OperationError::Limit("instances of the service", MAX_REPLICAS.into()));
        }
        if destinations.len() > MAX_DESTINATIONS {
            return Err(OperationError::Limit("destinations of the service", MAX_DESTINATIONS));
        }
        if !instances.iter().all(|instance| boxes.insert(&instance.name)) {
            return Err(malformed("a box is an instance twice"));
        }
        if let Some(TranslationDefinition { mappings }) = translation {
            if faces.outer.is_none() {
                return Err(malformed("a translator has no outside"));
            }
            if mappings.len() > MAX_STATIC_MAPPINGS {
                return Err(OperationError::Limit("static mappings of the service", MAX_STATIC_MAPPINGS));
            }
            if !are_disjoint(instances.iter().filter_map(|instance| instance.range)) {
                return Err(malformed("two instances translate to the same addresses and ports"));
            }
        }
        let known = |destination: &Destination| match destination {
            Destination::Service(name) => names.contains(name),
            // Until they are there, nothing is sent there.
            Destination::Port(_) | Destination::Chain(_) => true,
        };
        if !destinations.iter().all(known) {
            return Err(malformed("a service may send to a service that does not exist"));
        }
    }
    for CreateChain { services, from, both_ways, .. } in chains {
        if services.is_empty() || services.len() > MAX_CHAIN_LENGTH {
            return Err(malformed("a chain has 1 to 32 services"));
        }
        if !services.iter().all(|service| names.contains(service)) {
            return Err(malformed("a chain has a service that does not exist"));
        }
        if services.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(malformed("a chain has a service twice in a row"));
        }
        if *both_ways && from.is_none() {
            return Err(malformed("a chain that works both ways needs the port that packets come from"));
        }
    }
    Ok(())
}

/// Whether no two ranges have a port in common.
fn are_disjoint(ranges: impl Iterator<Item = AddressRange>) -> bool {
    let mut ranges: Vec<AddressRange> = ranges.collect();
    sorting::sort(&mut ranges);
    ranges.windows(2).all(|pair| pair[0].address != pair[1].address || pair[0].last < pair[1].first)
}

fn translation_plan(translation: &TranslationDefinition) -> TranslationPlan {
    let end = |end: MappedEnd| FlowEnd { address: end.address.to_bits(), port: end.port.unwrap_or(0) };
    let mapping = |mapping: &StaticMapping| MappingPlan {
        protocol: mapping.protocol.map(|protocol| match protocol {
            MappedProtocol::Tcp => protocol::TCP,
            MappedProtocol::Udp => protocol::UDP,
        }),
        outside: end(mapping.outside),
        inside: end(mapping.inside),
    };
    TranslationPlan { mappings: translation.mappings.iter().map(mapping).collect(), held: Vec::new() }
}

/// The port at a switch of a port of a box.
fn box_port(record: &mut SwitchRecord, name: &BoxName, port: u8) -> Result<PortKey, OperationError> {
    let port = format!("{name}.{port}").parse().map_err(|_| PortError::LongBoxName(name.clone()))?;
    port_key(record, &port)
}

/// The definition with numbers in place of names.
fn plan(record: &mut SwitchRecord, definition: &SteeringDefinition) -> Result<ChainsPlan, OperationError> {
    let services: BTreeSet<ServiceName> =
        sorting::collect(definition.services.iter().map(|service| service.name.clone()));
    services.iter().try_for_each(|name| record.service_number(name).map(drop))?;
    let chains: BTreeSet<ChainName> =
        sorting::collect(definition.chains.iter().map(|chain| chain.name.clone()));
    chains.iter().try_for_each(|name| record.chain_number(name).map(drop))?;
    record.services.slots.retain(|name, _| services.contains(name));
    let mut plan = ChainsPlan::default();
    for defined in &definition.services {
        let ServiceDefinition { name, faces, destinations, instances, translation, .. } = defined;
        let slots = record.services.slots.entry(name.clone()).or_default();
        let mut numbers = slots.iter().map(|(name, slot)| (name.clone(), u16::from(*slot))).collect();
        let wanted = instances.iter().map(|instance| instance.name.clone()).collect();
        number(&mut numbers, &wanted, MAX_REPLICAS)?;
        *slots = numbers.into_iter().map(|(name, slot)| (name, slot as u8)).collect();
        let slots = slots.clone();
        let mut service = ServicePlan {
            number: record.services.services.get(name).unwrap_or_default(),
            instances: Vec::new(),
            destinations: Vec::new(),
            translation: translation.as_ref().map(translation_plan),
        };
        let handover = &record.services.handover;
        if let Some(translation) = &mut service.translation {
            translation.held = handover.held_ranges(name, &slots);
        }
        let is_away = |range: &AddressRange| handover.is_away(defined, *range);
        let (away, waited_for): (BTreeSet<AddressRange>, BTreeSet<&BoxName>) = (
            instances.iter().filter_map(|instance| instance.range).filter(is_away).collect(),
            instances
                .iter()
                .map(|instance| &instance.name)
                .filter(|name| handover.is_waited_for(defined, name))
                .collect(),
        );
        for InstanceDefinition { name, draining, range } in instances {
            let inner = box_port(record, name, faces.inner)?;
            let outer = faces.outer.map(|port| box_port(record, name, port)).transpose()?;
            service.instances.push(InstancePlan {
                slot: slots.get(name).copied().unwrap_or_default(),
                ports: [inner, outer.unwrap_or(inner)],
                is_draining: *draining || waited_for.contains(name),
                range: range.filter(|range| !away.contains(range)).map(range_plan),
            });
        }
        for destination in destinations {
            service.destinations.push(match destination {
                Destination::Service(name) => {
                    DestinationPlan::Service(record.services.services.get(name).unwrap_or_default())
                }
                Destination::Port(name) => DestinationPlan::Port(port_key(record, name)?),
                Destination::Chain(name) => DestinationPlan::Chain(record.chain_number(name)?),
            });
        }
        plan.services.push(service);
    }
    for chain in &definition.chains {
        plan.chains.push(ChainPlan {
            number: record.services.chains.get(&chain.name).unwrap_or_default(),
            services: chain.services.iter().filter_map(|name| record.services.services.get(name)).collect(),
            from: chain.from.as_ref().map(|name| port_key(record, name)).transpose()?,
            to: port_key(record, &chain.to)?,
            both_ways: chain.both_ways,
        });
    }
    Ok(plan)
}

impl SwitchRecord {
    /// The flows of an instance.
    pub(super) fn flows_of(&self, runner: &mut Shards<ForwardingMode>, name: &BoxName) -> u64 {
        let of = |service: &ServiceDefinition| {
            let slot = *self.services.slots.get(&service.name)?.get(name)?;
            let number = self.services.services.get(&service.name)?;
            let all = all_steering(&self.name, runner).ok()?;
            let found = instances_of_shards(all.iter().map(|steering| &**steering), number);
            found.iter().find(|found| found.slot == slot).map(|found| found.flows)
        };
        self.services.definition.services.iter().filter_map(of).sum()
    }

    /// The names of ports that services and chains use, so that these keep their keys.
    pub(super) fn ports_of_chains(&self) -> BTreeSet<model::PortName> {
        let SteeringDefinition { services, chains } = &self.services.definition;
        let of_chain = |chain: &CreateChain| [chain.from.clone(), Some(chain.to.clone())];
        let mut ports: BTreeSet<_> = sorting::collect(chains.iter().flat_map(of_chain).flatten());
        for service in services {
            ports.extend(service.destinations.iter().filter_map(|destination| match destination {
                Destination::Port(name) => Some(name.clone()),
                Destination::Service(_) | Destination::Chain(_) => None,
            }));
        }
        ports.extend(self.faces());
        ports
    }
}

impl Network {
    /// Gives a steering switch other services and chains.
    pub(crate) fn set_steering(
        &mut self,
        switch: &SwitchName,
        mut definition: SteeringDefinition,
    ) -> Result<(), OperationError> {
        check(&definition)?;
        let (record, runner) = self.record_and_runner(switch)?;
        let mut all = all_steering(switch, runner)?;
        let mut gone = fill_in(record, &mut definition);
        let slots = record.services.slots.clone();
        let before = std::mem::replace(&mut record.services.definition, definition.clone());
        record.services.handover.follow(&before, &definition);
        let result = match plan(record, &definition) {
            Ok(plan) => {
                all.iter_mut().for_each(|steering| steering.set_chains(&plan));
                record.services.follow(&before);
                prepare_faces(record, runner);
                Ok(())
            }
            Err(error) => {
                record.services.definition = before.clone();
                record.services.attached.append(&mut gone);
                record.services.slots = slots;
                record.services.handover.follow(&definition, &before);
                // The numbers of before: they were enough then.
                if let Ok(plan) = plan(record, &before) {
                    all.iter_mut().for_each(|steering| steering.set_chains(&plan));
                }
                Err(error)
            }
        };
        self.drop_function_ports(switch, &ports_of(&gone, &before));
        self.wake_handovers();
        result
    }

    /// Gives the switch its services and chains again, after flows were handed over.
    pub(super) fn plan_again(&mut self, switch: &SwitchName) -> Result<(), OperationError> {
        let (record, runner) = self.record_and_runner(switch)?;
        let definition = record.services.definition.clone();
        let plan = plan(record, &definition)?;
        all_steering(switch, runner)?.into_iter().for_each(|steering| steering.set_chains(&plan));
        Ok(())
    }

    /// The flows of an instance, of all services that it belongs to.
    pub(super) fn flows_of(&mut self, name: &BoxName) -> u64 {
        let switches = self.switches.iter().zip(self.runners.iter_mut().skip(1));
        switches.map(|(record, runner)| record.flows_of(runner, name)).sum()
    }

    /// The state of the services and chains of a steering switch.
    pub(crate) fn steering_reply(&mut self, switch: &SwitchName) -> Result<SteeringReply, OperationError> {
        let (record, runner) = self.record_and_runner(switch)?;
        let waiting = record.waiting(runner);
        let all: Vec<&Steering> =
            all_steering(switch, runner)?.into_iter().map(|steering| &*steering).collect();
        let SwitchRecord { services: record, .. } = record;
        let instances =
            |service: &ServiceDefinition| (service.name.clone(), instances(record, &all, service, &waiting));
        let services = record.definition.services.iter().map(instances).collect();
        let chains = record.definition.chains.iter().map(|chain| chain_status(record, &all, chain, &waiting));
        let removed = |service: &ServiceDefinition| (service.name.clone(), removed(record, &all, service));
        let removed = record.definition.services.iter().map(removed).collect();
        let without = |service: &ServiceDefinition| {
            let number = record.services.get(&service.name)?;
            let of_shards = all.iter().map(|steering| steering.chains().without_instance(number));
            Some((service.name.clone(), of_shards.sum()))
        };
        let no_instance = record.definition.services.iter().filter_map(without).collect();
        let overruled =
            |service: &ServiceDefinition| (service.name.clone(), overruled(record, &all, service));
        let overruled = record.definition.services.iter().map(overruled).collect();
        Ok(SteeringReply { services, chains: chains.collect(), removed, no_instance, overruled })
    }
}

/// The instances of a service, as all threads know them.
pub(super) fn instances_of_shards<'a>(
    all: impl Iterator<Item = &'a Steering>,
    service: u16,
) -> Vec<switch::InstanceStatus> {
    let mut lists = all.map(|steering| steering.chains().instances(service));
    let mut found = lists.next().unwrap_or_default();
    for list in lists {
        found.iter_mut().zip(list).for_each(|(sum, other)| *sum += other);
    }
    found
}

fn instances(
    record: &ServiceRecord,
    all: &[&Steering],
    service: &ServiceDefinition,
    waiting: &BTreeMap<BoxName, u64>,
) -> Vec<InstanceStatus> {
    let Some(number) = record.services.get(&service.name) else { return Vec::new() };
    let found = instances_of_shards(all.iter().copied(), number);
    let slots = record.slots.get(&service.name);
    let attached = record.attached.get(&service.name);
    let status = |instance: &InstanceDefinition| {
        let slot = slots.and_then(|slots| slots.get(&instance.name))?;
        let found = found.iter().find(|found| found.slot == *slot)?;
        Some(InstanceStatus {
            name: instance.name.clone(),
            up: found.is_up,
            suspended: false,
            draining: found.is_draining,
            flows: found.flows,
            packets: found.packets,
            overruled: found.overruled,
            counters: attached.and_then(|all| counters(all, &instance.name)).unwrap_or_default(),
            translation: instance.range.map(|range| TranslationStatus {
                range,
                learnt: found.learnt as u64,
                refused: refused_tuples(found.refused),
            }),
            waiting: waiting.get(&instance.name).copied().unwrap_or(0),
            lost: found.lost,
            handover: record.handover.drained.get(&instance.name).cloned(),
            taken_over: record.handover.taken_over.get(&instance.name).copied().unwrap_or(0),
        })
    };
    service.instances.iter().filter_map(status).collect()
}

/// Answers of a service that were overruled, by what they named.
fn overruled(
    record: &ServiceRecord,
    all: &[&Steering],
    service: &ServiceDefinition,
) -> Vec<OverruledAnswers> {
    let mut sum = switch::OverruledAnswers::default();
    if let Some(number) = record.services.get(&service.name) {
        all.iter().for_each(|steering| sum += steering.chains().overruled(number));
    }
    let switch::OverruledAnswers { known, others } = sum;
    let known = service.destinations.iter().cloned().map(Some).zip(known);
    let answers = |(destination, answers)| OverruledAnswers { destination, answers };
    known.chain([(None, others)]).map(answers).filter(|found| found.answers > 0).collect()
}

/// What the instances counted that a service no longer has.
fn removed(record: &ServiceRecord, all: &[&Steering], service: &ServiceDefinition) -> RemovedInstances {
    let mut sum = switch::RemovedInstances::default();
    if let Some(number) = record.services.get(&service.name) {
        all.iter().for_each(|steering| sum += steering.chains().removed_instances(number));
    }
    let switch::RemovedInstances { packets, overruled, lost, refused } = sum;
    let taken_over = record.handover.taken_over_before.get(&service.name).copied().unwrap_or(0);
    RemovedInstances { packets, lost, overruled, taken_over, refused: refused_tuples(refused) }
}

fn refused_tuples(refused: switch::RefusedTuples) -> RefusedTuples {
    let switch::RefusedTuples { out_of_range, taken, no_room } = refused;
    RefusedTuples { out_of_range, taken, no_room }
}

fn traffic(counters: HopCounters) -> HopTraffic {
    HopTraffic { packets: counters.packets, bytes: counters.bytes, lost: counters.lost }
}

fn chain_status(
    record: &ServiceRecord,
    all: &[&Steering],
    chain: &CreateChain,
    waiting: &BTreeMap<BoxName, u64>,
) -> ChainStatus {
    let number = record.chains.get(&chain.name);
    let of_shards = all.iter().filter_map(|steering| steering.chains().counters(number?));
    let counters = of_shards.reduce(|mut sum, counters| {
        sum += counters;
        sum
    });
    let counters = counters.unwrap_or_default();
    let waiting_at = |service: &ServiceName| {
        let mut services = record.definition.services.iter();
        let instances = services.find(|found| found.name == *service).map(|found| &found.instances);
        instances.into_iter().flatten().filter_map(|instance| waiting.get(&instance.name)).sum()
    };
    let hop = |(at, service): (usize, &ServiceName)| HopStatus {
        service: service.clone(),
        traffic: counters.hops.get(at).copied().unwrap_or_default().map(traffic),
        mean_ns: counters.times.get(at).copied().flatten(),
        waiting: waiting_at(service),
    };
    ChainStatus {
        chain: chain.clone(),
        hops: chain.services.iter().enumerate().map(hop).collect(),
        left: counters.left.map(traffic),
    }
}
