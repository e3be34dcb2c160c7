//! The addresses and the default ports of switches.

use super::claims::Claim;
use super::operation::Operation;
use super::state::Supervisor;
use crate::error::{OperationError, RequestError};
use crate::store::{Action, StoreChange};
use api::{AddressEntry, AddressKind, CreateSwitch, MacAddr, PortDriver, PortName, SwitchName};
use protocol::fabric::orders;
use std::collections::{BTreeMap, BTreeSet};

/// Where a switch sends frames.
#[derive(Debug)]
pub(super) struct Forwarding {
    switch: SwitchName,
    addresses: Vec<AddressEntry>,
    default: Option<PortName>,
}

/// Checks that no two ports in the definition of a switch have the same address, or are both the default port.
pub(super) fn check_forwarding(switch: &CreateSwitch) -> Result<(), OperationError> {
    let mut known = BTreeMap::new();
    for port in &switch.ports {
        for mac in &port.addresses {
            if let Some(other) = known.insert(mac, &port.name)
                && *other != port.name
            {
                let ports = [other.clone(), port.name.clone()];
                return Err(RequestError::AddressOfTwoPorts(switch.name.clone(), *mac, ports).into());
            }
        }
    }
    let mut defaults = switch.ports.iter().filter(|port| port.default).map(|port| port.name.clone());
    match (defaults.next(), defaults.next()) {
        (Some(one), Some(other)) => {
            Err(RequestError::TwoDefaultPorts(switch.name.clone(), [one, other]).into())
        }
        _ => Ok(()),
    }
}

impl Supervisor {
    /// The address table of a switch.
    pub fn addresses(&self, switch: &SwitchName) -> Result<Vec<AddressEntry>, OperationError> {
        self.0.fabrics.ask(orders::Addresses { switch: switch.clone() })
    }

    /// Assigns an address to a port of a static switch.
    pub fn set_address(
        &self,
        switch: &SwitchName,
        mac: MacAddr,
        port: &PortName,
    ) -> Result<(), OperationError> {
        self.operate(Action::Change, switch, &|| vec![Claim::change(switch)], |operation| {
            self.put_address(operation, switch, mac, port)
        })
    }

    /// Assigns an address as a step of an operation.
    pub(super) fn put_address(
        &self,
        operation: &mut Operation,
        switch: &SwitchName,
        mac: MacAddr,
        port: &PortName,
    ) -> Result<(), OperationError> {
        let _change = self.0.change();
        let mut stored = self.stored_switch(switch)?;
        let before = stored.clone();
        let mut known = self.addresses(switch)?.into_iter();
        let previous = known.find(|entry| entry.mac == mac).map(|entry| entry.port);
        self.assign(switch, mac, port)?;
        let at = switch.clone();
        operation.undo_by(move |supervisor| {
            let _change = supervisor.0.change();
            // If the fabric has ended, nothing is assigned.
            let _ = match previous {
                Some(port) => supervisor.assign(&at, mac, &port),
                None => supervisor.unset(&at, mac),
            };
            supervisor.0.switches().insert(at, before);
        });
        stored.set_address(mac, port);
        operation.add(StoreChange::PutSwitch(stored.clone()));
        self.0.switches().insert(switch.clone(), stored);
        Ok(())
    }

    /// The addresses and the default port of a switch.
    pub(super) fn forwarding(&self, switch: &SwitchName) -> Result<Forwarding, OperationError> {
        let described = self.0.fabrics.ask(orders::Ports { switch: switch.clone() })?;
        let default = described.into_iter().find(|found| found.port.default).map(|found| found.port.name);
        Ok(Forwarding { switch: switch.clone(), addresses: self.addresses(switch)?, default })
    }

    /// The addresses and the default ports of a switch and of those at the other ends of its pipes.
    pub(super) fn forwarding_around(&self, switch: &SwitchName) -> Result<Vec<Forwarding>, OperationError> {
        let described = self.0.fabrics.ask(orders::Ports { switch: switch.clone() })?;
        let far_ends = described.into_iter().filter_map(|found| match found.port.driver {
            PortDriver::Pipe { switch, .. } => Some(switch),
            _ => None,
        });
        let all: BTreeSet<SwitchName> = sorting::collect(far_ends.chain([switch.clone()]));
        all.iter().map(|switch| self.forwarding(switch)).collect()
    }

    /// Undoes changes of the addresses and the default port of a static switch. A learning one learns again.
    pub(super) fn restore_forwarding(&self, before: Forwarding) {
        let switch = &before.switch;
        let is_static = |entry: &AddressEntry| entry.kind == AddressKind::Static;
        let known: Vec<AddressEntry> = before.addresses.into_iter().filter(is_static).collect();
        // If the fabric has ended, nothing is assigned.
        let now = self.addresses(switch).unwrap_or_default();
        for entry in now.into_iter().filter(is_static) {
            if !known.iter().any(|before| before.mac == entry.mac) {
                let _ = self.unset(switch, entry.mac);
            }
        }
        for entry in known {
            let _ = self.assign(switch, entry.mac, &entry.port);
        }
        let _ = self.0.fabrics.ask(orders::SetDefault { switch: switch.clone(), port: before.default });
    }

    fn assign(&self, switch: &SwitchName, mac: MacAddr, port: &PortName) -> Result<(), OperationError> {
        self.0.fabrics.ask(orders::SetAddress { switch: switch.clone(), mac, port: port.clone() })
    }

    fn unset(&self, switch: &SwitchName, mac: MacAddr) -> Result<(), OperationError> {
        self.0.fabrics.ask(orders::RemoveAddress { switch: switch.clone(), mac })
    }

    /// Removes an address from a static switch.
    pub fn remove_address(&self, switch: &SwitchName, mac: MacAddr) -> Result<(), OperationError> {
        self.operate(Action::Change, switch, &|| vec![Claim::change(switch)], |operation| {
            let mut stored = self.stored_switch(switch)?;
            if !self.addresses(switch)?.iter().any(|entry| entry.mac == mac) {
                return Err(OperationError::NoAddress(switch.clone(), mac));
            }
            stored.forget_address(mac);
            operation.add(StoreChange::PutSwitch(stored.clone()));
            let at = switch.clone();
            operation.after_commit(move |supervisor| {
                let _change = supervisor.0.change();
                // A learned address may have expired meanwhile.
                let _ = supervisor.unset(&at, mac);
                supervisor.0.switches().insert(at, stored);
            });
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_bed::TestBed;
    use super::*;
    use api::{AddPort, Limits, SwitchMode};

    fn mac(number: u8) -> MacAddr {
        MacAddr::new([2, 0, 0, 0, 0, number])
    }

    fn port(name: &str, addresses: &[MacAddr], default: bool) -> AddPort {
        let (name, driver) = (name.parse().unwrap(), PortDriver::Null {});
        AddPort { name, driver, addresses: addresses.to_vec(), default, limits: Limits::default() }
    }

    type Assigned = (Vec<(MacAddr, String)>, Option<PortName>);

    /// The addresses and the default port in the fabric, before and after it is replaced by another one.
    fn twice(bed: &TestBed, lan: &SwitchName) -> [Assigned; 2] {
        let now = || {
            let forwarding = bed.forwarding(lan).unwrap();
            let addresses = forwarding.addresses.iter().map(|entry| (entry.mac, entry.port.to_string()));
            (addresses.collect(), forwarding.default)
        };
        let before = now();
        bed.replace_fabric();
        [before, now()]
    }

    /// A port that takes addresses and being the default port has them in the next fabric too, and no port has them after it.
    #[test]
    fn what_a_port_took_from_another_does_not_come_back() {
        let bed = TestBed::unwatched_with_click();
        let lan: SwitchName = "lan".parse().unwrap();
        let definition = CreateSwitch { mode: SwitchMode::Static, ..CreateSwitch::new(lan.clone()) };
        let ports = vec![port("a", &[mac(1), mac(2), mac(3)], true)];
        bed.create_switch(CreateSwitch { ports, ..definition }).unwrap();
        bed.add_port(&lan, &port("b", &[mac(1)], true)).unwrap();
        bed.set_address(&lan, mac(2), &"b".parse().unwrap()).unwrap();
        let at = |number, port: &str| (mac(number), port.to_string());
        let taken = (vec![at(1, "b"), at(2, "b"), at(3, "a")], Some("b".parse().unwrap()));
        assert_eq!(twice(&bed, &lan), [taken.clone(), taken.clone()]);
        bed.fail_commits(true);
        bed.add_port(&lan, &port("c", &[mac(2), mac(3)], true)).unwrap_err();
        bed.fail_commits(false);
        assert_eq!(twice(&bed, &lan), [taken.clone(), taken]);
        bed.remove_port(&lan, &"b".parse().unwrap()).unwrap();
        let left = (vec![at(3, "a")], None);
        assert_eq!(twice(&bed, &lan), [left.clone(), left]);
    }

    #[test]
    fn the_ports_of_a_definition_share_no_address_and_no_default() {
        let bed = TestBed::unwatched_with_click();
        let refused = |ports: [AddPort; 2]| {
            let definition = CreateSwitch {
                mode: SwitchMode::Static,
                ports: ports.into(),
                ..CreateSwitch::new("lan".parse().unwrap())
            };
            bed.create_switch(definition).unwrap_err().to_string()
        };
        assert_eq!(
            refused([port("a", &[mac(1)], false), port("b", &[mac(1)], false)]),
            "ports a and b of switch lan both have the address 02:00:00:00:00:01: name one"
        );
        assert_eq!(
            refused([port("a", &[], true), port("b", &[], true)]),
            "ports a and b of switch lan are both its default port: name one"
        );
        assert!(bed.switches().unwrap().is_empty());
    }
}
