//! The fabrics of a daemon: one, or one for each owner. Each order goes to the fabric that has its box or switch.

use super::connector::Connector;
use super::link::{AwaitedAnswer, FabricLink, PendingOrder};
use super::proxy;
use super::route::{OrderTarget, Route};
use crate::error::OperationError;
use api::{BoxName, CreateSwitch, Owner, SwitchName};
use protocol::StoreIdentity;
use protocol::fabric::{Asked, BoxRuntime, FabricError, FabricFacts, TrafficSnapshot, orders};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The fabrics of a daemon.
#[derive(Debug)]
pub(crate) struct Fabrics {
    connector: Arc<dyn Connector>,
    store: StoreIdentity,
    /// Each owner has a fabric. Otherwise all have the default owner's.
    per_owner: bool,
    state: Mutex<FabricTable>,
    /// Stands in for the fabrics in tests of services.
    #[cfg(test)]
    pub(crate) stand_in: super::stand_in::StandIn,
}

#[derive(Debug, Default)]
struct FabricTable {
    links: BTreeMap<Owner, Arc<FabricLink>>,
    /// The owners of all boxes and switches, also of those that are being created or removed.
    boxes: BTreeMap<BoxName, Owner>,
    switches: BTreeMap<SwitchName, Owner>,
    /// The daemon is ending: no other fabric will come.
    closed: bool,
}

impl Fabrics {
    pub(crate) fn new(connector: Arc<dyn Connector>, store: StoreIdentity, per_owner: bool) -> Self {
        Self {
            connector,
            store,
            per_owner,
            state: Mutex::default(),
            #[cfg(test)]
            stand_in: super::stand_in::StandIn::default(),
        }
    }

    /// Opens devices, and ends fabrics.
    pub(crate) fn connector(&self) -> &dyn Connector {
        &*self.connector
    }

    /// The store that the fabrics serve.
    pub(crate) fn store(&self) -> StoreIdentity {
        self.store
    }

    /// Ends all fabrics but those with these numbers.
    pub(crate) fn retain(&self, numbers: &BTreeSet<u32>) {
        self.connector.retain(self.store, numbers);
    }

    fn state(&self) -> MutexGuard<'_, FabricTable> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner whose fabric has the objects of this owner.
    pub(crate) fn keeper(&self, owner: &Owner) -> Owner {
        if self.per_owner { owner.clone() } else { Owner::default() }
    }

    /// The owner whose fabric has, or had, a switch.
    pub(crate) fn keeper_of(&self, switch: &SwitchName) -> Option<Owner> {
        let owner = self.state().switches.get(switch).cloned();
        owner.map(|owner| self.keeper(&owner))
    }

    /// Whether each owner has a fabric.
    pub(crate) fn are_several(&self) -> bool {
        self.per_owner
    }

    /// Whether objects of these owners are in one fabric.
    pub(crate) fn share(&self, one: &Owner, other: &Owner) -> bool {
        !self.per_owner || one == other
    }

    /// The fabric of an owner, if it has one.
    pub(crate) fn of(&self, owner: &Owner) -> Option<Arc<FabricLink>> {
        self.state().links.get(&self.keeper(owner)).cloned()
    }

    /// All fabrics, that of the default owner first.
    pub(crate) fn all(&self) -> Vec<Arc<FabricLink>> {
        let state = self.state();
        let default = Owner::default();
        let others = state.links.iter().filter(|(owner, _)| **owner != default).map(|(_, link)| link);
        state.links.get(&default).into_iter().chain(others).cloned().collect()
    }

    /// Adds the fabric of an owner, with this number at the launcher.
    pub(crate) fn add(&self, owner: &Owner, number: u32) -> Result<Arc<FabricLink>, OperationError> {
        let mut state = self.state();
        if state.closed {
            return Err(OperationError::Ending);
        }
        let owner = self.keeper(owner);
        let new = || {
            let connector = self.connector.clone();
            Arc::new(FabricLink::new(connector, self.store, owner.clone(), number, self.per_owner))
        };
        Ok(state.links.entry(owner.clone()).or_insert_with(new).clone())
    }

    /// Removes the fabric of an owner without boxes and switches, and closes the connection to it.
    pub(crate) fn remove(&self, owner: &Owner) -> Option<Arc<FabricLink>> {
        let link = self.state().links.remove(owner)?;
        link.close();
        Some(link)
    }

    /// Closes the connections. The fabrics go on.
    pub(crate) fn close(&self) {
        let links: Vec<Arc<FabricLink>> = {
            let mut state = self.state();
            state.closed = true;
            state.links.values().cloned().collect()
        };
        links.iter().for_each(|link| link.close());
    }

    /// Records the owner of a box.
    pub(crate) fn note_box(&self, name: &BoxName, owner: &Owner) {
        self.state().boxes.insert(name.clone(), owner.clone());
    }

    /// Records the owner of a switch.
    pub(crate) fn note_switch(&self, name: &SwitchName, owner: &Owner) {
        self.state().switches.insert(name.clone(), owner.clone());
    }

    /// The number of recorded boxes and switches.
    pub(crate) fn recorded(&self) -> usize {
        let state = self.state();
        state.boxes.len() + state.switches.len()
    }

    /// Forgets the owners of boxes and switches that no longer exist.
    pub(crate) fn forget_removed(
        &self,
        is_box: impl Fn(&BoxName) -> bool,
        is_switch: impl Fn(&SwitchName) -> bool,
    ) {
        let mut state = self.state();
        state.boxes.retain(|name, _| is_box(name));
        state.switches.retain(|name, _| is_switch(name));
    }

    /// The fabric that has what an order is about.
    fn link(&self, target: &OrderTarget<'_>) -> Result<Arc<FabricLink>, OperationError> {
        let default = Owner::default();
        let mut state = self.state();
        if state.closed {
            return Err(OperationError::Ending);
        }
        match target {
            OrderTarget::NewBox(name, owner) => drop(state.boxes.insert((*name).clone(), (*owner).clone())),
            OrderTarget::NewSwitch(name, owner) => {
                drop(state.switches.insert((*name).clone(), (*owner).clone()))
            }
            OrderTarget::Box(_) | OrderTarget::Switch(_) => {}
        }
        let owner = match target {
            OrderTarget::NewBox(_, owner) | OrderTarget::NewSwitch(_, owner) => owner,
            // The default fabric reports that it does not exist.
            OrderTarget::Box(name) => state.boxes.get(*name).unwrap_or(&default),
            OrderTarget::Switch(name) => state.switches.get(*name).unwrap_or(&default),
        };
        // The fabric of an owner without objects was ended.
        let found = state.links.get(&self.keeper(owner)).cloned();
        found.ok_or_else(|| FabricError::Disconnected.into())
    }

    /// Has the agent of the fabric started that has a switch, if the switch has controllers.
    pub(crate) fn start_agent_of(&self, switch: &CreateSwitch) -> Result<(), OperationError> {
        if switch.controllers.is_empty() {
            return Ok(());
        }
        let link = self.link(&OrderTarget::Switch(&switch.name))?;
        self.connector().start_agent(link.number()).map_err(OperationError::Launcher)
    }

    /// Sends an order to the fabric that it concerns, and waits for its answer.
    pub(crate) fn ask<A: Route>(&self, order: A) -> Result<A::Answer, OperationError> {
        self.link(&order.target())?.ask(order)
    }

    /// As [`ask`](Self::ask), for a thread of the runtime, which passes on its other tasks if the answer does not come soon.
    pub(crate) fn ask_promptly<A: Route>(&self, order: A) -> Result<A::Answer, OperationError> {
        self.link(&order.target())?.ask_promptly(order)
    }

    /// Sends an order to the fabric that it concerns, and does not wait for its answer.
    pub(crate) fn begin<A: Route>(&self, order: A) -> Result<PendingOrder<A>, OperationError> {
        self.link(&order.target())?.begin(order)
    }

    /// Sends an order to the fabric that it concerns, if that is possible without waiting.
    pub(crate) fn try_begin<A>(&self, order: A) -> Result<Option<AwaitedAnswer<A>>, OperationError>
    where
        A: Route,
        A::Answer: Send + 'static,
    {
        self.link(&order.target())?.try_begin(order)
    }

    /// Like [`ask`](Self::ask), with descriptors in both directions.
    pub(crate) fn ask_with<A: Route>(
        &self,
        order: A,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(A::Answer, Vec<OwnedFd>), OperationError> {
        self.link(&order.target())?.ask_with(order, descriptors)
    }

    /// Like [`ask_with`](Self::ask_with), but does not wait for a fabric that is being restarted.
    pub(crate) fn ask_with_now<A: Route>(
        &self,
        order: A,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(A::Answer, Vec<OwnedFd>), OperationError> {
        self.link(&order.target())?.ask_with_now(order, descriptors)
    }

    /// The answers of all fabrics. One that is being restarted is left out if there are others.
    pub(super) fn each<T>(
        &self,
        ask: impl Fn(&FabricLink) -> Result<T, OperationError>,
    ) -> Result<Vec<T>, OperationError> {
        let links = self.all();
        let alone = links.len() == 1;
        links.iter().filter(|link| alone || link.is_connected()).map(|link| ask(link)).collect()
    }

    /// Whether a switch in the fabric of an owner is the proxy of another owner's switch.
    pub(super) fn is_proxy(&self, switch: &SwitchName, owner: &Owner) -> bool {
        self.per_owner && self.keeper_of(switch).as_ref() != Some(owner)
    }

    /// The counters of all ports.
    pub(crate) fn traffic(&self) -> Result<TrafficSnapshot, OperationError> {
        let mut whole = TrafficSnapshot::default();
        let mut at_uplinks = Vec::new();
        let of_link = |link: &FabricLink| Ok((link.owner().clone(), link.ask(orders::Traffic {})?));
        for (owner, part) in self.each(of_link)? {
            for (switch, mut ports) in part.switches {
                if !self.is_proxy(&switch, &owner) {
                    whole.switches.insert(switch, ports);
                } else if let Some(uplink) = ports.remove(&proxy::uplink()) {
                    at_uplinks.push((switch, proxy::owner_port(&owner), uplink.counters.drops));
                }
            }
            let addresses = part.addresses.into_iter();
            whole.addresses.extend(addresses.filter(|(switch, _)| !self.is_proxy(switch, &owner)));
            let steering = part.steering.into_iter();
            whole.steering.extend(steering.filter(|(switch, _)| !self.is_proxy(switch, &owner)));
            let removed = part.removed.into_iter();
            whole.removed.extend(removed.filter(|(switch, _)| !self.is_proxy(switch, &owner)));
            whole.boxes.extend(part.boxes);
        }
        // What a proxy loses on its way to and from the switch is lost at the port of the switch that leads to the proxy.
        for (switch, port, drops) in at_uplinks {
            let Some(stats) = whole.switches.get_mut(&switch).and_then(|ports| ports.get_mut(&port)) else {
                continue;
            };
            for (reason, packets) in drops {
                let sum = stats.counters.drops.entry(reason).or_default();
                *sum = sum.saturating_add(packets);
            }
        }
        Ok(whole)
    }

    /// The state of all boxes.
    pub(crate) fn runtimes(&self, ask: Asked) -> Result<Vec<BoxRuntime>, OperationError> {
        let parts = self.each(|link| link.ask(orders::BoxRuntimes { names: Vec::new(), ask }))?;
        Ok(parts.into_iter().flatten().collect())
    }

    /// The state of a box.
    pub(crate) fn runtime(&self, name: &BoxName, ask: Asked) -> Result<Option<BoxRuntime>, OperationError> {
        let order = orders::BoxRuntimes { names: vec![name.clone()], ask };
        Ok(self.link(&OrderTarget::Box(name))?.ask(order)?.into_iter().next())
    }

    /// What the fabrics can run, and where, with their owners if each has one. That of the default owner comes first.
    pub(crate) fn facts(&self) -> Result<Vec<(Option<Owner>, FabricFacts)>, OperationError> {
        self.each(|link| {
            let owner = self.per_owner.then(|| link.owner().clone());
            Ok((owner, link.ask(orders::Facts {})?))
        })
    }

    /// Whether the threads that move packets respond. Blocks until they do.
    pub(crate) fn are_responsive(&self) -> bool {
        self.each(|link| link.ask(orders::Ping {})).is_ok()
    }
}
