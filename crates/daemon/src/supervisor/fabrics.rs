//! Gives owners fabrics of their own, and ends those that are no longer used.

use super::state::Supervisor;
use crate::error::OperationError;
use crate::fabric::FabricLink;
use api::Owner;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The counter in the store of the numbers that fabrics have got. A number is never given to another owner.
const NUMBERS: &str = "fabrics";

/// So many removed boxes and switches make the daemon forget the owners of all of them.
const MAX_REMOVED: usize = 1024;

impl Supervisor {
    /// Connects to the fabrics of all owners of stored objects, and ends other ones.
    pub(super) fn connect_all(&self) -> Result<(), OperationError> {
        let owners: BTreeSet<Owner> = {
            let boxes = self.0.all();
            let of_boxes = boxes.iter().map(|managed| managed.inner().definition.owner.clone());
            let switches = self.0.switches();
            let of_switches = switches.values().map(|stored| stored.definition.owner.clone());
            let all = of_boxes.chain(of_switches).chain([Owner::default()]);
            all.map(|owner| self.0.fabrics.keeper(&owner)).collect()
        };
        let links = owners.iter().map(|owner| self.add_fabric(owner)).collect::<Result<Vec<_>, _>>()?;
        // Boxes that have another fabric now must end before they start there.
        self.0.fabrics.retain(&links.iter().map(|link| link.number()).collect());
        links.iter().try_for_each(|link| self.connect_first(link))
    }

    /// The fabric of an owner, which is started if there is none.
    pub(super) fn fabric_of(&self, owner: &Owner) -> Result<Arc<FabricLink>, OperationError> {
        if let Some(link) = self.0.fabrics.of(owner) {
            return Ok(link);
        }
        let _adding = self.0.adding_fabric();
        if let Some(link) = self.0.fabrics.of(owner) {
            return Ok(link);
        }
        let link = self.add_fabric(owner)?;
        self.connect_first(&link).inspect_err(|_| drop(self.0.fabrics.remove(link.owner())))?;
        Ok(link)
    }

    fn add_fabric(&self, owner: &Owner) -> Result<Arc<FabricLink>, OperationError> {
        let owner = self.0.fabrics.keeper(owner);
        let number = if owner == Owner::default() { 0 } else { self.fabric_number(&owner)? };
        self.0.fabrics.add(&owner, number)
    }

    /// The number of an owner's fabric, which stays the same.
    fn fabric_number(&self, owner: &Owner) -> Result<u32, OperationError> {
        let mut store = self.0.store();
        let of_owner = format!("{NUMBERS}/{owner}");
        let mut number = store.counter(&of_owner)?;
        if number == 0 {
            number = store.counter(NUMBERS)? + 1;
            store.set_counter(NUMBERS, number)?;
            store.set_counter(&of_owner, number)?;
        }
        Ok(u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// Forgets the owners of removed boxes and switches, when there are many.
    fn forget_removed(&self) {
        let present = self.0.boxes().len() + self.0.switches().len();
        if self.0.fabrics.recorded() < present + MAX_REMOVED {
            return;
        }
        // A new switch is recorded before it is among the others.
        let _change = self.0.change();
        let (boxes, switches) = (self.0.boxes(), self.0.switches());
        self.0.fabrics.forget_removed(|name| boxes.contains_key(name), |name| switches.contains_key(name));
    }

    /// Ends the fabrics of owners that have no box and no switch left.
    pub(super) fn retire_fabrics(&self) {
        self.forget_removed();
        if self.0.fabrics.all().len() <= 1 {
            return;
        }
        let _adding = self.0.adding_fabric();
        let unused: Vec<Arc<FabricLink>> = {
            let _change = self.0.change();
            let (boxes, switches) = (self.0.all(), self.0.switches());
            let is_used = |owner: &Owner| {
                boxes.iter().any(|managed| managed.inner().definition.owner == *owner)
                    || switches.values().any(|stored| stored.definition.owner == *owner)
            };
            let links = self.0.fabrics.all().into_iter();
            let unused = links.filter(|link| *link.owner() != Owner::default() && !is_used(link.owner()));
            // One that was just started is about to be used.
            let unused = unused.filter(|link| link.is_settled());
            unused.filter_map(|link| self.0.fabrics.remove(link.owner())).collect()
        };
        if !unused.is_empty() {
            let used = self.0.fabrics.all().iter().map(|link| link.number()).collect();
            self.0.fabrics.retain(&used);
        }
    }

    /// A fabric as messages name it.
    pub(super) fn fabric_name(&self, link: &FabricLink) -> String {
        match link.number() {
            0 => "the fabric".into(),
            _ => format!("the fabric of owner {}", link.owner()),
        }
    }
}
