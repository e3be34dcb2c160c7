//! Switches and stacks in the store.

use super::boxes::{parsed, read, read_some};
use super::entries::{StoredFlow, StoredFlows, StoredStack, StoredSteering, StoredSwitch, StoredUnconfirmed};
use super::error::StoreError;
use super::schema::Store;
use api::{CreateSwitch, MacAddr, PortName, StackName, SwitchName};
use rusqlite::Row;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The switch's columns as one JSON value.
#[derive(Serialize, Deserialize)]
pub(super) struct SwitchEntry {
    switch: CreateSwitch,
    addresses: Vec<(MacAddr, PortName)>,
    /// Absent in entries of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    flows: Vec<StoredFlow>,
    /// Absent in entries of earlier versions.
    #[serde(default)]
    last_flow: u64,
    /// Absent in entries of earlier versions.
    #[serde(default, skip_serializing_if = "StoredSteering::is_empty")]
    steering: StoredSteering,
    /// Absent in entries of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    makers: Option<BTreeMap<PortName, StackName>>,
}

impl SwitchEntry {
    /// The columns of a switch.
    pub(super) fn of(stored: &StoredSwitch) -> Self {
        Self {
            switch: stored.definition.clone(),
            addresses: stored.addresses.clone(),
            flows: stored.flows.list.clone(),
            last_flow: stored.flows.last,
            steering: stored.steering.clone(),
            makers: Some(stored.makers.clone()),
        }
    }
}

impl Store {
    /// All switches, by name.
    pub(crate) fn switches(&self) -> Result<Vec<StoredSwitch>, StoreError> {
        let mut query =
            self.connection.prepare("SELECT definition, stack, created FROM switches ORDER BY name")?;
        query.query_and_then([], |row| self.stored_switch(row))?.collect()
    }

    /// One switch.
    pub(crate) fn read_switch(&self, name: &str) -> Result<StoredSwitch, StoreError> {
        let query = "SELECT definition, stack, created FROM switches WHERE name = ?1";
        self.connection.query_row_and_then(query, [name], |row| self.stored_switch(row))
    }

    fn stored_switch(&self, row: &Row) -> Result<StoredSwitch, StoreError> {
        let entry: String = row.get(0)?;
        let entry: SwitchEntry = parsed(&entry).map_err(|error| StoreError::Entry("switch", error))?;
        let (stack, created) = (read_some(row, 1)?, read(row, 2)?);
        let makers = match (entry.makers, &stack) {
            (Some(makers), _) => makers,
            (None, Some(stack)) => self.ports_of_stack(&entry.switch.name, stack),
            (None, None) => BTreeMap::new(),
        };
        let SwitchEntry { switch: definition, addresses, flows: list, last_flow, steering, .. } = entry;
        let last = list.iter().map(|flow| flow.id).fold(last_flow, u64::max);
        let flows = StoredFlows { list, last };
        Ok(StoredSwitch { definition, addresses, flows, steering, makers, stack, created })
    }

    /// The ports of a switch in the definition of its stack: those that the stack made.
    fn ports_of_stack(&self, switch: &SwitchName, stack: &StackName) -> BTreeMap<PortName, StackName> {
        // A stack that cannot be read has made nothing that is certain to be its own.
        let definition = self.read_stack(stack.as_str()).map(|stored| stored.definition).unwrap_or_default();
        let switches = definition.switches.into_iter().filter(|defined| defined.name == *switch);
        sorting::collect(switches.flat_map(|defined| defined.ports).map(|port| (port.name, stack.clone())))
    }

    /// All stacks that await confirmation, by name.
    pub(crate) fn unconfirmed(&self) -> Result<Vec<StoredUnconfirmed>, StoreError> {
        let mut query = self.connection.prepare("SELECT name, before FROM unconfirmed ORDER BY name")?;
        query.query_and_then([], stored_unconfirmed)?.collect()
    }

    /// One stack that awaits confirmation.
    pub(super) fn read_unconfirmed(&self, name: &str) -> Result<StoredUnconfirmed, StoreError> {
        let query = "SELECT name, before FROM unconfirmed WHERE name = ?1";
        self.connection.query_row_and_then(query, [name], stored_unconfirmed)
    }

    /// All stacks, by name.
    pub(crate) fn stacks(&self) -> Result<Vec<StoredStack>, StoreError> {
        let mut query =
            self.connection.prepare("SELECT name, definition, applied FROM stacks ORDER BY name")?;
        query.query_and_then([], stored_stack)?.collect()
    }

    /// One stack.
    pub(super) fn read_stack(&self, name: &str) -> Result<StoredStack, StoreError> {
        let query = "SELECT name, definition, applied FROM stacks WHERE name = ?1";
        self.connection.query_row_and_then(query, [name], stored_stack)
    }
}

fn stored_unconfirmed(row: &Row) -> Result<StoredUnconfirmed, StoreError> {
    let before: Option<String> = row.get(1)?;
    let before = before.as_deref().map(parsed).transpose();
    let before = before.map_err(|error| StoreError::Entry("stack", error))?;
    Ok(StoredUnconfirmed { name: read(row, 0)?, before })
}

fn stored_stack(row: &Row) -> Result<StoredStack, StoreError> {
    let definition: String = row.get(1)?;
    let definition = parsed(&definition).map_err(|error| StoreError::Entry("stack", error))?;
    Ok(StoredStack { name: read(row, 0)?, definition, applied: read(row, 2)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{StoreChange, StoredChain, StoredInstance, StoredService};
    use api::{AddPort, CreateBox, CreateChain, CreateService, Limits, PortDriver, Stack, Time};

    #[test]
    fn stored_switches_and_stacks_are_read_back() {
        let mut store = Store::open(None, None).unwrap();
        let mut switch = StoredSwitch {
            definition: CreateSwitch::new("lan".parse().unwrap()),
            addresses: vec![(MacAddr::new([2, 0, 0, 0, 0, 1]), "tap0".parse().unwrap())],
            flows: StoredFlows {
                list: vec![StoredFlow {
                    id: 7,
                    flow: serde_json::from_str(r#"{"match": "tcp", "output": "tap0"}"#).unwrap(),
                    stack: Some("edge".parse().unwrap()),
                }],
                last: 9,
            },
            steering: StoredSteering {
                services: vec![StoredService {
                    definition: CreateService {
                        name: "ids".parse().unwrap(),
                        switch: "lan".parse().unwrap(),
                        instance: CreateBox::new("ids".parse().unwrap(), ""),
                        faces: "in=0,out=1".parse().unwrap(),
                        replicas: 1,
                        container: false,
                        places: None,
                        trust_pool: false,
                        auto: "1-4".parse().ok(),
                        dead_after_ms: Some(200),
                        may_send_to: ["port:tap0".parse().unwrap()].into(),
                        translation: None,
                    },
                    instances: vec![
                        StoredInstance { number: 1, name: "ids-1".parse().unwrap(), drain_until: None },
                        StoredInstance {
                            number: 2,
                            name: "ids-2".parse().unwrap(),
                            drain_until: Some(Time::now()),
                        },
                    ],
                    stack: None,
                    created: Time::now(),
                }],
                chains: vec![StoredChain {
                    definition: CreateChain {
                        name: "web".parse().unwrap(),
                        switch: "lan".parse().unwrap(),
                        services: vec!["ids".parse().unwrap()],
                        from: None,
                        to: "tap0".parse().unwrap(),
                        both_ways: false,
                    },
                    stack: Some("edge".parse().unwrap()),
                }],
            },
            makers: BTreeMap::from([("tap0".parse().unwrap(), "edge".parse().unwrap())]),
            stack: Some("edge".parse().unwrap()),
            created: Time::now(),
        };
        store.apply(&[StoreChange::PutSwitch(switch.clone())]).unwrap();
        switch.definition.age_seconds = 5;
        store.apply(&[StoreChange::PutSwitch(switch.clone())]).unwrap();
        let found = store.switches().unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((&found[0].definition, &found[0].addresses), (&switch.definition, &switch.addresses));
        assert_eq!((&found[0].stack, found[0].created), (&switch.stack, switch.created));
        assert_eq!((&found[0].makers, &found[0].flows), (&switch.makers, &switch.flows));
        assert_eq!(found[0].steering, switch.steering);
        let port = |name: &str| AddPort {
            name: name.parse().unwrap(),
            driver: PortDriver::Null {},
            addresses: Vec::new(),
            default: false,
            limits: Limits::default(),
        };
        let (definition_port, hand_made) = (port("tap0"), port("tap1"));
        switch.definition.ports.push(definition_port.clone());
        let stack = StoredStack {
            name: "edge".parse().unwrap(),
            definition: Stack { switches: vec![switch.definition.clone()], ..Stack::default() },
            applied: Time::now(),
        };
        store.apply(&[StoreChange::PutStack(stack.clone())]).unwrap();
        // Earlier versions did not store who had made a port.
        let order = "UPDATE switches SET definition = json_remove(json_insert(
            definition, '$.switch.ports[#]', json(?1)), '$.makers')";
        for port in [&definition_port, &hand_made] {
            store.connection.execute(order, [serde_json::to_string(port).unwrap()]).unwrap();
        }
        assert_eq!(store.switches().unwrap()[0].makers, switch.makers);
        assert_eq!(store.stacks().unwrap()[0].definition, stack.definition);
        let removed = StoreChange::RemoveSwitch(switch.definition.name.clone());
        store.apply(&[StoreChange::RemoveStack(stack.name), removed]).unwrap();
        assert!(store.stacks().unwrap().is_empty() && store.switches().unwrap().is_empty());
    }
}
