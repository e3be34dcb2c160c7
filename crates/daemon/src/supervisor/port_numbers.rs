//! Numbers by which OpenFlow controllers know the ports, services and chains of steering switches. The fabric gives them. They
//! are stored, so that the next fabric gives the same.

use super::state::Supervisor;
use super::switches::alone;
use crate::error::OperationError;
use crate::store::{StoreChange, StoreError, StoredSwitch};
use api::{
    CreateSwitch, Event, EventKind, OpenFlowNumber, OpenFlowPort, Subject, SwitchMode, SwitchName, SwitchPort,
};
use protocol::fabric::{FabricError, NewPortNumbersReply, PortNumberMark, orders};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

impl Supervisor {
    /// Adds a switch without ports to its fabric, with the numbers that are stored.
    pub(super) fn order_switch(&self, definition: &CreateSwitch) -> Result<(), OperationError> {
        let switch = definition.name.clone();
        let numbers = match definition.mode {
            SwitchMode::Steering => self.0.store().port_numbers(&switch)?,
            SwitchMode::Static | SwitchMode::Learning => Vec::new(),
        };
        self.0.fabrics.ask(orders::AddSwitch { definition: alone(definition) })?;
        if !numbers.is_empty() {
            // A fabric of an earlier version gives others.
            let _ = self.0.fabrics.ask(orders::SetPortNumbers { switch, numbers });
        }
        Ok(())
    }

    /// The numbers of a switch that the fabric has given and that are not stored: none if the fabric does not tell.
    pub(super) fn new_port_numbers(
        &self,
        switch: &SwitchName,
    ) -> Result<NewPortNumbersReply, OperationError> {
        let mut new = self.until_rebuilt(|| self.ask_new_port_numbers(switch)).unwrap_or_default();
        new.numbers = self.0.store().unknown_port_numbers(switch, new.numbers)?;
        Ok(new)
    }

    fn ask_new_port_numbers(&self, switch: &SwitchName) -> Result<NewPortNumbersReply, OperationError> {
        self.steering_switch(switch)?;
        let since = self.0.port_marks().get(switch).copied().unwrap_or_default();
        match self.0.fabrics.ask(orders::NewPortNumbers { switch: switch.clone(), since }) {
            // A fabric of an earlier version tells all.
            Err(OperationError::Fabric(FabricError::Unsupported)) => Ok(NewPortNumbersReply {
                numbers: self.ask_port_numbers(switch)?,
                mark: PortNumberMark::default(),
            }),
            answer => answer,
        }
    }

    pub(super) fn ask_port_numbers(
        &self,
        switch: &SwitchName,
    ) -> Result<Vec<(OpenFlowPort, u16)>, OperationError> {
        self.steering_switch(switch)?;
        self.0.fabrics.ask(orders::PortNumbers { switch: switch.clone() })
    }

    /// Notes that the numbers of a switch are stored up to a mark, so that the fabric is asked for later ones only.
    pub(super) fn note_stored_numbers(&self, switch: SwitchName, mark: PortNumberMark) {
        self.0.port_marks().insert(switch, mark);
    }

    /// What the controllers of a switch see as ports, by number. `ports`: those of the switch.
    pub(super) fn openflow_numbers(
        &self,
        stored: &StoredSwitch,
        ports: &[SwitchPort],
    ) -> Vec<OpenFlowNumber> {
        if stored.definition.controllers.is_empty() {
            return Vec::new();
        }
        let of_port = |port: &SwitchPort| {
            Some(OpenFlowNumber { port: OpenFlowPort::Port(port.name.clone()), number: port.openflow? })
        };
        let mut numbers: Vec<OpenFlowNumber> = ports.iter().filter_map(of_port).collect();
        // A fabric of an earlier version does not tell those of services and chains.
        let steered = self.ask_port_numbers(&stored.definition.name).unwrap_or_default().into_iter();
        let is_there = |port: &OpenFlowPort| match port {
            OpenFlowPort::Port(_) => false,
            OpenFlowPort::Service(name) => stored.steering.service(name).is_some(),
            OpenFlowPort::Chain(name) => stored.steering.chain(name).is_some(),
        };
        let steered = steered.filter(|(port, _)| is_there(port));
        numbers.extend(steered.map(|(port, number)| OpenFlowNumber { port, number: number.into() }));
        sorting::sort_by_key(&mut numbers, |found| found.number);
        numbers
    }

    /// Stores the numbers of a switch that the fabric has given without an operation: after its start, and to functions that join
    /// a service.
    pub(super) fn store_port_numbers(&self, switch: &SwitchName) {
        // If the fabric has ended, so has the reason.
        let Ok(NewPortNumbersReply { mark, numbers }) = self.ask_new_port_numbers(switch) else { return };
        let store = || {
            let mut store = self.0.store();
            let unknown = store.unknown_port_numbers(switch, numbers)?;
            if unknown.is_empty() {
                return Ok(true);
            }
            store.apply(&[StoreChange::PutPortNumbers(switch.clone(), unknown.clone())])?;
            // An operation that makes the switch may be in progress, and stores them with it.
            Ok::<_, StoreError>(store.unknown_port_numbers(switch, unknown)?.is_empty())
        };
        match store() {
            Ok(true) => self.note_stored_numbers(switch.clone(), mark),
            Ok(false) => {}
            // The disk may be full.
            Err(_) => self.0.lacks_port_numbers.store(true, Ordering::Relaxed),
        }
    }

    /// Stores the numbers of functions that have joined services, as these events tell.
    pub(super) fn store_joined_numbers(&self, events: &[Event]) {
        let joined = events.iter().filter(|event| event.kind == EventKind::FunctionAttached);
        let switches: BTreeSet<SwitchName> =
            sorting::collect(joined.filter_map(|event| match event.subject.parse() {
                Ok(Subject::Service(name)) => self.find_service(&name).map(|(switch, _)| switch),
                _ => None,
            }));
        switches.iter().for_each(|switch| self.store_port_numbers(switch));
    }

    /// Stores numbers that could not be stored, or whose events were lost.
    pub(super) fn store_lacking_numbers(&self) {
        if self.0.lacks_port_numbers.swap(false, Ordering::Relaxed) {
            let steering = self.switches_with_steering();
            steering.iter().for_each(|stored| self.store_port_numbers(&stored.definition.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_bed::{TestBed, process};
    use super::*;
    use api::{AddPort, CreateChain, CreateService, Limits, PortDriver, Time};
    use std::collections::BTreeMap;

    fn port(name: &str) -> AddPort {
        AddPort {
            name: name.parse().unwrap(),
            driver: PortDriver::Null {},
            addresses: Vec::new(),
            default: false,
            limits: Limits::default(),
        }
    }

    fn service(name: &str, switch: &SwitchName) -> CreateService {
        CreateService {
            name: name.parse().unwrap(),
            switch: switch.clone(),
            instance: process(name, "drop"),
            faces: "in=0".parse().unwrap(),
            replicas: 1,
            container: false,
            places: None,
            trust_pool: false,
            auto: None,
            dead_after_ms: None,
            may_send_to: [].into(),
            translation: None,
        }
    }

    fn numbers(bed: &TestBed, switch: &SwitchName) -> BTreeMap<String, u16> {
        let numbers = bed.ask_port_numbers(switch).unwrap();
        numbers.into_iter().map(|(port, number)| (port.to_string(), number)).collect()
    }

    #[test]
    fn ports_have_their_numbers_in_the_next_fabric() {
        let bed = TestBed::with_probe();
        let lan: SwitchName = "lan".parse().unwrap();
        let definition = CreateSwitch {
            mode: SwitchMode::Steering,
            ports: ["a", "b", "c"].map(port).to_vec(),
            ..CreateSwitch::new(lan.clone())
        };
        bed.create_switch(definition.clone()).unwrap();
        for name in ["dpi", "ids", "nat"] {
            bed.create_service(service(name, &lan)).unwrap();
        }
        for name in ["old", "web"] {
            let chain = CreateChain {
                name: name.parse().unwrap(),
                switch: lan.clone(),
                services: vec!["nat".parse().unwrap()],
                from: None,
                to: "c".parse().unwrap(),
                both_ways: false,
            };
            bed.create_chain(chain).unwrap();
        }
        bed.remove_port(&lan, &"a".parse().unwrap()).unwrap();
        bed.remove_service(&"dpi".parse().unwrap()).unwrap();
        bed.remove_chain(&lan, &"old".parse().unwrap()).unwrap();
        let expected = |changes: &[(&str, u16)]| {
            let all = [("b", 2), ("c", 3), ("ids-1.0", 5), ("nat-1.0", 6)];
            let steered = [("service:ids", 32769), ("service:nat", 32770), ("chain:web", 40961)];
            let all = all.iter().chain(&steered).chain(changes);
            all.map(|(port, number)| (port.to_string(), *number)).collect::<BTreeMap<_, _>>()
        };
        assert_eq!(numbers(&bed, &lan), expected(&[]));
        bed.replace_fabric();
        assert_eq!(numbers(&bed, &lan), expected(&[]));
        // A new port gets the number of no removed one, which waits for its name, also in the next fabric.
        for name in ["d", "a"] {
            bed.add_port(&lan, &port(name)).unwrap();
        }
        let with_new = expected(&[("a", 1), ("d", 7)]);
        assert_eq!(numbers(&bed, &lan), with_new);
        bed.replace_fabric();
        assert_eq!(numbers(&bed, &lan), with_new);
        bed.create_service(service("dpi", &lan)).unwrap();
        let with_service = expected(&[("a", 1), ("d", 7), ("dpi-1.0", 4), ("service:dpi", 32768)]);
        assert_eq!(numbers(&bed, &lan), with_service);
    }

    #[test]
    fn only_numbers_that_are_not_stored_are_asked_for() {
        let bed = TestBed::with_probe();
        let lan: SwitchName = "lan".parse().unwrap();
        let mut definition = CreateSwitch { mode: SwitchMode::Steering, ..CreateSwitch::new(lan.clone()) };
        definition.ports = ["a", "b"].map(port).to_vec();
        bed.create_switch(definition.clone()).unwrap();
        bed.create_service(service("ids", &lan)).unwrap();
        let new = || -> Vec<String> {
            let reply = bed.ask_new_port_numbers(&lan).unwrap();
            reply.numbers.into_iter().map(|(port, number)| format!("{port} {number}")).collect()
        };
        assert!(new().is_empty(), "each operation has stored its numbers: {:?}", new());
        // As when a function joins the service: no operation knows of the port.
        let join = |name: &str| {
            let order = orders::AddPort { switch: lan.clone(), port: port(name), instead: None };
            bed.0.fabrics.ask(order).unwrap();
        };
        join("nf-1.0");
        assert_eq!(new(), ["nf-1.0 4"]);
        bed.fail_commits(true);
        bed.store_port_numbers(&lan);
        assert_eq!(new(), ["nf-1.0 4"], "what could not be stored is asked for again");
        bed.fail_commits(false);
        bed.store_lacking_numbers();
        assert!(new().is_empty());
        join("nf-2.0");
        let joined = |kind| Event {
            sequence: 1,
            time: Time::now(),
            kind,
            subject: "service/ids".into(),
            owner: None,
            message: String::new(),
        };
        bed.store_joined_numbers(&[joined(EventKind::FunctionDetached)]);
        assert_eq!(new(), ["nf-2.0 5"]);
        bed.store_joined_numbers(&[joined(EventKind::FunctionAttached)]);
        assert!(new().is_empty());
        bed.replace_fabric();
        assert!(new().is_empty(), "the next fabric got them from the store");
        ["nf-2.0", "nf-1.0"].into_iter().for_each(join);
        let expected =
            [("a", 1), ("b", 2), ("ids-1.0", 3), ("nf-1.0", 4), ("nf-2.0", 5), ("service:ids", 32768)];
        assert_eq!(numbers(&bed, &lan), expected.map(|(port, number)| (port.to_string(), number)).into());
        // Another switch of the name starts without numbers, and without marks.
        bed.remove_service(&"ids".parse().unwrap()).unwrap();
        bed.remove_switch(&lan).unwrap();
        bed.create_switch(definition).unwrap();
        assert!(new().is_empty());
        assert_eq!(bed.0.store().port_numbers(&lan).unwrap().len(), 2);
    }

    #[test]
    fn a_port_is_numbered_again_only_with_its_switch() {
        let bed = TestBed::with_probe();
        let lan: SwitchName = "lan".parse().unwrap();
        let definition = |ports: &[&str]| CreateSwitch {
            mode: SwitchMode::Steering,
            ports: ports.iter().map(|name| port(name)).collect(),
            ..CreateSwitch::new(lan.clone())
        };
        let expected = |list: &[(&str, u16)]| -> BTreeMap<String, u16> {
            list.iter().map(|(port, number)| (port.to_string(), *number)).collect()
        };
        bed.create_switch(definition(&["a", "b", "c"])).unwrap();
        bed.remove_port(&lan, &"a".parse().unwrap()).unwrap();
        // A store of an earlier version has no numbers: the next fabric gives them in the order of the ports, and they stay.
        let stored = bed.stored_switch(&lan).unwrap();
        let forget = [StoreChange::RemoveSwitch(lan.clone()), StoreChange::PutSwitch(stored)];
        let numbered_again = expected(&[("b", 1), ("c", 2)]);
        // What the daemon learns of the fabric before it ends is stored again.
        for _ in 0..20 {
            bed.0.store().apply(&forget[..1]).unwrap();
            bed.0.store().apply(&forget[1..]).unwrap();
            bed.replace_fabric();
            if numbers(&bed, &lan) == numbered_again {
                break;
            }
        }
        assert_eq!(numbers(&bed, &lan), numbered_again);
        bed.remove_port(&lan, &"b".parse().unwrap()).unwrap();
        bed.replace_fabric();
        assert_eq!(numbers(&bed, &lan), expected(&[("c", 2)]));
        // Another switch with the name begins at 1 again.
        bed.remove_switch(&lan).unwrap();
        bed.create_switch(definition(&["c", "d"])).unwrap();
        assert_eq!(numbers(&bed, &lan), expected(&[("c", 1), ("d", 2)]));
    }
}
