//! Numbers by which OpenFlow controllers know the ports, services and chains of steering switches, also those of names that
//! nothing has any more. Names and numbers are unique in their switch.

use super::error::StoreError;
use super::schema::Store;
use api::{OpenFlowPort, SwitchName};
use rusqlite::{OptionalExtension, Transaction};

impl Store {
    /// The numbers of a switch, in the order in which they were given. What cannot be read is left out.
    pub(crate) fn port_numbers(&self, switch: &SwitchName) -> Result<Vec<(OpenFlowPort, u16)>, StoreError> {
        let order = "SELECT port, number FROM port_numbers WHERE switch = ?1 ORDER BY id";
        let mut query = self.connection.prepare_cached(order)?;
        let rows = query
            .query_map([switch.as_str()], |row| Ok((row.get::<_, String>(0)?, row.get::<_, u16>(1)?)))?;
        Ok(rows.flatten().filter_map(|(port, number)| Some((port.parse().ok()?, number))).collect())
    }

    /// Those of these numbers that are not stored.
    pub(crate) fn unknown_port_numbers(
        &self,
        switch: &SwitchName,
        mut numbers: Vec<(OpenFlowPort, u16)>,
    ) -> Result<Vec<(OpenFlowPort, u16)>, StoreError> {
        let order = "SELECT number FROM port_numbers WHERE switch = ?1 AND port = ?2";
        let mut query = self.connection.prepare_cached(order)?;
        let mut known = |port: &OpenFlowPort| {
            let key = (switch.as_str(), port.to_string());
            query.query_row(key, |row| row.get::<_, i64>(0)).optional()
        };
        let mut failure = None;
        numbers.retain(|(port, number)| match known(port) {
            Ok(known) => known != Some((*number).into()),
            Err(error) => {
                failure.get_or_insert(error);
                false
            }
        });
        failure.map_or(Ok(numbers), |error| Err(error.into()))
    }
}

/// Adds numbers of a switch that there is. Who had the name or the number before loses it.
pub(super) fn put_port_numbers(
    transaction: &Transaction,
    switch: &SwitchName,
    numbers: &[(OpenFlowPort, u16)],
) -> Result<(), StoreError> {
    let mut order = transaction.prepare_cached(
        "INSERT OR REPLACE INTO port_numbers (switch, port, number)
         SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM switches WHERE name = ?1)",
    )?;
    for (port, number) in numbers {
        order.execute((switch.as_str(), port.to_string(), number))?;
    }
    Ok(())
}

/// Removes the numbers of a switch, unless it was only replaced.
pub(super) fn forget_port_numbers(transaction: &Transaction, switch: &SwitchName) -> Result<(), StoreError> {
    let order = "DELETE FROM port_numbers
        WHERE switch = ?1 AND NOT EXISTS (SELECT 1 FROM switches WHERE name = ?1)";
    transaction.prepare_cached(order)?.execute([switch.as_str()])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{StoreChange, StoredFlows, StoredSteering, StoredSwitch};
    use api::{CreateSwitch, Time};
    use std::collections::BTreeMap;

    fn switch(name: &SwitchName) -> StoreChange {
        StoreChange::PutSwitch(StoredSwitch {
            definition: CreateSwitch::new(name.clone()),
            addresses: Vec::new(),
            flows: StoredFlows::default(),
            steering: StoredSteering::default(),
            makers: BTreeMap::new(),
            stack: None,
            created: Time::now(),
        })
    }

    fn numbers(list: &[(&str, u16)]) -> Vec<(OpenFlowPort, u16)> {
        list.iter().map(|(port, number)| (port.parse().unwrap(), *number)).collect()
    }

    #[test]
    fn numbers_follow_names_as_long_as_their_switch_is_there() {
        let mut store = Store::open(None, None).unwrap();
        let [lan, wan]: [SwitchName; 2] = ["lan", "wan"].map(|name| name.parse().unwrap());
        let put = |switch: &SwitchName, list: &[(&str, u16)]| {
            StoreChange::PutPortNumbers(switch.clone(), numbers(list))
        };
        let list = [("tap1", 2), ("tap0", 1), ("service:ids", 32768), ("chain:web", 40960)];
        store.apply(&[switch(&lan), switch(&wan), put(&lan, &list), put(&wan, &[("tap0", 7)])]).unwrap();
        assert_eq!(store.port_numbers(&lan).unwrap(), numbers(&list));
        let found = store.unknown_port_numbers(&lan, numbers(&[("tap0", 1), ("tap1", 3), ("tap2", 2)]));
        assert_eq!(found.unwrap(), numbers(&[("tap1", 3), ("tap2", 2)]));
        // The number of a name that was forgotten, and another number of a name.
        store.apply(&[put(&lan, &[("tap2", 2), ("tap0", 4)])]).unwrap();
        let after = [("service:ids", 32768), ("chain:web", 40960), ("tap2", 2), ("tap0", 4)];
        assert_eq!(store.port_numbers(&lan).unwrap(), numbers(&after));
        // A switch that is replaced keeps them, one that is removed does not, and gets none.
        store.apply(&[StoreChange::RemoveSwitch(lan.clone()), switch(&lan)]).unwrap();
        assert_eq!(store.port_numbers(&lan).unwrap(), numbers(&after));
        store.apply(&[StoreChange::RemoveSwitch(lan.clone())]).unwrap();
        store.apply(&[put(&lan, &list)]).unwrap();
        assert_eq!(store.port_numbers(&lan).unwrap(), []);
        assert_eq!(store.port_numbers(&wan).unwrap(), numbers(&[("tap0", 7)]));
    }
}
