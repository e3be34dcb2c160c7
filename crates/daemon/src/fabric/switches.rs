//! Switches and their ports.

use super::device::Opened;
use super::network::{Attach, Network};
use super::plug::{Plug, Tapped};
use super::survey::Passed;
use super::tap::Taps;
use super::way::Way;
use crate::error::Failure;
use crate::limits::{MOST_SWITCH_PORTS, MOST_SWITCHES};
use api::{
    AddPort, AddressEntry, AddressKind, BoxName, CreateSwitch, Limits, Mac, PipeName, PortDriver, PortName,
    SwitchName,
};
use packet::MacAddr;
use std::collections::BTreeMap;
use std::time::Duration;
use switch::driver::Pipe;
use switch::{CapSettings, Driver, PortId, PortSettings, SwitchError, Worker};

/// Where a box's port is, for whoever asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Socket {
    /// At nothing.
    Nothing,
    /// At a pipe.
    Pipe(PipeName),
    /// At a port of a switch.
    Switch(SwitchName, PortName),
}

/// What is known of a switch beside its worker.
#[derive(Debug)]
pub(super) struct Bridge {
    name: SwitchName,
    ports: BTreeMap<PortName, Place>,
    /// Where frames to unknown addresses go, in a static switch.
    default: Option<PortName>,
}

#[derive(Debug)]
struct Place {
    id: PortId,
    taps: Taps,
    is_paced: bool,
    /// What is behind it, as whoever asks is told.
    driver: PortDriver,
    limits: Limits,
}

/// A port of a switch as it is made.
struct NewPort<'a> {
    name: &'a PortName,
    limits: &'a Limits,
    /// What is behind it, as whoever asks is told.
    told: PortDriver,
    driver: Box<dyn Driver>,
    is_paced: bool,
}

impl Bridge {
    pub(super) fn is_paced(&self) -> bool {
        self.ports.values().any(|place| place.is_paced)
    }
}

fn settings(limits: &Limits) -> PortSettings {
    let cap = CapSettings { frames: limits.frames.unwrap_or(0), bits: limits.bits.unwrap_or(0), burst_ns: 0 };
    PortSettings {
        // 100 is what a port has of which nothing is said: one quantum a visit.
        weight: (u32::from(limits.weight) / 100).max(1),
        cap,
        source: limits.source.map(|mac| MacAddr(mac.0)),
    }
}

impl Network {
    pub(super) fn switch_names(&self) -> impl Iterator<Item = &SwitchName> {
        self.bridges.iter().map(|bridge| &bridge.name)
    }

    /// A switch's number among the bridges; its worker has the next one.
    fn number(&self, name: &SwitchName) -> Result<usize, Failure> {
        let found = self.bridges.iter().position(|bridge| bridge.name == *name);
        found.ok_or_else(|| Failure::NoSwitch(name.clone()))
    }

    fn both(&mut self, name: &SwitchName) -> Result<(&mut Bridge, &mut Worker<Way>), Failure> {
        let number = self.number(name)?;
        match (self.bridges.get_mut(number), self.workers.get_mut(number + 1)) {
            (Some(bridge), Some(worker)) => Ok((bridge, worker)),
            _ => Err(Failure::NoSwitch(name.clone())),
        }
    }

    /// Adds a switch without ports.
    pub(crate) fn add_switch(&mut self, definition: &CreateSwitch) -> Result<(), Failure> {
        if self.number(&definition.name).is_ok() {
            return Err(Failure::Exists("switch", definition.name.to_string()));
        }
        if self.bridges.len() >= MOST_SWITCHES {
            return Err(Failure::Limit("switches", MOST_SWITCHES));
        }
        let worker =
            Worker::new(Way::new(definition)).map_err(|error| Failure::System("make a switch", error))?;
        self.workers.push(worker);
        self.bridges.push(Bridge { name: definition.name.clone(), ports: BTreeMap::new(), default: None });
        Ok(())
    }

    /// Removes a switch. Boxes at it are at nothing then, and pipes to it go.
    pub(crate) fn remove_switch(&mut self, name: &SwitchName) -> Result<(), Failure> {
        let number = self.number(name)?;
        let ports: Vec<PortName> = self.bridges[number].ports.keys().cloned().collect();
        for port in ports {
            // The other end of a pipe may have been one of them, and is gone already.
            let _ = self.remove_port(name, &port);
        }
        self.bridges.remove(number);
        self.workers.remove(number + 1);
        Ok(())
    }

    /// Whether a port of this name can be added to a switch: to be asked before its device or file is opened, which
    /// is not without effect.
    ///
    /// # Errors
    ///
    /// There is no such switch, it has a port of this name, or it is full.
    pub(crate) fn is_vacant(&self, switch: &SwitchName, port: &PortName) -> Result<(), Failure> {
        let bridge = self.number(switch)?;
        let ports = self.bridges.get(bridge).map(|bridge| &bridge.ports);
        if ports.is_some_and(|ports| ports.contains_key(port)) {
            return Err(Failure::Exists("port", format!("{switch}/{port}")));
        }
        if ports.is_some_and(|ports| ports.len() >= MOST_SWITCH_PORTS) {
            return Err(Failure::Limit("ports at the switch", MOST_SWITCH_PORTS));
        }
        Ok(())
    }

    /// Adds a port to a switch, with its addresses. What is opened is what [`open`](super::open) gave for it.
    pub(crate) fn add_port(
        &mut self,
        switch: &SwitchName,
        port: &AddPort,
        opened: Option<Opened>,
    ) -> Result<(), Failure> {
        let new =
            |name, told, driver, is_paced| NewPort { name, limits: &port.limits, told, driver, is_paced };
        match (&port.driver, opened) {
            (told, Some(Opened { driver, is_paced })) => {
                self.insert(switch, new(&port.name, told.clone(), driver, is_paced))?;
            }
            (told @ PortDriver::Pipe { switch: other, port: far }, None) => {
                self.number(other)?;
                let (near_end, far_end) =
                    Pipe::pair().map_err(|error| Failure::System("make a pipe", error))?;
                let back = PortDriver::Pipe { switch: switch.clone(), port: port.name.clone() };
                self.insert(switch, new(&port.name, told.clone(), Box::new(near_end), false))?;
                let added = self.insert(other, new(far, back, Box::new(far_end), false));
                if let Err(failure) = added {
                    self.drop_port(switch, &port.name);
                    return Err(failure);
                }
            }
            (told @ PortDriver::Box { name, port: number }, None) => {
                let place = (name.clone(), *number);
                match self.attachment(name, *number) {
                    None => return Err(Failure::NoBoxPort(name.clone(), *number)),
                    Some(Socket::Nothing) => {}
                    Some(_) => {
                        return Err(Failure::Denied(format!(
                            "port {number} of box {name} is attached already: remove it there first"
                        )));
                    }
                }
                let plug = Plug::default();
                self.insert(switch, new(&port.name, told.clone(), Box::new(plug.clone()), false))?;
                self.move_port(&place, Some((switch.clone(), port.name.clone(), plug)));
            }
            (_, None) => return Err(Failure::Invalid("the port has no device".into())),
        }
        for mac in &port.addresses {
            if let Err(failure) = self.set_address(switch, *mac, &port.name) {
                let _ = self.remove_port(switch, &port.name);
                return Err(failure);
            }
        }
        if port.default {
            self.set_default(switch, &port.name)?;
        }
        Ok(())
    }

    fn insert(&mut self, switch: &SwitchName, new: NewPort) -> Result<(), Failure> {
        self.is_vacant(switch, new.name)?;
        let (bridge, worker) = self.both(switch)?;
        let taps = Taps::default();
        let driver = Box::new(Tapped { driver: new.driver, taps: taps.clone() });
        let id = worker
            .add_port(driver, settings(new.limits))
            .map_err(|SwitchError::Full| Failure::Limit("ports at the switch", switch::MAX_PORTS))?;
        let place = Place { id, taps, is_paced: new.is_paced, driver: new.told, limits: *new.limits };
        bridge.ports.insert(new.name.clone(), place);
        Ok(())
    }

    /// Adds the port of a switch for a box's port; its name.
    pub(super) fn add_box_port(
        &mut self,
        switch: &SwitchName,
        name: &BoxName,
        number: u8,
        attach: &Attach,
    ) -> Result<(PortName, Plug), Failure> {
        let port: PortName = format!("{name}.{number}").parse().map_err(|_| {
            Failure::Invalid(format!(
                "the name {name} is too long for a box at a switch: take one shorter by 3"
            ))
        })?;
        let plug = Plug::default();
        let told = PortDriver::Box { name: name.clone(), port: number };
        let driver = Box::new(plug.clone());
        self.insert(switch, NewPort { name: &port, limits: &attach.limits, told, driver, is_paced: false })?;
        let (bridge, worker) = self.both(switch)?;
        // A static switch knows where the box is; a learning one will hear of it.
        if let (Way::Static(table), Some(place)) = (worker.switch().forward_mut(), bridge.ports.get(&port)) {
            let inserted = table.insert(MacAddr(attach.mac.0), place.id);
            if let Err(error) = inserted {
                self.drop_port(switch, &port);
                return Err(Failure::Denied(error.to_string()));
            }
        }
        Ok((port, plug))
    }

    /// Lets a port go on whose box is back.
    pub(super) fn revive(&mut self, switch: &SwitchName, port: &PortName, plug: Plug) {
        if let Ok((bridge, worker)) = self.both(switch)
            && let Some(place) = bridge.ports.get(port)
        {
            worker.set_driver(place.id, Box::new(Tapped { driver: plug, taps: place.taps.clone() }));
        }
    }

    /// Gives a port whose device failed a new one.
    pub(crate) fn reopen(&mut self, switch: &SwitchName, port: &PortName, opened: Opened) {
        if let Ok((bridge, worker)) = self.both(switch)
            && let Some(place) = bridge.ports.get(port)
        {
            let driver = Tapped { driver: opened.driver, taps: place.taps.clone() };
            worker.set_driver(place.id, Box::new(driver));
        }
    }

    /// Takes a port out of its switch, and nothing else.
    pub(super) fn drop_port(&mut self, switch: &SwitchName, port: &PortName) {
        if let Ok((bridge, worker)) = self.both(switch)
            && let Some(place) = bridge.ports.remove(port)
        {
            place.taps.end();
            worker.remove_port(place.id);
            bridge.default.take_if(|default| default == port);
        }
    }

    /// Removes a port; the other end of a pipe goes with it, a box's port is at nothing then.
    pub(crate) fn remove_port(&mut self, switch: &SwitchName, port: &PortName) -> Result<(), Failure> {
        let (bridge, _) = self.both(switch)?;
        let missing = || Failure::NoPort(switch.clone(), port.clone());
        match bridge.ports.get(port).ok_or_else(missing)?.driver.clone() {
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

    /// Says where an address is.
    pub(crate) fn set_address(
        &mut self,
        switch: &SwitchName,
        mac: Mac,
        port: &PortName,
    ) -> Result<(), Failure> {
        let (bridge, worker) = self.both(switch)?;
        let missing = || Failure::NoPort(switch.clone(), port.clone());
        let id = bridge.ports.get(port).ok_or_else(missing)?.id;
        match worker.switch().forward_mut() {
            Way::Static(table) => {
                let inserted = table.insert(MacAddr(mac.0), id);
                inserted.map(drop).map_err(|error| Failure::Denied(error.to_string()))
            }
            Way::Learning(_) => Err(learning(switch)),
        }
    }

    /// Forgets where an address is.
    pub(crate) fn remove_address(&mut self, switch: &SwitchName, mac: Mac) -> Result<(), Failure> {
        let (_, worker) = self.both(switch)?;
        match worker.switch().forward_mut() {
            Way::Static(table) => {
                let missing = || Failure::NoAddress(switch.clone(), mac);
                table.remove(MacAddr(mac.0)).map(drop).ok_or_else(missing)
            }
            Way::Learning(_) => Err(learning(switch)),
        }
    }

    fn set_default(&mut self, switch: &SwitchName, port: &PortName) -> Result<(), Failure> {
        let (bridge, worker) = self.both(switch)?;
        match worker.switch().forward_mut() {
            Way::Static(table) => {
                table.set_default(bridge.ports.get(port).map(|place| place.id));
                bridge.default = Some(port.clone());
                Ok(())
            }
            Way::Learning(_) => Err(learning(switch)),
        }
    }

    /// All addresses that a switch knows, by address.
    pub(crate) fn addresses(&mut self, switch: &SwitchName) -> Result<Vec<AddressEntry>, Failure> {
        let (bridge, worker) = self.both(switch)?;
        let now = worker.now();
        let found: Vec<(MacAddr, PortId, Option<u64>)> = match worker.switch().forward_mut() {
            Way::Static(table) => table.entries().map(|(mac, port)| (mac, port, None)).collect(),
            Way::Learning(bridge) => {
                bridge.entries(now).map(|(mac, port, age)| (mac, port, Some(age))).collect()
            }
        };
        let names: BTreeMap<PortId, &PortName> =
            bridge.ports.iter().map(|(name, place)| (place.id, name)).collect();
        let entry = |(mac, port, age): (MacAddr, PortId, Option<u64>)| {
            let age_seconds =
                age.map(|age| u32::try_from(Duration::from_nanos(age).as_secs()).unwrap_or(u32::MAX));
            let kind = if age.is_some() { AddressKind::Learned } else { AddressKind::Static };
            names.get(&port).map(|name| AddressEntry {
                mac: Mac(mac.0),
                port: (*name).clone(),
                kind,
                age_seconds,
            })
        };
        let mut entries: Vec<AddressEntry> = found.into_iter().filter_map(entry).collect();
        entries.sort_by_key(|entry| entry.mac);
        Ok(entries)
    }

    pub(super) fn address_count(&mut self, switch: &SwitchName) -> u32 {
        let Ok((_, worker)) = self.both(switch) else { return 0 };
        let now = worker.now();
        let count = match worker.switch().forward_mut() {
            Way::Static(table) => table.entries().count(),
            Way::Learning(bridge) => bridge.entries(now).count(),
        };
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// The ports of a switch: what is behind each, what it may cost, whether it is the default.
    pub(crate) fn described(
        &mut self,
        switch: &SwitchName,
    ) -> Result<Vec<(PortName, PortDriver, Limits, bool)>, Failure> {
        let (bridge, _) = self.both(switch)?;
        let described = |(name, place): (&PortName, &Place)| {
            (name.clone(), place.driver.clone(), place.limits, bridge.default.as_ref() == Some(name))
        };
        Ok(bridge.ports.iter().map(described).collect())
    }

    /// What passed the ports of a switch.
    pub(super) fn switch_ports(&mut self, switch: &SwitchName) -> BTreeMap<PortName, Passed> {
        let Ok((bridge, worker)) = self.both(switch) else { return BTreeMap::new() };
        let look = |(name, place): (&PortName, &Place)| {
            let counters = worker.counters(place.id).unwrap_or_default();
            let cost = worker.cost(place.id).unwrap_or_default().time;
            let fault = worker.down(place.id).map(ToString::to_string);
            (name.clone(), Passed { counters, cost, fault })
        };
        bridge.ports.iter().map(look).collect()
    }

    pub(super) fn switch_taps(&self, switch: &SwitchName, port: &PortName) -> Result<Taps, Failure> {
        let missing = || Failure::NoPort(switch.clone(), port.clone());
        let bridge = self.bridges.get(self.number(switch)?).ok_or_else(missing)?;
        Ok(bridge.ports.get(port).ok_or_else(missing)?.taps.clone())
    }
}

fn learning(switch: &SwitchName) -> Failure {
    Failure::Denied(format!(
        "switch {switch} learns its addresses: only a switch of mode static can be told them"
    ))
}
