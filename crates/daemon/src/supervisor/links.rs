//! Connects boxes and switches of owners whose fabrics differ. A pipe between their switches is a link. A box at another
//! owner's switch is attached to a proxy, a switch of the same name in the fabric of the box, which a link connects to the
//! real one.

use super::link_table::LinkKey;
use super::state::Supervisor;
use crate::error::{OperationError, PortError};
use crate::fabric::{FabricLink, owner_port, uplink};
use crate::store::StoredSwitch;
use api::{
    AddPort, Attachment, CreateBox, CreateSwitch, EventKind, Limits, MacAddr, Owner, PortDriver, PortName,
    Subject, SwitchMode, SwitchName, with_causes,
};
use protocol::fabric::{FabricError, InventoryReply, orders};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::sync::Arc;

/// A port of a switch that is one end of a link.
#[derive(Clone, Debug)]
struct LinkEnd {
    /// The owner whose fabric has it.
    owner: Owner,
    switch: SwitchName,
    port: AddPort,
}

/// The two ends of a link.
#[derive(Clone, Debug)]
struct Ends {
    near: LinkEnd,
    far: LinkEnd,
}

impl Ends {
    fn key(&self) -> LinkKey {
        let LinkEnd { owner, switch, port } = &self.near;
        (owner.clone(), switch.clone(), port.name.clone())
    }
}

fn pipe(name: PortName, switch: SwitchName, port: PortName) -> AddPort {
    let driver = PortDriver::Pipe { switch, port };
    AddPort { name, driver, addresses: Vec::new(), default: false, limits: Limits::default() }
}

impl Supervisor {
    /// The owner whose fabric has a switch.
    fn keeper_of(&self, switch: &SwitchName) -> Option<Owner> {
        self.0.fabrics.keeper_of(switch)
    }

    /// The switches of other fabrics that boxes are attached to: by owner of the boxes and switch, with the addresses of
    /// the ports of these boxes.
    fn proxied(&self) -> BTreeMap<(Owner, SwitchName), Vec<MacAddr>> {
        let mut found = BTreeMap::<_, Vec<MacAddr>>::new();
        if !self.0.fabrics.are_several() {
            return found;
        }
        for managed in self.0.all() {
            let definition = managed.inner().definition.clone();
            for (switch, mac) in self.foreign(&definition) {
                let owner = self.0.fabrics.keeper(&definition.owner);
                found.entry((owner, switch)).or_default().extend(mac);
            }
        }
        found
    }

    /// The switches of other fabrics that a box is attached to, with the addresses of its ports.
    fn foreign(&self, definition: &CreateBox) -> Vec<(SwitchName, Option<MacAddr>)> {
        if !self.0.fabrics.are_several() {
            return Vec::new();
        }
        let own = self.0.fabrics.keeper(&definition.owner);
        let ports = definition.ports.iter();
        let attached = ports.filter_map(|port| match &port.attach {
            Attachment::Switch(switch) => Some((switch.clone(), port.mac)),
            Attachment::Pipe(_) | Attachment::Nothing => None,
        });
        // What is attached stays so if the switch is no longer shared.
        let has_proxy = |switch: &SwitchName| self.0.links().proxies.contains(&(own.clone(), switch.clone()));
        let is_foreign = |switch: &SwitchName| {
            let admits =
                self.0.switches().get(switch).map(|stored| stored.definition.admits(&definition.owner));
            self.keeper_of(switch).is_some_and(|keeper| keeper != own)
                && admits.is_some_and(|admits| admits || has_proxy(switch))
        };
        attached.filter(|(switch, _)| is_foreign(switch)).collect()
    }

    /// The definition of a proxy.
    fn proxy(&self, owner: &Owner, switch: &SwitchName) -> CreateSwitch {
        CreateSwitch { owner: owner.clone(), ..CreateSwitch::new(switch.clone()) }
    }

    /// The link between a proxy and its switch.
    fn proxy_ends(&self, owner: &Owner, switch: &SwitchName, addresses: Vec<MacAddr>) -> Option<Ends> {
        let keeper = self.keeper_of(switch)?;
        let is_static = |stored: &StoredSwitch| stored.definition.mode == SwitchMode::Static;
        // A learning switch learns them.
        let addresses =
            if self.0.switches().get(switch).is_some_and(is_static) { addresses } else { Vec::new() };
        let (near, far) = (uplink(), owner_port(owner));
        let far_port = AddPort { addresses, ..pipe(far.clone(), switch.clone(), near.clone()) };
        let near =
            LinkEnd { owner: owner.clone(), switch: switch.clone(), port: pipe(near, switch.clone(), far) };
        Some(Ends { near, far: LinkEnd { owner: keeper, switch: switch.clone(), port: far_port } })
    }

    /// The link that a pipe of a switch is, if its ends are in different fabrics.
    fn pipe_ends(&self, switch: &SwitchName, port: &AddPort) -> Option<Ends> {
        let PortDriver::Pipe { switch: far, port: far_port } = &port.driver else { return None };
        let (near_owner, far_owner) = (self.keeper_of(switch)?, self.keeper_of(far)?);
        (near_owner != far_owner).then(|| Ends {
            near: LinkEnd { owner: near_owner, switch: switch.clone(), port: port.clone() },
            far: LinkEnd {
                owner: far_owner,
                switch: far.clone(),
                port: pipe(far_port.clone(), switch.clone(), port.name.clone()),
            },
        })
    }

    /// All links that there should be.
    fn links(&self) -> Vec<Ends> {
        if !self.0.fabrics.are_several() {
            return Vec::new();
        }
        let proxied = self.proxied();
        let of_proxies =
            proxied.into_iter().filter_map(|((owner, switch), macs)| self.proxy_ends(&owner, &switch, macs));
        let switches: Vec<_> = self.0.switches().values().cloned().collect();
        let of_pipes = switches.iter().flat_map(|stored| {
            let name = &stored.definition.name;
            stored.definition.ports.iter().filter_map(move |port| self.pipe_ends(name, port))
        });
        of_proxies.chain(of_pipes).collect()
    }

    /// Whether a port is a pipe to a switch in another fabric.
    pub(super) fn is_link(&self, switch: &SwitchName, port: &AddPort) -> bool {
        self.pipe_ends(switch, port).is_some()
    }

    /// Makes the link of a new pipe. Returns false if both ends of the pipe are in one fabric.
    pub(super) fn join_by_link(&self, switch: &SwitchName, port: &AddPort) -> Result<bool, OperationError> {
        let Some(ends) = self.pipe_ends(switch, port) else { return Ok(false) };
        let (far, name) = (ends.far.switch.clone(), ends.far.port.name.clone());
        self.0.fabrics.ask(orders::CheckVacant { switch: far, port: name })?;
        // A pipe that was refused is not linked later.
        self.link(&ends).inspect_err(|_| self.unlink(&ends))?;
        Ok(true)
    }

    /// Returns an error if a port is to connect a switch to a box in another fabric.
    pub(super) fn check_fabric_of_box(&self, near: &Owner, of_box: &Owner) -> Result<(), OperationError> {
        match self.0.fabrics.share(near, of_box) {
            true => Ok(()),
            false => Err(PortError::OtherFabric.into()),
        }
    }

    /// Makes a link, or makes it again. If one of the fabrics is not there, the link is made when it is.
    fn link(&self, ends: &Ends) -> Result<(), OperationError> {
        let result = self.try_link(ends);
        match &result {
            Ok(()) => drop(self.0.links().broken.remove(&ends.key())),
            Err(_) => drop(self.0.links().broken.insert(ends.key())),
        }
        result
    }

    fn try_link(&self, ends: &Ends) -> Result<(), OperationError> {
        let fabric = |owner: &Owner| self.0.fabrics.of(owner).ok_or(FabricError::Disconnected);
        let (near, far) = (fabric(&ends.near.owner)?, fabric(&ends.far.owner)?);
        let LinkEnd { switch, port, .. } = &ends.near;
        let order = orders::OpenLink { switch: switch.clone(), port: port.clone() };
        let ((), descriptors) = near.ask_with_now(order, &[])?;
        let descriptors: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        let LinkEnd { switch, port, .. } = &ends.far;
        let order = orders::JoinLink { switch: switch.clone(), port: port.clone() };
        // The next daemon finds out by the missing port that the link is to be made.
        far.ask_with_now(order, &descriptors).map(drop).inspect_err(|_| remove_end(&near, &ends.near))
    }

    /// Removes both ends of a link.
    fn unlink(&self, ends: &Ends) {
        self.0.links().broken.remove(&ends.key());
        for end in [&ends.near, &ends.far] {
            if let Some(fabric) = self.0.fabrics.of(&end.owner) {
                remove_end(&fabric, end);
            }
        }
    }

    /// Removes the other ends of links of a switch that is being removed, and the proxies of the switch.
    pub(super) fn unlink_switch(&self, switch: &SwitchName) {
        for ends in self.links() {
            if ends.near.switch == *switch || ends.far.switch == *switch {
                self.unlink(&ends);
            }
        }
    }

    /// Makes the links of a switch that was put back.
    pub(super) fn relink_switch(&self, switch: &SwitchName) {
        for ends in self.links() {
            if ends.near.switch == *switch || ends.far.switch == *switch {
                // If a fabric is not there, the link is made when it is.
                let _ = self.link(&ends);
            }
        }
    }

    /// The boxes of other fabrics at a switch.
    pub(super) fn boxes_at_proxies(&self, switch: &SwitchName) -> Vec<Subject> {
        let boxes = self.0.all().into_iter();
        let at_it = boxes.filter(|managed| {
            let definition = managed.inner().definition.clone();
            self.foreign(&definition).iter().any(|(at, _)| at == switch)
        });
        at_it.map(|managed| Subject::from(&managed.name)).collect()
    }

    /// Removes the link that a pipe is.
    pub(super) fn unlink_port(&self, switch: &SwitchName, port: &PortName, driver: &PortDriver) {
        let definition =
            AddPort { driver: driver.clone(), ..pipe(port.clone(), switch.clone(), port.clone()) };
        if let Some(ends) = self.pipe_ends(switch, &definition) {
            self.unlink(&ends);
        }
    }

    /// Makes the proxies that a box needs, before it is attached to them.
    pub(super) fn add_proxies(&self, definition: &CreateBox) -> Result<(), OperationError> {
        let owner = self.0.fabrics.keeper(&definition.owner);
        for (switch, mac) in self.foreign(definition) {
            let key = (owner.clone(), switch.clone());
            let is_there = self.0.links().proxies.contains(&key);
            if is_there {
                let port = owner_port(&owner);
                // A learning switch refuses it, and needs none.
                let _ = mac.map(|mac| self.0.fabrics.ask(orders::SetAddress { switch, mac, port }));
                continue;
            }
            let fabric = self.0.fabrics.of(&owner).ok_or(FabricError::Disconnected)?;
            fabric.ask(orders::AddSwitch { definition: self.proxy(&owner, &switch) })?;
            self.0.links().proxies.insert(key);
            let ends = self.proxy_ends(&owner, &switch, mac.into_iter().collect());
            ends.map_or(Ok(()), |ends| self.link(&ends)).inspect_err(|_| self.remove_unused_proxies())?;
        }
        Ok(())
    }

    /// Removes the proxies that no box needs.
    pub(super) fn remove_unused_proxies(&self) {
        if !self.0.fabrics.are_several() {
            return;
        }
        let needed = self.proxied();
        let unused: Vec<(Owner, SwitchName)> = {
            let proxies = &mut self.0.links().proxies;
            proxies.extract_if(.., |key| !needed.contains_key(key)).collect()
        };
        for (owner, switch) in unused {
            if let Some(ends) = self.proxy_ends(&owner, &switch, Vec::new()) {
                self.unlink(&ends);
            }
            if let Some(fabric) = self.0.fabrics.of(&owner) {
                // If the fabric has ended, it has no proxy.
                let _ = fabric.ask_now(orders::RemoveSwitch { switch });
            }
        }
    }

    /// Whether a switch of a fabric is a proxy that is needed.
    pub(super) fn is_proxy(&self, owner: &Owner, found: &CreateSwitch) -> bool {
        let needed = self.proxied().contains_key(&(owner.clone(), found.name.clone()));
        needed && *found == self.proxy(owner, &found.name)
    }

    /// Adds the proxies of a fabric that are missing there.
    pub(super) fn restore_proxies(
        &self,
        fabric: &FabricLink,
        is_there: impl Fn(&SwitchName) -> bool,
    ) -> Result<(), OperationError> {
        for (owner, switch) in self.proxied().into_keys().filter(|(owner, _)| owner == fabric.owner()) {
            if !is_there(&switch) {
                fabric.ask(orders::AddSwitch { definition: self.proxy(&owner, &switch) })?;
            }
            self.0.links().proxies.insert((owner, switch));
        }
        Ok(())
    }

    /// Makes the links of a fabric of which it has lost its end. Those to a fabric that is not there are made when it is.
    pub(super) fn restore_links(&self, fabric: &Arc<FabricLink>, there: &BTreeSet<(SwitchName, PortName)>) {
        for ends in self.links() {
            let is_broken = self.0.links().broken.contains(&ends.key());
            let own = [&ends.near, &ends.far].into_iter().find(|end| end.owner == *fabric.owner());
            let Some(own) = own else { continue };
            let has_end = there.contains(&(own.switch.clone(), own.port.name.clone()));
            if has_end && !is_broken {
                continue;
            }
            if let Err(failure) = self.link(&ends)
                && !matches!(failure, OperationError::Fabric(FabricError::Disconnected))
            {
                let LinkEnd { switch, port, .. } = &ends.near;
                let why = with_causes(&failure);
                let message = format!("port {} of switch {switch} could not be linked: {why}", port.name);
                self.0.journal.note(EventKind::PortFailed, (switch, &port.name), message);
            }
        }
    }
}

/// The ports that a fabric has, before anything is added to it.
pub(super) fn ports_of(there: &InventoryReply) -> BTreeSet<(SwitchName, PortName)> {
    let switches = there.switches.iter();
    switches
        .flat_map(|switch| {
            let name = &switch.definition.name;
            switch.ports.iter().map(move |found| (name.clone(), found.port.name.clone()))
        })
        .collect()
}

/// Removes an end of a link.
fn remove_end(fabric: &FabricLink, end: &LinkEnd) {
    // If the fabric has ended, it has no port.
    let _ = fabric.ask_now(orders::RemovePort { switch: end.switch.clone(), port: end.port.name.clone() });
}
