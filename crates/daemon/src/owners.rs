//! The owners of objects, for events about objects that may be removed meanwhile.

use api::{Owner, Subject};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum objects whose owners are known: more than there can be boxes, switches and stacks. Requests that fail for
/// ever new names cannot fill the memory.
const MAX_OBJECTS: usize = 1 << 16;

/// The owner of each box, switch and stack.
#[derive(Debug, Default)]
pub(crate) struct Owners(Mutex<BTreeMap<Subject, Owner>>);

impl Owners {
    fn table(&self) -> MutexGuard<'_, BTreeMap<Subject, Owner>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the owner of an object.
    pub(crate) fn set(&self, subject: impl Into<Subject>, owner: Owner) {
        let mut table = self.table();
        if table.len() >= MAX_OBJECTS {
            // Events about this object are then for administrators only.
            table.pop_first();
        }
        table.insert(subject.into(), owner);
    }

    /// Forgets an object.
    pub(crate) fn remove(&self, subject: &Subject) {
        self.table().remove(subject);
    }

    /// The owner of an object. A port has the owner of its switch.
    pub(crate) fn of(&self, subject: &Subject) -> Option<Owner> {
        match subject {
            Subject::Port(switch, _) | Subject::Chain(switch, _) => {
                self.table().get(&Subject::Switch(switch.clone())).cloned()
            }
            subject => self.table().get(subject).cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_has_the_owner_of_its_switch() {
        let owners = Owners::default();
        let [lan, port, fw]: [Subject; 3] =
            ["switch/lan", "switch/lan/tap0", "box/fw"].map(|text| text.parse().unwrap());
        owners.set(lan.clone(), "alice".parse().unwrap());
        assert_eq!(owners.of(&port), Some("alice".parse().unwrap()));
        assert_eq!((owners.of(&fw), owners.of(&Subject::Daemon)), (None, None));
        owners.remove(&lan);
        assert_eq!(owners.of(&port), None);
    }

    #[test]
    fn the_table_of_owners_is_bounded() {
        let owners = Owners::default();
        for number in 0..MAX_OBJECTS + 10 {
            let subject: Subject = format!("box/b{number}").parse().unwrap();
            owners.set(subject, Owner::default());
        }
        assert_eq!(owners.table().len(), MAX_OBJECTS);
    }
}
