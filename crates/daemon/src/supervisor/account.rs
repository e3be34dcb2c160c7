//! The accounts of the places through which packets pass.

use super::state::Supervisor;
use crate::error::{OperationError, RequestError};
use crate::fabric::AccountPlaces;
use crate::limits::CALL_TIMEOUT;
use crate::store::StoredSwitch;
use api::{
    AccountPlace, AccountQuery, AccountReport, AccountRow, BoxName, ChainName, ConfigurationName,
    HandlerPath, ServiceName, StackName, Subject, SwitchName, Time, escape,
};
use protocol::fabric::Asked;
use std::collections::BTreeMap;
use std::time::Instant;

/// The most elements of a configuration that are reported. A hostile box must not fill the daemon's memory.
const MAX_ELEMENTS: usize = 10_000;

impl Supervisor {
    /// The accounts of everything, or of a box, a switch, a service, a chain or a stack.
    pub fn account(&self, query: &AccountQuery) -> Result<AccountReport, OperationError> {
        let (asked, chain) = match query.subject.as_deref() {
            None if self.is_administrator() => (AccountPlaces::default(), None),
            None => (AccountPlaces { owner: self.own_owner(), ..self.own_places() }, None),
            Some(name) => self.places(name)?,
        };
        let (time, start) = (Time::now(), Instant::now());
        let mut places = Vec::new();
        let rows = self.0.fabrics.account(&asked)?;
        for row in rows.into_iter().filter(|row| chain.as_ref().is_none_or(|chain| chain.has(&row.place))) {
            let name = running_box(&row).filter(|_| query.elements).cloned();
            places.push(row);
            if let Some(name) = name {
                places.extend(self.elements(&name)?);
            }
        }
        let took_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(AccountReport { time, took_ns, places })
    }

    /// What a name stands for: an object such as `box/fw`, or the only box, switch, service, chain or stack of this name. Of a chain,
    /// only some of these places are meant.
    fn places(&self, name: &str) -> Result<(AccountPlaces, Option<ChainPlaces>), OperationError> {
        let subject = match name.parse::<Subject>() {
            Ok(subject) => subject,
            Err(_) => self.only_object(name)?,
        };
        self.require_own(&subject)?;
        let places = match subject {
            Subject::Box(name) => {
                self.0.managed_box(&name)?;
                those(vec![name], Vec::new())
            }
            Subject::Switch(name) => match self.0.switches().contains_key(&name) {
                true => those(Vec::new(), vec![name]),
                false => return Err(OperationError::NoSwitch(name)),
            },
            Subject::Stack(name) => self.places_of_stack(&name)?,
            Subject::Service(name) => those(self.instances_of(&name)?, Vec::new()),
            Subject::Chain(switch, chain) => {
                let services = self.show_chain(&switch, &chain)?.status.chain.services;
                let instances = services.iter().map(|service| self.instances_of(service));
                let instances = instances.collect::<Result<Vec<_>, _>>()?.concat();
                let places = those(instances.clone(), vec![switch.clone()]);
                return Ok((places, Some(ChainPlaces { switch, chain, services, instances })));
            }
            Subject::Daemon | Subject::Port(..) => {
                return Err(OperationError::Invalid(RequestError::NoAccount(subject)));
            }
        };
        Ok((places, None))
    }

    /// The instances of a service, also those that joined it by themselves.
    fn instances_of(&self, service: &ServiceName) -> Result<Vec<BoxName>, OperationError> {
        Ok(self.show_service(service)?.instances.into_iter().map(|there| there.name).collect())
    }

    /// All boxes and switches that the caller may see.
    fn own_places(&self) -> AccountPlaces {
        let mut boxes = self.0.all();
        boxes.retain(|managed| self.sees(&managed.inner().definition.owner));
        let switches = self.0.switches();
        let own = switches.values().filter(|stored| self.sees(&stored.definition.owner));
        those(
            boxes.iter().map(|managed| managed.name.clone()).collect(),
            own.map(|stored| stored.definition.name.clone()).collect(),
        )
    }

    fn only_object(&self, name: &str) -> Result<Subject, OperationError> {
        let mut found = Vec::new();
        if let Ok(name) = name.parse::<BoxName>()
            && self.own_places().boxes.is_some_and(|own| own.contains(&name))
        {
            found.push(Subject::Box(name));
        }
        if let Ok(name) = name.parse::<SwitchName>()
            && self.own_places().switches.is_some_and(|own| own.contains(&name))
        {
            found.push(Subject::Switch(name));
        }
        if let Ok(name) = name.parse::<StackName>()
            && self.stacks()?.iter().any(|stack| stack.name == name)
        {
            found.push(Subject::Stack(name));
        }
        for StoredSwitch { definition, steering, .. } in self.switches_with_steering() {
            let services = steering.services.iter().map(|there| &there.definition.name);
            found.extend(services.filter(|known| known.as_str() == name).map(Subject::from));
            let chains = steering.chains.iter().map(|there| &there.definition.name);
            let chains = chains.filter(|known| known.as_str() == name);
            found.extend(chains.map(|chain| Subject::from((&definition.name, chain))));
        }
        match (found.pop(), found.is_empty()) {
            (Some(only), true) => Ok(only),
            (None, _) => Err(OperationError::NoObject(name.into())),
            (Some(last), false) => {
                found.push(last);
                Err(OperationError::Invalid(RequestError::Ambiguous(name.into(), found)))
            }
        }
    }

    fn places_of_stack(&self, name: &StackName) -> Result<AccountPlaces, OperationError> {
        let stack = self.stacks()?.into_iter().find(|stack| stack.name == *name);
        let stack = stack.ok_or_else(|| OperationError::NoStack(name.clone()))?;
        // An administrator's stack may have objects of several owners.
        let own = self.own_places();
        let (own_boxes, own_switches) = (own.boxes.unwrap_or_default(), own.switches.unwrap_or_default());
        let boxes = stack.boxes.into_iter().filter(|name| own_boxes.contains(name)).collect();
        let switches = stack.switches.into_iter().filter(|name| own_switches.contains(name)).collect();
        Ok(those(boxes, switches))
    }

    /// The accounts of the elements of a box, which it reports itself.
    fn elements(&self, name: &BoxName) -> Result<Vec<AccountRow>, OperationError> {
        let mut rows = Vec::new();
        for configuration in self.runtime(name, Asked::None)?.configurations {
            let path = HandlerPath {
                name: name.clone(),
                configuration: configuration.name.clone(),
                handler: "accounts".into(),
            };
            let read = || self.read_within(&path, b"", CALL_TIMEOUT);
            let before = parse(name, &configuration.name, &String::from_utf8_lossy(&read()?));
            let mut after = parse(name, &configuration.name, &String::from_utf8_lossy(&read()?));
            let passed: BTreeMap<&AccountPlace, u64> =
                sorting::collect(before.iter().map(|row| (&row.place, passed(row))));
            for row in &mut after {
                row.moved = passed_since(row, &passed);
            }
            rows.extend(after.into_iter().map(AccountRow::compare));
        }
        Ok(rows)
    }
}

/// The places of a chain: its row, and its services with their instances and the ports of these.
#[derive(Debug)]
struct ChainPlaces {
    switch: SwitchName,
    chain: ChainName,
    services: Vec<ServiceName>,
    instances: Vec<BoxName>,
}

impl ChainPlaces {
    fn has(&self, place: &AccountPlace) -> bool {
        match place {
            AccountPlace::Chain { switch, chain } => (switch, chain) == (&self.switch, &self.chain),
            AccountPlace::Service { service } => self.services.contains(service),
            AccountPlace::Port { switch, port } => {
                let is_of = |instance: &BoxName| {
                    let number = port.as_str().strip_prefix(instance.as_str());
                    number.is_some_and(|number| number.starts_with('.'))
                };
                *switch == self.switch && self.instances.iter().any(is_of)
            }
            AccountPlace::ReceiveRing { name, .. }
            | AccountPlace::TransmitRing { name, .. }
            | AccountPlace::Box { name }
            | AccountPlace::Element { name, .. }
            | AccountPlace::Ended { name } => self.instances.contains(name),
            AccountPlace::Pipe { ends, .. } => ends.iter().any(|(name, _)| self.instances.contains(name)),
            AccountPlace::Switch { .. }
            | AccountPlace::Link { .. }
            | AccountPlace::Proxy { .. }
            | AccountPlace::ProxyPort { .. }
            | AccountPlace::ProxyLink { .. } => false,
        }
    }
}

fn those(boxes: Vec<BoxName>, switches: Vec<SwitchName>) -> AccountPlaces {
    AccountPlaces { boxes: Some(boxes), switches: Some(switches), owner: None }
}

/// The box of a row about its inside.
fn running_box(row: &AccountRow) -> Option<&BoxName> {
    match &row.place {
        AccountPlace::Box { name } => row.incoming.and(Some(name)),
        _ => None,
    }
}

/// Packets that came into a place or were made there.
fn passed(row: &AccountRow) -> u64 {
    row.incoming.unwrap_or(0).saturating_add(row.made)
}

fn passed_since(row: &AccountRow, before: &BTreeMap<&AccountPlace, u64>) -> u64 {
    before.get(&row.place).map_or(0, |before| passed(row).saturating_sub(*before))
}

/// Parses the value of the router's handler `accounts`. The box wrote it: lines in another form are left out.
fn parse(name: &BoxName, configuration: &ConfigurationName, text: &str) -> Vec<AccountRow> {
    let row = |line: &str| {
        let mut fields = line.split('\t');
        let [element, class] = [fields.next()?, fields.next()?].map(|field| escape::line(field.as_bytes()));
        let mut count = || fields.next()?.parse::<u64>().ok();
        let [incoming, made, out, discarded, delivered, consumed] =
            [count()?, count()?, count()?, count()?, count()?, count()?];
        let waiting = fields.next()?.parse().ok();
        let losses = fields.next()?.split(',').filter_map(|loss| {
            let (reason, count) = loss.split_once('=')?;
            Some((escape::line(reason.as_bytes()), count.parse().ok()?))
        });
        Some(AccountRow {
            own_word: true,
            incoming: Some(incoming),
            made,
            out: Some(out),
            lost: losses.filter(|(_, count)| *count > 0).collect(),
            discarded,
            delivered,
            consumed,
            waiting,
            ..AccountRow::new(AccountPlace::Element {
                name: name.clone(),
                configuration: configuration.clone(),
                element,
                class,
            })
        })
    };
    text.lines().filter_map(row).take(MAX_ELEMENTS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_has_its_row_its_services_and_their_instances() {
        let chain = ChainPlaces {
            switch: "lan".parse().unwrap(),
            chain: "web".parse().unwrap(),
            services: vec!["fw".parse().unwrap()],
            instances: vec!["fw-1".parse().unwrap()],
        };
        let place = |value| serde_json::from_value::<AccountPlace>(value).unwrap();
        let places = [
            serde_json::json!({ "kind": "chain", "switch": "lan", "chain": "web" }),
            serde_json::json!({ "kind": "service", "service": "fw" }),
            serde_json::json!({ "kind": "port", "switch": "lan", "port": "fw-1.0" }),
            serde_json::json!({ "kind": "receive_ring", "name": "fw-1", "port": 0 }),
            serde_json::json!({ "kind": "box", "name": "fw-1" }),
            serde_json::json!({ "kind": "ended", "name": "fw-1" }),
        ];
        assert!(places.into_iter().map(place).all(|place| chain.has(&place)));
        let others = [
            serde_json::json!({ "kind": "chain", "switch": "lan", "chain": "dns" }),
            serde_json::json!({ "kind": "chain", "switch": "wan", "chain": "web" }),
            serde_json::json!({ "kind": "service", "service": "ids" }),
            serde_json::json!({ "kind": "port", "switch": "lan", "port": "fw-10.0" }),
            serde_json::json!({ "kind": "port", "switch": "wan", "port": "fw-1.0" }),
            serde_json::json!({ "kind": "port", "switch": "lan", "port": "uplink" }),
            serde_json::json!({ "kind": "switch", "switch": "lan" }),
            serde_json::json!({ "kind": "box", "name": "ids-1" }),
        ];
        assert!(others.into_iter().map(place).all(|place| !chain.has(&place)));
    }

    #[test]
    fn lists_of_accounts_are_read() {
        let text = "fw\tIPFilter\t9\t0\t4\t0\t0\t0\t0\tdenied=5\n\
                    s\tScript\t0\t0\t0\t0\t0\t0\t-\t\n\
                    nonsense\n\
                    x\tQueue\t1\t2\t-3\t0\t0\t0\t0\t\n\
                    \x1b\tQueue\t7\t1\t2\t0\t0\t0\t3\tfull=2,\x1b=1,bad\n";
        let rows = parse(&"b".parse().unwrap(), &ConfigurationName::main(), text);
        let shown: Vec<String> = rows.iter().map(|row| row.place.to_string()).collect();
        assert_eq!(shown, ["b/fw", "b/s", "b/\\u{1b}"]);
        let differences: Vec<_> = rows.iter().map(|row| row.clone().compare().difference).collect();
        assert_eq!(differences, [Some(0), None, Some(0)]);
        assert_eq!(rows[2].lost.keys().collect::<Vec<_>>(), ["\\u{1b}", "full"]);
    }
}
