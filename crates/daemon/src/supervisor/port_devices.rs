//! The devices and files that ports have: which port has one, and which ones the launcher has to close.

use super::state::Supervisor;
use crate::fabric::Devices;
use api::{AddPort, Subject, SwitchName};

impl Supervisor {
    /// The other port that has the device of a new port.
    pub(super) fn user_of_device(&self, switch: &SwitchName, port: &AddPort) -> Option<Subject> {
        let switches = self.0.switches();
        let all = switches
            .iter()
            .flat_map(|(name, stored)| stored.definition.ports.iter().map(move |port| (name, port)));
        let is_self = |name: &SwitchName, other: &AddPort| name == switch && other.name == port.name;
        all.filter(|(name, other)| !is_self(name, other) && Devices::conflict(port, other))
            .map(|(name, other)| Subject::from((name, &other.name)))
            .next()
    }

    /// Has the launcher close what ports had that the fabric has removed, except devices that a port has again, or still.
    pub(super) fn close_unused<'a>(&self, gone: impl IntoIterator<Item = &'a AddPort>) {
        let unused: Vec<&AddPort> = {
            let switches = self.0.switches();
            let ports: Vec<&AddPort> =
                switches.values().flat_map(|stored| &stored.definition.ports).collect();
            let is_used = |gone: &AddPort| {
                let has_it =
                    |port: &&AddPort| Devices::conflict(gone, port) || Devices::same_interface(gone, port);
                ports.iter().any(has_it)
            };
            gone.into_iter().filter(|gone| !is_used(gone)).collect()
        };
        unused.into_iter().for_each(|port| Devices::close(self.0.fabrics.connector(), port));
    }

    /// Forgets what was noted about the ports of a switch that is removed: another one may get its name.
    pub(super) fn forget_ports(&self, switch: &SwitchName) {
        self.0.faults().retain(|(at, _), _| at != switch);
        self.0.sockets().retain(|(at, _), _| at != switch);
        self.0.port_marks().remove(switch);
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_bed::TestBed;
    use crate::store::StoreChange;
    use api::{AddPort, CreateSwitch, Limits, PortDriver, Size, SocketRole, Stack, with_causes};
    use protocol::launcher::{PortDevice, SocketProtocol};
    use std::path::Path;

    #[test]
    fn settings_with_which_a_port_could_never_work_are_refused() {
        let bed = TestBed::with_probe();
        let lan = "lan".parse().unwrap();
        bed.create_switch(CreateSwitch::new("lan".parse().unwrap())).unwrap();
        let machine = |memory: Option<u64>, queues| PortDriver::VhostUser {
            path: format!("/nowhere/{memory:?}.sock"),
            role: SocketRole::Client,
            queues,
            memory: memory.map(Size),
        };
        let replay = |rate| PortDriver::Pcap { read: Some("/nowhere".into()), write: None, repeat: 1, rate };
        for (number, (driver, why)) in (0..).zip([
            (
                machine(Some(0), None),
                Some("no machine that has 0 of memory can connect: give from 1M to 16T"),
            ),
            (machine(Some((1 << 20) - 1), None), Some("leave the memory out for 16G")),
            (machine(Some(u64::MAX), None), Some("give from 1M to 16T")),
            (machine(Some(1 << 20), Some(17)), Some("give 1 to 16, or leave the number out")),
            (PortDriver::Tap { device: None, queues: Some(0) }, Some("a port can't have 0 queues")),
            (PortDriver::AfXdp { device: None, queues: Some(0) }, Some("a port can't have 0 queues")),
            (replay(Some(0)), Some("give another rate, or leave it out")),
            // Its file is missed only then.
            (replay(Some(1)), Some("can't open /nowhere")),
            (machine(Some(1 << 20), Some(16)), None),
            (machine(Some(16 << 40), None), None),
        ]) {
            let name = format!("p{number}").parse().unwrap();
            let (addresses, limits) = (Vec::new(), Limits::default());
            let added = bed.add_port(&lan, &AddPort { name, driver, addresses, default: false, limits });
            match why {
                Some(why) => {
                    let text = with_causes(&added.unwrap_err());
                    assert!(text.contains(why), "{text}");
                }
                None => drop(added.unwrap()),
            }
        }
    }

    #[test]
    fn what_the_ports_of_a_switch_had_is_closed_with_it() {
        let bed = TestBed::with_probe();
        let folder = std::env::temp_dir().join(format!("clickbox-devices-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = |name: &str| folder.join(name);
        let port = |path: &Path| AddPort {
            name: path.file_name().unwrap().to_str().unwrap().parse().unwrap(),
            driver: PortDriver::VhostUser {
                path: path.to_str().unwrap().into(),
                role: SocketRole::Server,
                queues: None,
                memory: None,
            },
            addresses: Vec::new(),
            default: false,
            limits: Limits::default(),
        };
        let switch = |name: &str, ports: &[&str]| CreateSwitch {
            ports: ports.iter().map(|name| port(&path(name))).collect(),
            ..CreateSwitch::new(name.parse().unwrap())
        };
        let closed = || {
            let listener = |device| match device {
                PortDevice::Listener(SocketProtocol::VhostUser, path) => {
                    // As the launcher does: somebody may listen there again.
                    let _ = std::fs::remove_file(&path);
                    path.file_name().unwrap().to_str().unwrap().to_string()
                }
                other => panic!("{other:?}"),
            };
            bed.fabric.closed().into_iter().map(listener).collect::<Vec<_>>()
        };
        bed.create_switch(switch("lan", &["one", "two"])).unwrap();
        bed.remove_switch(&"lan".parse().unwrap()).unwrap();
        assert_eq!(closed(), ["one", "two"]);

        // A switch that can't be made: what other ports have stays theirs.
        bed.create_switch(switch("lan", &["one"])).unwrap();
        bed.create_switch(switch("wan", &["two", "one", "three"])).unwrap_err();
        assert_eq!(closed(), ["two", "three"]);

        // The daemon ended before it had the fabric remove a switch, and a port.
        bed.create_switch(switch("wan", &["two"])).unwrap();
        let mut lan = bed.stored_switch(&"lan".parse().unwrap()).unwrap();
        lan.definition.ports.clear();
        bed.0.store().apply(&[StoreChange::RemoveSwitch("wan".parse().unwrap())]).unwrap();
        bed.0.switches().remove(&"wan".parse().unwrap());
        bed.0.switches().insert("lan".parse().unwrap(), lan);
        let link = bed.0.fabrics.all().remove(0);
        bed.reconcile(&link).unwrap();
        assert_eq!(closed(), ["one", "two"]);

        let stack = Stack { switches: vec![switch("wan", &["two"])], ..Stack::default() };
        bed.apply_stack(&"edge".parse().unwrap(), stack).unwrap();
        bed.remove_stack(&"edge".parse().unwrap()).unwrap();
        assert_eq!(closed(), ["two"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
