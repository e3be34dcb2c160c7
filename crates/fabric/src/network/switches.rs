//! Switches and their ports.

use super::attach::Network;
use super::numbers::Numbers;
use super::pairs::{PairSlots, captured};
use super::records::{
    AgentRecord, AttachRequest, NewPort, PortLocation, PortRecord, ServiceRecord, SwitchRecord,
};
use super::traffic::{reported, with_link};
use crate::error::{OperationError, PortError};
use crate::limits::MAX_SWITCHES;
use model::{
    AddPort, AddressEntry, AddressKind, BoxName, CreateSwitch, Limits, PortDriver, PortName, Subject,
    SwitchMode, SwitchName, with_causes,
};
use protocol::fabric::{PortInventory, PortNumberMark, PortStats, SwitchInventory};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::OwnedFd;
use std::time::Duration;
use switch::driver::{LinkState, Pipe};
use switch::{
    Captures, Driver, ForwardingMode, LearningBridge, LearningSettings, MacAddr, PortId, PortSettings,
    RateLimit, Reason, Shards, SourceGuard, StaticTable, Steering, SteeringSettings, SwitchError,
};

/// The smallest table of a learning switch, in addresses.
const MIN_TABLE_CAPACITY: usize = 16_384;

/// The forwarding of a new switch, once for each thread: all of them decide the same.
fn forwarding_modes(definition: &CreateSwitch, threads: usize) -> Vec<ForwardingMode> {
    let seeds = [secret(), secret(), secret()];
    (0..threads).map(|_| forwarding_mode(definition, seeds)).collect()
}

/// A seed that no sender knows.
fn secret() -> u64 {
    RandomState::new().hash_one(0)
}

/// The forwarding of a new switch. The seeds must be secret: a sender who knew them could choose addresses that share one bucket
/// of the table.
fn forwarding_mode(definition: &CreateSwitch, seeds: [u64; 3]) -> ForwardingMode {
    let [seed, first, second] = seeds;
    let learning = LearningSettings {
        ageing_ns: u64::from(definition.age_seconds) * 1_000_000_000,
        // Twice what one port may teach, so that none can fill it alone.
        capacity: MIN_TABLE_CAPACITY.max((definition.addresses_per_port as usize).saturating_mul(2)),
        port_limit: definition.addresses_per_port,
        seed,
    };
    match definition.mode {
        SwitchMode::Static => ForwardingMode::Static(StaticTable::new()),
        SwitchMode::Learning => ForwardingMode::Learning(LearningBridge::new(learning)),
        SwitchMode::Steering => {
            let settings =
                SteeringSettings { learning, seed: [first, second], ..SteeringSettings::default() };
            ForwardingMode::Steering(Box::new(Steering::new(settings)))
        }
    }
}

/// The settings of a port with these limits. `mac` is the address of the box's port behind it, if there is one.
fn settings(limits: &Limits, mac: Option<model::MacAddr>) -> PortSettings {
    let assigned = mac.filter(|_| !limits.transparent);
    let source = limits.source.or(assigned).map(|mac| mac.0);
    let bound = limits.bind_ip.iter().map(|prefix| (prefix.address(), prefix.length()));
    let guard = (!limits.bind_ip.is_empty()).then(|| SourceGuard::new(source, bound));
    let rate_limit = RateLimit {
        frames: limits.frames.unwrap_or(0),
        bits: limits.bits.unwrap_or(0),
        broadcasts: limits.broadcasts.unwrap_or(0),
        burst_ns: 0,
    };
    PortSettings {
        // A weight of 100 is the default: one quantum per visit.
        weight: (u32::from(limits.weight) / 100).max(1),
        rate_limit,
        new_addresses: limits.new_addresses.unwrap_or(0),
        source,
        guard,
    }
}

impl Network {
    pub(crate) fn switch_names(&self) -> impl Iterator<Item = &SwitchName> {
        self.switches.iter().map(|record| &record.name)
    }

    /// The index of a switch in `switches`. Its runner has the next index.
    fn number(&self, name: &SwitchName) -> Result<usize, OperationError> {
        let found = self.switches.iter().position(|record| record.name == *name);
        found.ok_or_else(|| OperationError::NoSwitch(name.clone()))
    }

    pub(super) fn record_and_runner(
        &mut self,
        name: &SwitchName,
    ) -> Result<(&mut SwitchRecord, &mut Shards<ForwardingMode>), OperationError> {
        let number = self.number(name)?;
        match (self.switches.get_mut(number), self.runners.get_mut(number + 1)) {
            (Some(record), Some(runner)) => Ok((record, runner)),
            _ => Err(OperationError::NoSwitch(name.clone())),
        }
    }

    /// Adds a switch without ports.
    pub(crate) fn add_switch(&mut self, definition: &CreateSwitch) -> Result<(), OperationError> {
        if self.number(&definition.name).is_ok() {
            return Err(OperationError::Exists(Subject::from(&definition.name)));
        }
        if self.switches.len() >= MAX_SWITCHES {
            return Err(OperationError::Limit("switches", MAX_SWITCHES));
        }
        let threads = self.thread_count();
        let mut modes = forwarding_modes(definition, threads).into_iter();
        let first = modes.next().unwrap_or(ForwardingMode::Static(StaticTable::new()));
        let runner = Shards::new(first, modes.collect(), secret())
            .map_err(|error| OperationError::system("create a switch", error))?;
        let number = self.next_switch;
        self.next_switch += 1;
        self.runners.push(runner);
        self.switches.push(SwitchRecord {
            name: definition.name.clone(),
            definition: CreateSwitch { ports: Vec::new(), ..definition.clone() },
            ports: BTreeMap::new(),
            removed: PortStats::default(),
            default: None,
            port_numbers: Numbers::default(),
            numbered: PortNumberMark { switch: secret(), change: 0 },
            flows: BTreeMap::new(),
            services: ServiceRecord::default(),
            number,
            agent: AgentRecord::default(),
        });
        self.prepare_controllers(number);
        Ok(())
    }

    /// Removes a switch. Its boxes' ports are then attached to nothing, and its pipes are removed.
    pub(crate) fn remove_switch(&mut self, name: &SwitchName) -> Result<(), OperationError> {
        let number = self.number(name)?;
        let ports: Vec<PortName> = self.switches[number].ports.keys().cloned().collect();
        for port in ports {
            // The port may have been the other end of a pipe, which is already removed.
            let _ = self.remove_port(name, &port);
        }
        self.switches.remove(number);
        self.runners.remove(number + 1);
        // The agent may have sessions for it.
        self.agent_bell.ring();
        Ok(())
    }

    /// Checks that a port of this name can be added to a switch. Call it before the port's device or file is opened,
    /// because opening has side effects.
    ///
    /// # Errors
    ///
    /// The switch does not exist, has a port of this name, or is full.
    pub(crate) fn check_vacant(&self, switch: &SwitchName, port: &PortName) -> Result<(), OperationError> {
        let record = self.number(switch)?;
        let ports = self.switches.get(record).map(|record| &record.ports);
        if ports.is_some_and(|ports| ports.contains_key(port)) {
            return Err(OperationError::Exists(Subject::from((switch, port))));
        }
        if ports.is_some_and(|ports| ports.len() >= switch::MAX_PORTS) {
            return Err(OperationError::Limit("ports at the switch", switch::MAX_PORTS));
        }
        Ok(())
    }

    /// Adds a port to a switch, with its addresses. `opened` is what [`adopt`](super::adopt) returned.
    pub(crate) fn add_port(
        &mut self,
        switch: &SwitchName,
        port: &AddPort,
        opened: Option<Vec<Box<dyn Driver>>>,
    ) -> Result<(), OperationError> {
        self.add_end(switch, port, false, opened)
    }

    /// Adds a port that is an end of a pipe to another fabric, or gives it a new link. It is implied if the definition is
    /// that of the other end.
    pub(crate) fn link_port(
        &mut self,
        switch: &SwitchName,
        port: &AddPort,
        implied: bool,
        link: Box<dyn Driver>,
    ) -> Result<(), OperationError> {
        let (record, runner) = self.record_and_runner(switch)?;
        match record.ports.get(&port.name).filter(|there| there.definition.driver == port.driver) {
            Some(there) => {
                // Other stations may be behind the new link.
                runner.flush_port(there.id);
                self.reopen(switch, &port.name, vec![link]);
                Ok(())
            }
            None => self.add_end(switch, port, implied, Some(vec![link])),
        }
    }

    fn add_end(
        &mut self,
        switch: &SwitchName,
        port: &AddPort,
        implied: bool,
        opened: Option<Vec<Box<dyn Driver>>>,
    ) -> Result<(), OperationError> {
        let new = |drivers| NewPort { definition: port.clone(), implied, drivers, mac: None };
        match (&port.driver, opened) {
            (_, Some(drivers)) => self.insert(switch, new(drivers))?,
            (PortDriver::Pipe { switch: other, port: far }, None) => {
                self.number(other)?;
                let (near_end, far_end) =
                    Pipe::pair().map_err(|error| OperationError::system("create a pipe", error))?;
                let back = PortDriver::Pipe { switch: switch.clone(), port: port.name.clone() };
                self.insert(switch, new(vec![Box::new(near_end)]))?;
                let definition = AddPort {
                    name: far.clone(),
                    driver: back,
                    addresses: Vec::new(),
                    default: false,
                    ..port.clone()
                };
                let far = NewPort { definition, implied: true, drivers: vec![Box::new(far_end)], mac: None };
                let added = self.insert(other, far);
                if let Err(failure) = added {
                    self.drop_port(switch, &port.name);
                    return Err(failure);
                }
            }
            (PortDriver::Box { name, port: number }, None) => {
                let key = (name.clone(), *number);
                match self.attachment(name, *number) {
                    None => return Err(OperationError::NoBoxPort(name.clone(), *number)),
                    Some(PortLocation::Nothing) => {}
                    Some(_) => {
                        return Err(PortError::Attached(name.clone(), *number).into());
                    }
                }
                let mac = self.box_ports.get(&key).map(|record| record.mac);
                let cores = self.box_ports.get(&key).map_or(1, |record| record.cores);
                self.check_cores(switch, name, cores)?;
                let slot = PairSlots::new(self.thread_count());
                self.insert(switch, NewPort { mac, ..new(slot.drivers()) })?;
                if let Some(mac) = mac
                    && let Err(failure) = self.bind_address(switch, mac, &port.name)
                {
                    self.drop_port(switch, &port.name);
                    return Err(failure);
                }
                self.move_port(&key, Some((switch.clone(), port.name.clone(), slot)));
            }
            (_, None) => return Err(PortError::NoDevice.into()),
        }
        for mac in &port.addresses {
            if let Err(failure) = self.set_address(switch, *mac, &port.name) {
                let _ = self.remove_port(switch, &port.name);
                return Err(failure);
            }
        }
        if port.default
            && let Err(failure) = self.set_default(switch, Some(&port.name))
        {
            let _ = self.remove_port(switch, &port.name);
            return Err(failure);
        }
        Ok(())
    }

    pub(super) fn insert(&mut self, switch: &SwitchName, new: NewPort) -> Result<(), OperationError> {
        self.check_vacant(switch, &new.definition.name)?;
        let (record, runner) = self.record_and_runner(switch)?;
        let captures = Captures::default();
        let drivers = captured(new.drivers, &captures);
        // The ports of a function have one doorbell, so one thread drives all of them.
        let of_box = |driver: &PortDriver| match driver {
            PortDriver::Box { name, .. } => Some(name.clone()),
            _ => None,
        };
        let name = of_box(&new.definition.driver);
        let mut others = record.ports.values();
        let beside = others.find(|entry| name.is_some() && of_box(&entry.definition.driver) == name);
        let beside = beside.map(|entry| entry.id);
        let id = runner
            .add_port_beside(drivers, &settings(&new.definition.limits, new.mac), beside)
            .map_err(|SwitchError::Full| OperationError::Limit("ports at the switch", switch::MAX_PORTS))?;
        let name = new.definition.name.clone();
        let entry = PortRecord { id, captures, definition: new.definition, implied: new.implied, config: 0 };
        record.ports.insert(name.clone(), entry);
        self.name_port(switch, &name)
    }

    /// Adds a switch port for a box's port. Returns its name.
    pub(super) fn add_box_port(
        &mut self,
        switch: &SwitchName,
        name: &BoxName,
        number: u8,
        attach: &AttachRequest,
    ) -> Result<(PortName, PairSlots), OperationError> {
        self.check_cores(switch, name, attach.cores)?;
        let port: PortName =
            format!("{name}.{number}").parse().map_err(|_| PortError::LongBoxName(name.clone()))?;
        let slot = PairSlots::new(self.thread_count());
        let definition = AddPort {
            name: port.clone(),
            driver: PortDriver::Box { name: name.clone(), port: number },
            addresses: Vec::new(),
            default: false,
            limits: attach.limits.clone(),
        };
        let drivers = slot.drivers();
        self.insert(switch, NewPort { definition, implied: true, drivers, mac: Some(attach.mac) })?;
        let (record, runner) = self.record_and_runner(switch)?;
        if let Some(entry) = record.ports.get(&port) {
            let assigned = runner.forwards().try_for_each(|forward| match forward {
                ForwardingMode::Static(table) => table.insert(attach.mac.0, entry.id).map(drop),
                ForwardingMode::Learning(bridge) => bridge.bind(attach.mac.0, entry.id),
                ForwardingMode::Steering(steering) => steering.bridge_mut().bind(attach.mac.0, entry.id),
            });
            if let Err(error) = assigned {
                self.drop_port(switch, &port);
                return Err(PortError::Table(error).into());
            }
        }
        Ok((port, slot))
    }

    /// Refuses a box with several cores at a steering switch, which notes packets by the buffers of one box.
    fn check_cores(&self, switch: &SwitchName, name: &BoxName, cores: usize) -> Result<(), OperationError> {
        let is_steering = self
            .switches
            .get(self.number(switch)?)
            .is_some_and(|record| record.definition.mode == SwitchMode::Steering);
        match cores > 1 && is_steering {
            true => Err(PortError::CoresAtSteering(name.clone(), switch.clone()).into()),
            false => Ok(()),
        }
    }

    /// Binds the address of a box to its port at a learning switch. A static switch gets addresses by
    /// [`set_address`](Self::set_address).
    fn bind_address(
        &mut self,
        switch: &SwitchName,
        mac: model::MacAddr,
        port: &PortName,
    ) -> Result<(), OperationError> {
        let (record, runner) = self.record_and_runner(switch)?;
        let missing = || OperationError::NoPort(switch.clone(), port.clone());
        let id = record.ports.get(port).ok_or_else(missing)?.id;
        let bound = runner.forwards().try_for_each(|forward| match forward {
            ForwardingMode::Static(_) => Ok(()),
            ForwardingMode::Learning(bridge) => bridge.bind(mac.0, id),
            ForwardingMode::Steering(steering) => steering.bridge_mut().bind(mac.0, id),
        });
        bound.map_err(|error| PortError::Table(error).into())
    }

    /// Forgets the addresses learned at the port of a box that has ended. Its own address stays.
    pub(super) fn flush_port(&mut self, switch: &SwitchName, port: &PortName) {
        if let Ok((record, runner)) = self.record_and_runner(switch)
            && let Some(entry) = record.ports.get(port)
        {
            runner.flush_port(entry.id);
        }
    }

    /// Restarts the port of a box that runs again.
    pub(super) fn resume_port(&mut self, switch: &SwitchName, port: &PortName, slot: &PairSlots) {
        if let Ok((record, runner)) = self.record_and_runner(switch)
            && let Some(entry) = record.ports.get(port)
        {
            runner.set_drivers(entry.id, captured(slot.drivers(), &entry.captures));
        }
    }

    /// Replaces the drivers of a port whose device failed.
    pub(crate) fn reopen(&mut self, switch: &SwitchName, port: &PortName, mut drivers: Vec<Box<dyn Driver>>) {
        if let Ok((record, runner)) = self.record_and_runner(switch)
            && let Some(entry) = record.ports.get(port)
        {
            // Otherwise it was never shown: a port that listens is reopened at once.
            if let (Some(LinkState::Gone(why) | LinkState::Waiting(why)), Some(first)) =
                (runner.link_state(entry.id), drivers.first_mut())
            {
                first.recall(why);
            }
            runner.set_drivers(entry.id, captured(drivers, &entry.captures));
        }
    }

    /// A duplicate of the descriptor of a port's device, if the device must not be opened twice.
    pub(crate) fn device(
        &mut self,
        switch: &SwitchName,
        port: &PortName,
    ) -> Result<Option<OwnedFd>, OperationError> {
        let (record, runner) = self.record_and_runner(switch)?;
        let missing = || OperationError::NoPort(switch.clone(), port.clone());
        let id = record.ports.get(port).ok_or_else(missing)?.id;
        let duplicate = runner.device(id).map(|device| device.try_clone_to_owned()).transpose();
        duplicate.map_err(|error| OperationError::system("duplicate a descriptor", error))
    }

    /// Removes a port from its switch, without other effects.
    pub(super) fn drop_port(&mut self, switch: &SwitchName, port: &PortName) {
        if let Ok((record, runner)) = self.record_and_runner(switch)
            && let Some(entry) = record.ports.remove(port)
        {
            entry.captures.end();
            // With what the driver has missed.
            let counted = runner.counters(entry.id).unwrap_or_default();
            if let Some(service) = record.service_at(port).cloned() {
                *record.services.removed_ports.entry(service).or_default() += counted;
            }
            let counters = reported(&counted);
            let cost = runner.cost(entry.id).unwrap_or_default().time;
            record.removed.add(&PortStats { counters, cost, ..PortStats::default() });
            runner.remove_port(entry.id);
            record.default.take_if(|default| default == port);
        }
    }

    /// Counts packets that were lost in the rings of a box whose port was removed.
    pub(super) fn count_ended(&mut self, switch: &SwitchName, lost: u64) {
        if lost > 0
            && let Ok((record, _)) = self.record_and_runner(switch)
        {
            let drops = &mut record.removed.counters.drops;
            *drops.entry(Reason::BOX_ENDED.name().into()).or_default() += lost;
        }
    }

    /// Removes a port. The other end of a pipe is removed too; a box's port is then attached to nothing.
    pub(crate) fn remove_port(&mut self, switch: &SwitchName, port: &PortName) -> Result<(), OperationError> {
        let (record, _) = self.record_and_runner(switch)?;
        let missing = || OperationError::NoPort(switch.clone(), port.clone());
        match record.ports.get(port).ok_or_else(missing)?.definition.driver.clone() {
            PortDriver::Pipe { switch: other, port: far } => {
                self.drop_port(switch, port);
                self.drop_port(&other, &far);
            }
            PortDriver::Box { name, port: number } => {
                self.move_port(&(name, number), None);
            }
            _ => self.drop_port(switch, port),
        }
        Ok(())
    }

    /// Assigns an address to a port.
    pub(crate) fn set_address(
        &mut self,
        switch: &SwitchName,
        mac: model::MacAddr,
        port: &PortName,
    ) -> Result<(), OperationError> {
        let (record, runner) = self.record_and_runner(switch)?;
        let missing = || OperationError::NoPort(switch.clone(), port.clone());
        let id = record.ports.get(port).ok_or_else(missing)?.id;
        runner.forwards().try_for_each(|forward| match forward {
            ForwardingMode::Static(table) => {
                let inserted = table.insert(mac.0, id);
                inserted.map(drop).map_err(|error| PortError::Table(error).into())
            }
            ForwardingMode::Learning(_) | ForwardingMode::Steering(_) => Err(learning(switch)),
        })
    }

    /// Removes an address from the table.
    pub(crate) fn remove_address(
        &mut self,
        switch: &SwitchName,
        mac: model::MacAddr,
    ) -> Result<(), OperationError> {
        let (_, runner) = self.record_and_runner(switch)?;
        runner.forwards().try_for_each(|forward| match forward {
            ForwardingMode::Static(table) => {
                let missing = || OperationError::NoAddress(switch.clone(), mac);
                table.remove(mac.0).map(drop).ok_or_else(missing)
            }
            ForwardingMode::Learning(_) | ForwardingMode::Steering(_) => Err(learning(switch)),
        })
    }

    /// Makes a port of a static switch, or none, the one that receives frames to unknown addresses.
    pub(crate) fn set_default(
        &mut self,
        switch: &SwitchName,
        port: Option<&PortName>,
    ) -> Result<(), OperationError> {
        let (record, runner) = self.record_and_runner(switch)?;
        let id = port.and_then(|port| record.ports.get(port)).map(|entry| entry.id);
        runner.forwards().try_for_each(|forward| match forward {
            ForwardingMode::Static(table) => {
                table.set_default(id);
                Ok(())
            }
            ForwardingMode::Learning(_) | ForwardingMode::Steering(_) => Err(learning(switch)),
        })?;
        record.default = port.cloned();
        Ok(())
    }

    /// All addresses of a switch, sorted.
    pub(crate) fn addresses(&mut self, switch: &SwitchName) -> Result<Vec<AddressEntry>, OperationError> {
        let (record, runner) = self.record_and_runner(switch)?;
        let now = runner.now();
        let found: Vec<(MacAddr, PortId, Option<u64>)> = match runner.forward() {
            ForwardingMode::Static(table) => table.entries().map(|(mac, port)| (mac, port, None)).collect(),
            ForwardingMode::Learning(table) => table.entries(now).collect(),
            ForwardingMode::Steering(steering) => steering.bridge_mut().entries(now).collect(),
        };
        let names: BTreeMap<PortId, &PortName> =
            sorting::collect(record.ports.iter().map(|(name, entry)| (entry.id, name)));
        let entry = |(mac, port, age): (MacAddr, PortId, Option<u64>)| {
            let age_seconds =
                age.map(|age| u32::try_from(Duration::from_nanos(age).as_secs()).unwrap_or(u32::MAX));
            let kind = if age.is_some() { AddressKind::Learned } else { AddressKind::Static };
            names.get(&port).map(|name| AddressEntry {
                mac: model::MacAddr(mac),
                port: (*name).clone(),
                kind,
                age_seconds,
            })
        };
        let mut entries: Vec<AddressEntry> = found.into_iter().filter_map(entry).collect();
        sorting::sort_by_key(&mut entries, |entry| entry.mac);
        Ok(entries)
    }

    pub(super) fn address_count(&mut self, switch: &SwitchName) -> u32 {
        let Ok((_, runner)) = self.record_and_runner(switch) else { return 0 };
        let now = runner.now();
        let count = match runner.forward() {
            ForwardingMode::Static(table) => table.entries().count(),
            ForwardingMode::Learning(table) => table.entries(now).count(),
            ForwardingMode::Steering(steering) => steering.bridge_mut().entries(now).count(),
        };
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// The ports of a switch.
    pub(crate) fn described(&mut self, switch: &SwitchName) -> Result<Vec<PortInventory>, OperationError> {
        let (record, _) = self.record_and_runner(switch)?;
        let described = |entry: &PortRecord| {
            let default = record.default.as_ref() == Some(&entry.definition.name);
            PortInventory {
                port: AddPort { default, addresses: Vec::new(), ..entry.definition.clone() },
                implied: entry.implied,
            }
        };
        Ok(record.ports.values().map(described).collect())
    }

    /// All switches, with their ports and assigned addresses.
    pub(crate) fn inventory(&mut self) -> Vec<SwitchInventory> {
        let names: Vec<SwitchName> = self.switch_names().cloned().collect();
        let switch = |name: &SwitchName| {
            let ports = self.described(name).ok()?;
            let entries = self.addresses(name).ok()?.into_iter();
            let addresses = entries.filter(|entry| entry.kind == AddressKind::Static);
            let definition = self.switches.get(self.number(name).ok()?)?.definition.clone();
            let addresses = addresses.map(|entry| (entry.mac, entry.port)).collect();
            Some(SwitchInventory { definition, ports, addresses })
        };
        names.iter().filter_map(switch).collect()
    }

    /// The statistics of the ports of a switch.
    pub(super) fn switch_ports(&mut self, switch: &SwitchName) -> BTreeMap<PortName, PortStats> {
        let Ok((record, runner)) = self.record_and_runner(switch) else { return BTreeMap::new() };
        let look = |(name, entry): (&PortName, &PortRecord)| {
            let counters = reported(&runner.counters(entry.id).unwrap_or_default());
            let cost = runner.cost(entry.id).unwrap_or_default().time;
            let fault = runner.down(entry.id).map(|error| with_causes(error));
            let queues = runner.queues(entry.id);
            let openflow = record.port_numbers.get(name).unwrap_or(0).into();
            let stats = PortStats { counters, cost, fault, queues, openflow, ..PortStats::default() };
            (name.clone(), with_link(stats, runner.link_state(entry.id)))
        };
        sorting::collect(record.ports.iter().map(look))
    }

    /// The sum over the ports of a switch that were removed.
    pub(super) fn removed_ports(&self, switch: &SwitchName) -> PortStats {
        let record = self.number(switch).ok().and_then(|number| self.switches.get(number));
        record.map_or_else(PortStats::default, |record| record.removed.clone())
    }

    pub(super) fn switch_captures(
        &self,
        switch: &SwitchName,
        port: &PortName,
    ) -> Result<Captures, OperationError> {
        let missing = || OperationError::NoPort(switch.clone(), port.clone());
        let record = self.switches.get(self.number(switch)?).ok_or_else(missing)?;
        Ok(record.ports.get(port).ok_or_else(missing)?.captures.clone())
    }
}

fn learning(switch: &SwitchName) -> OperationError {
    PortError::Learning(switch.clone()).into()
}
