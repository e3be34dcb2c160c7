//! Chains: lists of services that packets of a steering switch pass.

use super::claims::Claim;
use super::destinations::senders;
use super::operation::Operation;
use super::services::note_chain_removed;
use super::state::Supervisor;
use crate::error::OperationError;
use crate::service_error::ServiceError;
use crate::store::{Action, StoredChain, StoredSteering};
use api::{
    ChainDetail, ChainName, ChainStatus, CreateChain, Destination, EventKind, FlowOutput, HopStatus,
    HopTraffic, MAX_CHAIN_LENGTH, PortName, StackName, Subject, SwitchName,
};
use protocol::fabric::SteeringReply;

/// Checks what does not depend on the switch.
pub(super) fn check_chain(request: &CreateChain) -> Result<(), ServiceError> {
    match request.services.len() {
        count @ 0 => return Err(ServiceError::ChainLength(count)),
        count if count > MAX_CHAIN_LENGTH => return Err(ServiceError::ChainLength(count)),
        _ => {}
    }
    if let Some(pair) = request.services.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(ServiceError::Repeated(pair[0].clone()));
    }
    match &request.from {
        Some(from) if *from == request.to => Err(ServiceError::SameEnds(from.clone())),
        None if request.both_ways => Err(ServiceError::NoStart),
        _ => Ok(()),
    }
}

/// The ports whose packets take a chain by default.
fn entries(chain: &CreateChain) -> impl Iterator<Item = &PortName> {
    chain.from.iter().chain(chain.both_ways.then_some(&chain.to))
}

/// Returns an error if packets of a port would take two chains.
fn check_entries(others: &StoredSteering, request: &CreateChain) -> Result<(), ServiceError> {
    let others = others.chains.iter().map(|chain| &chain.definition);
    for other in others.filter(|other| other.name != request.name) {
        if let Some(port) = entries(request).find(|port| entries(other).any(|there| there == *port)) {
            return Err(ServiceError::PortInUse(port.clone(), other.name.clone()));
        }
    }
    Ok(())
}

impl Supervisor {
    /// Creates a chain.
    pub fn create_chain(&self, request: CreateChain) -> Result<ChainDetail, OperationError> {
        let (switch, chain) = (request.switch.clone(), request.name.clone());
        self.require_own(&Subject::from(&switch))?;
        let subject = Subject::from((&switch, &chain));
        self.operate(Action::Create, subject, &|| chain_claims(&switch, &chain), |operation| {
            self.make_chain(operation, request, None)
        })?;
        self.show_chain(&switch, &chain)
    }

    /// Creates a chain as a step of an operation, possibly of a stack.
    pub(super) fn make_chain(
        &self,
        operation: &mut Operation,
        request: CreateChain,
        stack: Option<&StackName>,
    ) -> Result<(), OperationError> {
        let (switch, chain) = (request.switch.clone(), request.name.clone());
        let subject = Subject::from((&switch, &chain));
        if self.steering_switch(&switch)?.steering.chain(&chain).is_some() {
            return Err(OperationError::Exists(subject));
        }
        self.check_chain_at_switch(&request)?;
        let stored = StoredChain { definition: request, stack: stack.cloned() };
        self.change_steering(operation, &switch, |steering| steering.chains.push(stored))?;
        let message = format!("chain {chain} of switch {switch} was created");
        operation.note(EventKind::ChainCreated, subject, message);
        Ok(())
    }

    /// Returns an error if a chain names services or ports that its switch does not have.
    fn check_chain_at_switch(&self, request: &CreateChain) -> Result<(), OperationError> {
        check_chain(request)?;
        let stored = self.steering_switch(&request.switch)?;
        let missing = request.services.iter().find(|name| stored.steering.service(name).is_none());
        if let Some(missing) = missing {
            return Err(OperationError::NoService(missing.clone()));
        }
        let ports = self.port_names(&request.switch)?;
        let mut used = request.from.iter().chain([&request.to]);
        if let Some(missing) = used.find(|port| !ports.contains(*port)) {
            return Err(OperationError::NoPort(request.switch.clone(), missing.clone()));
        }
        Ok(check_entries(&stored.steering, request)?)
    }

    /// Changes a chain. Packets under way finish the previous one.
    pub fn set_chain(
        &self,
        switch: &SwitchName,
        chain: &ChainName,
        request: CreateChain,
    ) -> Result<ChainDetail, OperationError> {
        if (&request.switch, &request.name) != (switch, chain) {
            return Err(ServiceError::OtherChain(switch.clone(), chain.clone()).into());
        }
        let subject = Subject::from((switch, chain));
        self.operate(Action::Change, subject, &|| chain_claims(switch, chain), |operation| {
            self.change_chain(operation, request)
        })?;
        self.show_chain(switch, chain)
    }

    /// Changes a chain as a step of an operation.
    pub(super) fn change_chain(
        &self,
        operation: &mut Operation,
        request: CreateChain,
    ) -> Result<(), OperationError> {
        let (switch, chain) = (request.switch.clone(), request.name.clone());
        if self.steering_switch(&switch)?.steering.chain(&chain).is_none() {
            return Err(OperationError::NoChain(switch, chain));
        }
        self.check_chain_at_switch(&request)?;
        self.change_steering(operation, &switch, |steering| {
            if let Some(stored) = steering.chains.iter_mut().find(|there| there.definition.name == chain) {
                stored.definition = request;
            }
        })?;
        let message = format!("chain {chain} of switch {switch} was changed");
        operation.note(EventKind::ChainChanged, (&switch, &chain), message);
        Ok(())
    }

    /// Removes a chain, if no flows send packets to it, and no services may.
    pub fn remove_unused_chain(&self, switch: &SwitchName, chain: &ChainName) -> Result<(), OperationError> {
        self.remove_chain_if(switch, chain, false)
    }

    /// Removes a chain. Flows that send packets to it then drop them. Answers of functions that do so are overruled, and flows to
    /// which functions gave it take the chain that they enter, until there is a chain of that name again.
    pub fn remove_chain(&self, switch: &SwitchName, chain: &ChainName) -> Result<(), OperationError> {
        self.remove_chain_if(switch, chain, true)
    }

    fn remove_chain_if(
        &self,
        switch: &SwitchName,
        chain: &ChainName,
        is_forced: bool,
    ) -> Result<(), OperationError> {
        let subject = Subject::from((switch, chain));
        self.operate(Action::Remove, subject, &|| chain_claims(switch, chain), |operation| {
            self.stored_chain(switch, chain)?;
            let output = FlowOutput::Chain(chain.clone());
            let flows = self.flows(switch)?.into_iter().filter(|found| found.flow.output == output);
            let flows: Vec<u64> = flows.map(|found| found.id).collect();
            if !flows.is_empty() && !is_forced {
                return Err(OperationError::ChainInUse(switch.clone(), chain.clone(), flows));
            }
            let at = self.stored_switch(switch)?;
            let senders = senders(&at, Destination::Chain(chain.clone()));
            let senders: Vec<Subject> = senders.map(|name| Subject::from(&name)).collect();
            if !senders.is_empty() && !is_forced {
                return Err(OperationError::InUse((switch, chain).into(), senders));
            }
            self.unmake_chain(operation, switch, chain)
        })
    }

    /// Removes a chain as a step of an operation.
    pub(super) fn unmake_chain(
        &self,
        operation: &mut Operation,
        switch: &SwitchName,
        chain: &ChainName,
    ) -> Result<(), OperationError> {
        self.stored_chain(switch, chain)?;
        self.change_steering(operation, switch, |steering| {
            steering.chains.retain(|there| there.definition.name != *chain);
        })?;
        note_chain_removed(operation, switch, chain);
        Ok(())
    }

    /// The chains that begin or end at a port.
    pub(super) fn chains_at(&self, switch: &SwitchName, port: &PortName) -> Vec<Subject> {
        let switches = self.0.switches();
        let chains = switches.get(switch).into_iter().flat_map(|stored| &stored.steering.chains);
        let is_there = |chain: &&StoredChain| {
            chain.definition.from.as_ref() == Some(port) || chain.definition.to == *port
        };
        chains.filter(is_there).map(|chain| Subject::from((switch, &chain.definition.name))).collect()
    }

    fn stored_chain(&self, switch: &SwitchName, chain: &ChainName) -> Result<StoredChain, OperationError> {
        let stored = self.stored_switch(switch)?;
        let found = stored.steering.chain(chain).cloned();
        found.ok_or_else(|| OperationError::NoChain(switch.clone(), chain.clone()))
    }

    /// Lists the chains, by switch and name.
    pub fn chains(&self) -> Result<Vec<ChainDetail>, OperationError> {
        let mut found = Vec::new();
        for stored in self.switches_with_steering() {
            if stored.steering.chains.is_empty() {
                continue;
            }
            let reply = self.steering_reply(&stored.definition.name)?;
            let mut chains: Vec<&StoredChain> = stored.steering.chains.iter().collect();
            sorting::sort_by(&mut chains, |one, other| one.definition.name.cmp(&other.definition.name));
            found.extend(chains.into_iter().map(|chain| self.chain_detail(chain, &reply)));
        }
        Ok(found)
    }

    /// All details of a chain.
    pub fn show_chain(&self, switch: &SwitchName, chain: &ChainName) -> Result<ChainDetail, OperationError> {
        let stored = self.stored_chain(switch, chain)?;
        Ok(self.chain_detail(&stored, &self.steering_reply(switch)?))
    }

    fn chain_detail(&self, stored: &StoredChain, reply: &SteeringReply) -> ChainDetail {
        let definition = &stored.definition;
        let found = reply.chains.iter().find(|status| status.chain == *definition).cloned();
        ChainDetail {
            status: found.unwrap_or_else(|| unused(definition)),
            rates: self.0.hops().rates(&definition.switch, &definition.name),
            stack: stored.stack.clone(),
        }
    }
}

/// The claims of an operation on a chain.
fn chain_claims(switch: &SwitchName, chain: &ChainName) -> Vec<Claim> {
    vec![Claim::change(switch), Claim::change((switch, chain))]
}

/// The state of a chain that the fabric does not have yet.
fn unused(definition: &CreateChain) -> ChainStatus {
    let hop = |service: &api::ServiceName| HopStatus {
        service: service.clone(),
        traffic: [HopTraffic::default(); 2],
        mean_ns: None,
        waiting: 0,
    };
    ChainStatus {
        chain: definition.clone(),
        hops: definition.services.iter().map(hop).collect(),
        left: [HopTraffic::default(); 2],
    }
}
