//! Numbers in place of the names of ports, services and chains.

use super::attach::Network;
use super::flows::{all_steering, malformed};
use super::records::SwitchRecord;
use crate::error::OperationError;
use crate::limits::{MAX_CHAINS, MAX_SERVICES};
use flow_table::{Output, port_number};
use model::{AddFlow, ChainName, Destination, FlowOutput, OpenFlowPort, PortName, ServiceName, SwitchName};
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Numbers of ports. Zero is none in OpenFlow, and those of services follow.
const PORTS: Range<u16> = 1..port_number::SERVICES.start as u16;

/// Numbers of services and of chains. Controllers know them by others.
const SERVICES: Range<u16> = 0..MAX_SERVICES as u16;
const CHAINS: Range<u16> = 0..MAX_CHAINS as u16;

/// Numbers of names. A name keeps its number also when nothing has the name any more, until all numbers were given and its
/// own is the next one: controllers know ports by their numbers.
#[derive(Debug)]
pub(super) struct Numbers<Name> {
    numbers: BTreeMap<Name, u16>,
    names: BTreeMap<u16, Name>,
    /// The number that was given last.
    last: Option<u16>,
}

impl<Name> Default for Numbers<Name> {
    fn default() -> Self {
        Self { numbers: BTreeMap::new(), names: BTreeMap::new(), last: None }
    }
}

impl<Name: Ord + Clone> Numbers<Name> {
    /// The number of a name.
    pub(super) fn get(&self, name: &Name) -> Option<u16> {
        self.numbers.get(name).copied()
    }

    /// The number of a name. A name without one gets the next after the number that was given last, unless a name that is used
    /// has it. `None` if all are used.
    fn give(&mut self, name: &Name, range: Range<u16>, is_used: impl Fn(&Name) -> bool) -> Option<u16> {
        if let Some(number) = self.get(name) {
            return Some(number);
        }
        let next = self.last.map_or(range.start, |last| last.saturating_add(1)).min(range.end);
        let mut numbers = (next..range.end).chain(range.start..next);
        let number = numbers.find(|number| self.names.get(number).is_none_or(|there| !is_used(there)))?;
        self.insert(name.clone(), number);
        Some(number)
    }

    /// Gives a name this number. Refused if the name has another one, or another name has it.
    fn set(&mut self, name: Name, number: u16) -> Result<(), OperationError> {
        match (self.get(&name), self.names.contains_key(&number)) {
            (None, false) => {
                self.insert(name, number);
                Ok(())
            }
            (Some(there), _) if there == number => Ok(()),
            _ => Err(malformed("a name or a number is there twice")),
        }
    }

    fn insert(&mut self, name: Name, number: u16) {
        if let Some(forgotten) = self.names.insert(number, name.clone()) {
            self.numbers.remove(&forgotten);
        }
        self.numbers.insert(name, number);
        self.last = Some(number);
    }
}

/// Gives each name the lowest number that is free: names that are known keep theirs, and those that are not wanted lose them.
pub(super) fn number<Name: Ord + Clone>(
    numbers: &mut BTreeMap<Name, u16>,
    wanted: &BTreeSet<Name>,
    count: u16,
) -> Result<(), OperationError> {
    numbers.retain(|name, _| wanted.contains(name));
    let mut taken: BTreeSet<u16> = numbers.values().copied().collect();
    for name in wanted {
        if !numbers.contains_key(name) {
            let lowest = (0..count).find(|number| !taken.contains(number));
            let number = lowest.ok_or_else(|| malformed("there are too many names"))?;
            taken.insert(number);
            numbers.insert(name.clone(), number);
        }
    }
    Ok(())
}

impl SwitchRecord {
    /// The names of ports that there are, or that flows, services or chains name.
    fn port_names(&self) -> BTreeSet<PortName> {
        let of_flow = |flow: &AddFlow| {
            let output = match &flow.output {
                FlowOutput::Port(name) => Some(name.clone()),
                _ => None,
            };
            [flow.in_port.clone(), output].into_iter().flatten()
        };
        let mut names = self.ports_of_chains();
        names.extend(self.flows.values().flat_map(of_flow));
        names.extend(self.ports.keys().cloned());
        names
    }

    /// The names of chains that there are, or that flows or services name.
    fn chain_names(&self) -> BTreeSet<ChainName> {
        let of_flows = self.flows.values().filter_map(|flow| match &flow.output {
            FlowOutput::Chain(name) => Some(name.clone()),
            _ => None,
        });
        let definition = &self.services.definition;
        let destinations = definition.services.iter().flat_map(|service| &service.destinations);
        let of_services = destinations.filter_map(|destination| match destination {
            Destination::Chain(name) => Some(name.clone()),
            Destination::Service(_) | Destination::Port(_) => None,
        });
        of_flows.chain(of_services).chain(definition.chains.iter().map(|chain| chain.name.clone())).collect()
    }

    /// The names of services that there are.
    fn service_names(&self) -> BTreeSet<ServiceName> {
        self.services.definition.services.iter().map(|service| service.name.clone()).collect()
    }

    /// The number of the name of a port.
    pub(super) fn port_number(&mut self, name: &PortName) -> Result<u16, OperationError> {
        let mut numbers = std::mem::take(&mut self.port_numbers);
        let used = LazyCell::new(|| self.port_names());
        let number = numbers.give(name, PORTS, |there| used.contains(there));
        self.port_numbers = numbers;
        number.ok_or_else(|| malformed("the flows name too many ports"))
    }

    /// The number of the name of a service.
    pub(super) fn service_number(&mut self, name: &ServiceName) -> Result<u16, OperationError> {
        let mut numbers = std::mem::take(&mut self.services.services);
        let used = LazyCell::new(|| self.service_names());
        let number = numbers.give(name, SERVICES, |there| used.contains(there));
        self.services.services = numbers;
        number.ok_or_else(|| malformed("there are too many services"))
    }

    /// The number of the name of a chain.
    pub(super) fn chain_number(&mut self, name: &ChainName) -> Result<u16, OperationError> {
        let mut numbers = std::mem::take(&mut self.services.chains);
        let used = LazyCell::new(|| self.chain_names());
        let number = numbers.give(name, CHAINS, |there| used.contains(there));
        self.services.chains = numbers;
        number.ok_or_else(|| malformed("there are too many chains"))
    }
}

impl Network {
    /// Gives names of a steering switch these numbers, which controllers know them by, before there are ports.
    pub(crate) fn set_port_numbers(
        &mut self,
        switch: &SwitchName,
        numbers: Vec<(OpenFlowPort, u16)>,
    ) -> Result<(), OperationError> {
        let (record, runner) = self.record_and_runner(switch)?;
        all_steering(switch, runner)?;
        let inside = |number: u32, range: Range<u16>| {
            let number = u16::try_from(number).ok().filter(|number| range.contains(number));
            number.ok_or_else(|| malformed("a number is too large"))
        };
        for (port, number) in numbers {
            match (port, Output::from_port_number(number.into(), 0)) {
                (OpenFlowPort::Port(name), Some(Output::Port(number))) => {
                    record.port_numbers.set(name, inside(number, PORTS)?)?;
                }
                (OpenFlowPort::Service(name), Some(Output::Service(number))) => {
                    record.services.services.set(name, inside(number, SERVICES)?)?;
                }
                (OpenFlowPort::Chain(name), Some(Output::Chain(number))) => {
                    record.services.chains.set(name, inside(number, CHAINS)?)?;
                }
                _ => return Err(malformed("a number is of another kind")),
            }
        }
        Ok(())
    }

    /// The numbers that controllers know the ports, services and chains of a steering switch by, also those that only flows
    /// name.
    pub(crate) fn port_numbers(
        &mut self,
        switch: &SwitchName,
    ) -> Result<Vec<(OpenFlowPort, u16)>, OperationError> {
        let (record, runner) = self.record_and_runner(switch)?;
        all_steering(switch, runner)?;
        let ports = record.port_names().into_iter().filter_map(|name| {
            let number = record.port_numbers.get(&name)?;
            Some((OpenFlowPort::Port(name), Output::Port(number.into())))
        });
        let services = record.service_names().into_iter().filter_map(|name| {
            let number = record.services.services.get(&name)?;
            Some((OpenFlowPort::Service(name), Output::Service(number.into())))
        });
        let chains = record.chain_names().into_iter().filter_map(|name| {
            let number = record.services.chains.get(&name)?;
            Some((OpenFlowPort::Chain(name), Output::Chain(number.into())))
        });
        let number =
            |(port, output): (OpenFlowPort, Output)| Some((port, u16::try_from(output.port_number()?).ok()?));
        let mut numbers: Vec<_> = ports.chain(services).chain(chains).filter_map(number).collect();
        numbers.sort_by_key(|(_, number)| *number);
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_numbers_until_all_were_given() {
        let mut numbers = Numbers::default();
        let used = |names: &'static [&'static str]| move |name: &&str| names.contains(name);
        for (name, in_use, number) in [
            ("a", &["a"][..], Some(1)),
            ("b", &["a", "b"], Some(2)),
            ("b", &["b"], Some(2)),
            // The number of a removed port is given to no other one before its turn comes.
            ("c", &["b", "c"], Some(3)),
            ("a", &["a", "b", "c"], Some(1)),
            ("d", &["b", "c", "d"], Some(1)),
            ("a", &["a", "b", "d"], Some(3)),
            ("e", &["a", "b", "d", "e"], None),
            ("e", &["a", "b", "e"], Some(1)),
        ] {
            assert_eq!(numbers.give(&name, 1..4, used(in_use)), number, "{name} {in_use:?}");
        }
        assert_eq!(
            ["a", "b", "c", "d", "e"].map(|name| numbers.get(&name)),
            [Some(3), Some(2), None, None, Some(1)]
        );
        assert_eq!(numbers.names.len(), numbers.numbers.len());
    }

    #[test]
    fn numbers_that_are_given_again_are_the_same() {
        let mut numbers = Numbers::default();
        for (name, number, is_accepted) in
            [("a", 2, true), ("b", 1, true), ("a", 2, true), ("a", 3, false), ("c", 1, false)]
        {
            assert_eq!(numbers.set(name, number).is_ok(), is_accepted, "{name} {number}");
        }
        // The last one was the first: the next one follows it.
        assert_eq!(numbers.give(&"c", 1..9, |_| true), Some(3));
        assert_eq!(["a", "b", "c"].map(|name| numbers.get(&name)), [Some(2), Some(1), Some(3)]);
    }
}
