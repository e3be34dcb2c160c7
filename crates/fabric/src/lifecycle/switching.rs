//! What the daemon can do with switches and their ports.

use super::state::Fabric;
use crate::error::{OperationError, PortError};
use crate::network::{ControllerNews, Network, adopt, placeholder};
use model::{
    AddPort, AddressEntry, CreateSwitch, EventKind, FlowStatus, MacAddr, OpenFlowPort, PortName, SwitchName,
};
use openflow::message::MultipartRequest;
use openflow::session::Report;
use protocol::agent::ControllerState;
use protocol::fabric::{
    FlowDefinition, LinkEnd, NewPortNumbersReply, PortInventory, PortNumberMark, SteeringDefinition,
    SteeringReply, TrafficSnapshot,
};
use std::os::fd::OwnedFd;
use switch::driver::LinkPort;

impl Fabric {
    /// Returns when the thread that moves packets responds.
    pub(crate) fn ping(&self) -> Result<(), OperationError> {
        self.0.switches.ask(|_| ())
    }

    /// Runs a command in the thread that moves packets.
    pub(crate) fn network<T: Send + 'static>(
        &self,
        command: impl FnOnce(&mut Network) -> T + Send + 'static,
    ) -> Result<T, OperationError> {
        self.0.switches.ask(command)
    }

    /// How the connections to the controllers of a switch are.
    pub(crate) fn controller_states(
        &self,
        switch: SwitchName,
    ) -> Result<Vec<ControllerState>, OperationError> {
        self.0.switches.ask(move |network| network.controller_states(&switch))?
    }

    /// Notes controllers that came or went.
    pub(crate) fn note_controllers(&self, news: Vec<ControllerNews>) {
        for ControllerNews { switch, controller, is_connected, error } in news {
            let (kind, state) = match (is_connected, error) {
                (true, _) => (EventKind::ControllerConnected, "is connected".to_string()),
                (false, Some(error)) => {
                    let error = error.escape_debug();
                    (EventKind::ControllerLost, format!("is not connected any more: {error}"))
                }
                (false, None) => (EventKind::ControllerLost, "is not connected any more".to_string()),
            };
            self.0.note(kind, &switch, format!("controller {controller} of switch {switch} {state}"));
        }
    }

    /// A part of a report about what controllers have added to a switch.
    pub(crate) fn controller_report(
        &self,
        switch: SwitchName,
        request: MultipartRequest,
        from: u64,
    ) -> Result<Report, OperationError> {
        self.0.switches.ask(move |network| network.controller_report(&switch, &request, from))?
    }

    /// Adds a switch without ports.
    pub(crate) fn add_switch(&self, definition: CreateSwitch) -> Result<(), OperationError> {
        self.0.switches.ask(move |network| network.add_switch(&definition))?
    }

    /// Removes a switch and its ports.
    pub(crate) fn remove_switch(&self, switch: SwitchName) -> Result<(), OperationError> {
        let result = self.0.switches.ask(move |network| network.remove_switch(&switch))?;
        self.0.functions.wake();
        result
    }

    /// Checks that a port of this name can be added.
    pub(crate) fn check_vacant(&self, switch: SwitchName, port: PortName) -> Result<(), OperationError> {
        self.0.switches.ask(move |network| network.check_vacant(&switch, &port))?
    }

    /// Adds a port with the descriptors of its device. Without any, it is down.
    pub(crate) fn add_port(
        &self,
        switch: SwitchName,
        port: AddPort,
        descriptors: Vec<OwnedFd>,
        instead: Option<String>,
    ) -> Result<(), OperationError> {
        let drivers = adopt(&port.driver, descriptors, instead, self.0.switches.threads())?;
        self.0.switches.ask(move |network| network.add_port(&switch, &port, drivers))?
    }

    /// Gives a port its device again.
    pub(crate) fn reopen_port(
        &self,
        switch: SwitchName,
        port: AddPort,
        descriptors: Vec<OwnedFd>,
        instead: Option<String>,
    ) -> Result<(), OperationError> {
        let drivers = adopt(&port.driver, descriptors, instead, self.0.switches.threads())?;
        let drivers = drivers.unwrap_or_else(|| vec![placeholder()]);
        self.0.switches.ask(move |network| network.reopen(&switch, &port.name, drivers))
    }

    /// A duplicate of the descriptor of a port's device, if the device must not be opened twice.
    pub(crate) fn device(
        &self,
        switch: SwitchName,
        port: PortName,
    ) -> Result<Option<OwnedFd>, OperationError> {
        self.0.switches.ask(move |network| network.device(&switch, &port))?
    }

    /// Adds a port at one side of a new link, or gives it the link. Returns the descriptors for the other side.
    pub(crate) fn open_link(
        &self,
        switch: SwitchName,
        port: AddPort,
    ) -> Result<[OwnedFd; 2], OperationError> {
        let (link, descriptors) = LinkPort::create().map_err(|error| PortError::Device(error.into()))?;
        self.0.switches.ask(move |network| network.link_port(&switch, &port, false, Box::new(link)))??;
        Ok(descriptors)
    }

    /// Adds a port at the other side of a link, or gives it the link.
    pub(crate) fn join_link(
        &self,
        switch: SwitchName,
        port: AddPort,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(), OperationError> {
        let descriptors = descriptors.try_into().map_err(|_: Vec<OwnedFd>| PortError::NoDevice)?;
        let link = LinkPort::join(descriptors).map_err(|error| PortError::Device(error.into()))?;
        self.0.switches.ask(move |network| network.link_port(&switch, &port, true, Box::new(link)))?
    }

    /// Removes a port.
    pub(crate) fn remove_port(&self, switch: SwitchName, port: PortName) -> Result<(), OperationError> {
        self.0.switches.ask(move |network| network.remove_port(&switch, &port))?
    }

    /// Assigns an address to a port of a static switch.
    pub(crate) fn set_address(
        &self,
        switch: SwitchName,
        mac: MacAddr,
        port: PortName,
    ) -> Result<(), OperationError> {
        self.0.switches.ask(move |network| network.set_address(&switch, mac, &port))?
    }

    /// Adds a flow to a steering switch.
    pub(crate) fn add_flow(&self, switch: SwitchName, flow: FlowDefinition) -> Result<(), OperationError> {
        self.0.switches.ask(move |network| network.add_flow(&switch, &flow))?
    }

    /// Removes a flow from a steering switch.
    pub(crate) fn remove_flow(&self, switch: SwitchName, id: u64) -> Result<(), OperationError> {
        self.0.switches.ask(move |network| network.remove_flow(&switch, id))?
    }

    /// Some flows of a steering switch.
    pub(crate) fn flows(
        &self,
        switch: SwitchName,
        after: u64,
        most: Option<u32>,
    ) -> Result<Vec<FlowStatus>, OperationError> {
        self.0.switches.ask(move |network| network.flows(&switch, after, most))?
    }

    /// Removes an address from a static switch.
    pub(crate) fn remove_address(&self, switch: SwitchName, mac: MacAddr) -> Result<(), OperationError> {
        self.0.switches.ask(move |network| network.remove_address(&switch, mac))?
    }

    /// Makes a port of a static switch, or none, the one that receives frames to unknown addresses.
    pub(crate) fn set_default(
        &self,
        switch: SwitchName,
        port: Option<PortName>,
    ) -> Result<(), OperationError> {
        self.0.switches.ask(move |network| network.set_default(&switch, port.as_ref()))?
    }

    /// Gives a steering switch other services and chains.
    pub(crate) fn set_steering(
        &self,
        switch: SwitchName,
        steering: SteeringDefinition,
    ) -> Result<(), OperationError> {
        let result = self.0.switches.ask(move |network| network.set_steering(&switch, steering))?;
        // Functions may have lost their service.
        self.0.functions.wake();
        result
    }

    /// Gives names of a steering switch these numbers.
    pub(crate) fn set_port_numbers(
        &self,
        switch: SwitchName,
        numbers: Vec<(OpenFlowPort, u16)>,
    ) -> Result<(), OperationError> {
        self.0.switches.ask(move |network| network.set_port_numbers(&switch, numbers))?
    }

    /// The numbers of the ports, services and chains of a steering switch.
    pub(crate) fn port_numbers(
        &self,
        switch: SwitchName,
    ) -> Result<Vec<(OpenFlowPort, u16)>, OperationError> {
        self.0.switches.ask(move |network| network.port_numbers(&switch))?
    }

    /// The numbers that a steering switch has given since a mark.
    pub(crate) fn new_port_numbers(
        &self,
        switch: SwitchName,
        since: PortNumberMark,
    ) -> Result<NewPortNumbersReply, OperationError> {
        self.0.switches.ask(move |network| network.new_port_numbers(&switch, since))?
    }

    /// The state of the services and chains of a steering switch.
    pub(crate) fn steering(&self, switch: SwitchName) -> Result<SteeringReply, OperationError> {
        self.0.switches.ask(move |network| network.steering_reply(&switch))?
    }

    /// The address table of a switch.
    pub(crate) fn addresses(&self, switch: SwitchName) -> Result<Vec<AddressEntry>, OperationError> {
        self.0.switches.ask(move |network| network.addresses(&switch))?
    }

    /// The ports of a switch.
    pub(crate) fn ports(&self, switch: SwitchName) -> Result<Vec<PortInventory>, OperationError> {
        self.0.switches.ask(move |network| network.described(&switch))?
    }

    /// What passed the ends of links to other fabrics.
    pub(crate) fn link_ends(&self) -> Result<Vec<LinkEnd>, OperationError> {
        self.0.switches.ask(|network| network.link_ends())
    }

    /// The counters of all ports.
    pub(crate) fn traffic(&self) -> Result<TrafficSnapshot, OperationError> {
        self.0.switches.ask(|network| network.traffic_snapshot())
    }
}
