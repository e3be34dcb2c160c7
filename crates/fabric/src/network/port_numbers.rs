//! The numbers of the ports, services and chains of a steering switch, which controllers know them by.

use super::attach::Network;
use super::flows::{all_steering, malformed};
use super::records::SwitchRecord;
use crate::error::OperationError;
use crate::limits::{MAX_CHAINS, MAX_SERVICES};
use flow_table::{Output, port_number};
use model::{AddFlow, ChainName, Destination, FlowOutput, OpenFlowPort, PortName, ServiceName, SwitchName};
use protocol::fabric::{NewPortNumbersReply, PortNumberMark};
use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::ops::Range;

/// Numbers of ports. Zero is none in OpenFlow, and those of services follow.
const PORTS: Range<u16> = 1..port_number::SERVICES.start as u16;

/// Numbers of services and of chains. Controllers know them by others.
const SERVICES: Range<u16> = 0..MAX_SERVICES as u16;
const CHAINS: Range<u16> = 0..MAX_CHAINS as u16;

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
        sorting::collect(
            of_flows.chain(of_services).chain(definition.chains.iter().map(|chain| chain.name.clone())),
        )
    }

    /// The names of services that there are.
    fn service_names(&self) -> BTreeSet<ServiceName> {
        sorting::collect(self.services.definition.services.iter().map(|service| service.name.clone()))
    }

    /// The number of the next change of numbers. It may change nothing.
    fn next_number_change(&mut self) -> u64 {
        self.numbered.change += 1;
        self.numbered.change
    }

    /// The number of the name of a port.
    pub(super) fn port_number(&mut self, name: &PortName) -> Result<u16, OperationError> {
        let change = self.next_number_change();
        let mut numbers = std::mem::take(&mut self.port_numbers);
        let used = LazyCell::new(|| self.port_names());
        let number = numbers.give(name, PORTS, change, |there| used.contains(there));
        self.port_numbers = numbers;
        number.ok_or_else(|| malformed("the flows name too many ports"))
    }

    /// The number of the name of a service.
    pub(super) fn service_number(&mut self, name: &ServiceName) -> Result<u16, OperationError> {
        let change = self.next_number_change();
        let mut numbers = std::mem::take(&mut self.services.services);
        let used = LazyCell::new(|| self.service_names());
        let number = numbers.give(name, SERVICES, change, |there| used.contains(there));
        self.services.services = numbers;
        number.ok_or_else(|| malformed("there are too many services"))
    }

    /// The number of the name of a chain.
    pub(super) fn chain_number(&mut self, name: &ChainName) -> Result<u16, OperationError> {
        let change = self.next_number_change();
        let mut numbers = std::mem::take(&mut self.services.chains);
        let used = LazyCell::new(|| self.chain_names());
        let number = numbers.give(name, CHAINS, change, |there| used.contains(there));
        self.services.chains = numbers;
        number.ok_or_else(|| malformed("there are too many chains"))
    }
}

/// The number that controllers know something by.
fn openflow(output: Output) -> Option<u16> {
    u16::try_from(output.port_number()?).ok()
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
        let number = |(port, output): (OpenFlowPort, Output)| Some((port, openflow(output)?));
        let mut numbers: Vec<_> = ports.chain(services).chain(chains).filter_map(number).collect();
        sorting::sort_by_key(&mut numbers, |(_, number)| *number);
        Ok(numbers)
    }
    /// The numbers that a steering switch has given since a mark, also those of names that nothing has any more.
    pub(crate) fn new_port_numbers(
        &mut self,
        switch: &SwitchName,
        since: PortNumberMark,
    ) -> Result<NewPortNumbersReply, OperationError> {
        let (record, runner) = self.record_and_runner(switch)?;
        all_steering(switch, runner)?;
        // A mark of another switch, perhaps of the same name.
        let change = if since.switch == record.numbered.switch { since.change } else { 0 };
        let ports = record.port_numbers.since(change).map(|(change, name, number)| {
            (change, OpenFlowPort::Port(name.clone()), Output::Port(number.into()))
        });
        let services = record.services.services.since(change).map(|(change, name, number)| {
            (change, OpenFlowPort::Service(name.clone()), Output::Service(number.into()))
        });
        let chains = record.services.chains.since(change).map(|(change, name, number)| {
            (change, OpenFlowPort::Chain(name.clone()), Output::Chain(number.into()))
        });
        let mut given: Vec<_> = ports.chain(services).chain(chains).collect();
        sorting::sort_by_key(&mut given, |(change, ..)| *change);
        let numbers = given.into_iter().filter_map(|(_, port, output)| Some((port, openflow(output)?)));
        Ok(NewPortNumbersReply { mark: record.numbered, numbers: numbers.collect() })
    }
}
