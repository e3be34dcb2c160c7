//! Writes a stack as a stack file that contains all configurations and files.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    AddFlow, AddPort, BoundAddresses, BoxName, CapturePoint, ControllerAddress, CoreCount, Cores, CreateBox,
    CreateChain, CreateService, CreateSwitch, Destination, Device, Faces, FailMode, HostAddress, ImageDigest,
    MacAddr, MemifSecret, Owner, PortDriver, PortName, PortRequest, Restart, Ring, Sandbox, ServiceName,
    Size, SocketRole, Stack, StackName, SwitchMode, SwitchName, Translation, TunnelMtu, UdpPort, Value, Vni,
    Weight,
};
use serde::Serialize;

use super::port_options::Driver;
use super::replicas::{Milliseconds, Replicas};

/// The entries of the file, as `stack_file` reads them.
#[derive(Serialize)]
struct Entries {
    name: StackName,
    owner: Owner,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    switches: BTreeMap<SwitchName, SwitchEntry>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    boxes: BTreeMap<BoxName, BoxEntry>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    service: BTreeMap<ServiceName, ServiceEntry>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    chain: BTreeMap<String, ChainEntry>,
}

#[derive(Serialize)]
struct ServiceEntry {
    switch: SwitchName,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    faces: Faces,
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<Replicas>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_after: Option<Milliseconds>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    container: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    places: Option<u16>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    trust_pool: bool,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    may_send_to: BTreeSet<Destination>,
    #[serde(skip_serializing_if = "Option::is_none")]
    translation: Option<Translation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<Owner>,
    /// Functions that join have no definition.
    #[serde(flatten)]
    instance: Option<BoxEntry>,
}

#[derive(Serialize)]
struct ChainEntry {
    switch: SwitchName,
    services: Vec<ServiceName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<PortName>,
    to: PortName,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    both_ways: bool,
}

#[derive(Default, Serialize)]
struct SwitchEntry {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    external: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<SwitchMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    age_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    addresses_per_port: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<Owner>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    shared_with: BTreeSet<Owner>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    ports: BTreeMap<PortName, PortEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    flows: Vec<AddFlow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    controllers: Vec<ControllerAddress>,
    #[serde(skip_serializing_if = "FailMode::is_default")]
    fail_mode: FailMode,
}

#[derive(Serialize)]
struct PortEntry {
    driver: Driver,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<Device>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queues: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote: Option<HostAddress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vni: Option<Vni>,
    #[serde(skip_serializing_if = "Option::is_none")]
    local: Option<HostAddress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    udp_port: Option<UdpPort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtu: Option<TunnelMtu>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    write: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<SocketRole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Size>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<MemifSecret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<CapturePoint>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<MacAddr>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    default: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<Weight>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_frames: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_bits: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_broadcasts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_new_addresses: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<MacAddr>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    transparent: bool,
    #[serde(skip_serializing_if = "BoundAddresses::is_empty")]
    bind_ip: BoundAddresses,
}

#[derive(Serialize)]
struct BoxEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<String>,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    sandbox: Sandbox,
    memory: Size,
    ring: Ring,
    #[serde(skip_serializing_if = "CoreCount::is_one")]
    cores: CoreCount,
    cpu_weight: Weight,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_limit: Option<Cores>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dedicated: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    share_packets: bool,
    restart: Restart,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    keep_writes: bool,
    owner: Owner,
    #[serde(skip_serializing_if = "Clone::clone")]
    start: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attach: Vec<PortRequest>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    contents: BTreeMap<String, Value>,
}

/// The text of a stack file. Images are named by these paths, or by their digests. Applying it to the daemon that the stack is from changes nothing.
pub(crate) fn exported(
    name: &StackName,
    stack: Stack,
    images: &BTreeMap<ImageDigest, String>,
) -> Result<String, toml::ser::Error> {
    let mut switches: BTreeMap<SwitchName, SwitchEntry> = BTreeMap::new();
    for switch in stack.switches {
        let default = CreateSwitch::new(switch.name.clone());
        let entry = SwitchEntry {
            mode: Some(switch.mode).filter(|mode| *mode != default.mode),
            age_seconds: Some(switch.age_seconds).filter(|age| *age != default.age_seconds),
            addresses_per_port: Some(switch.addresses_per_port)
                .filter(|count| *count != default.addresses_per_port),
            owner: Some(switch.owner).filter(|owner| *owner != stack.owner),
            shared_with: switch.shared_with,
            ports: switch.ports.into_iter().map(port).collect(),
            flows: switch.flows,
            controllers: switch.controllers,
            fail_mode: switch.fail_mode,
            ..SwitchEntry::default()
        };
        switches.insert(switch.name, entry);
    }
    for used in stack.external {
        let ports = used.ports.into_iter().map(port).collect();
        switches.insert(used.name, SwitchEntry { external: true, ports, ..SwitchEntry::default() });
    }
    let boxes = stack.boxes.into_iter().map(|definition| box_entry(definition, images)).collect();
    let service = stack.services.into_iter().map(|definition| service_entry(definition, images)).collect();
    let mut chain: BTreeMap<String, ChainEntry> = BTreeMap::new();
    for definition in stack.chains {
        let CreateChain { name, switch, services, from, to, both_ways } = definition;
        // Chains of two switches may have the same name.
        let key = match chain.contains_key(name.as_str()) {
            true => format!("{switch}/{name}"),
            false => name.to_string(),
        };
        chain.insert(key, ChainEntry { switch, services, from, to, both_ways });
    }
    toml::to_string_pretty(&Entries {
        name: name.clone(),
        owner: stack.owner,
        switches,
        boxes,
        service,
        chain,
    })
}

fn service_entry(
    definition: CreateService,
    images: &BTreeMap<ImageDigest, String>,
) -> (ServiceName, ServiceEntry) {
    let CreateService {
        name,
        switch,
        instance,
        faces,
        replicas,
        auto,
        dead_after_ms,
        container,
        places,
        trust_pool,
        may_send_to,
        translation,
    } = definition;
    let (_, mut instance) = box_entry(instance, images);
    let file = instance.configuration.take().filter(|_| !container);
    let owner = container.then(|| instance.owner.clone());
    let instance = (!container).then_some(instance);
    let replicas = (!container).then_some(Replicas::of(replicas, auto));
    let dead_after = dead_after_ms.map(Milliseconds);
    let entry = ServiceEntry {
        switch,
        file,
        faces,
        replicas,
        dead_after,
        container,
        places,
        trust_pool,
        may_send_to,
        translation,
        owner,
        instance,
    };
    (name, entry)
}

fn port(port: AddPort) -> (PortName, PortEntry) {
    let mut entry = PortEntry {
        driver: Driver::Null,
        device: None,
        remote: None,
        vni: None,
        local: None,
        udp_port: None,
        mtu: None,
        read: None,
        write: None,
        repeat: None,
        rate: None,
        queues: None,
        memory: None,
        path: None,
        role: None,
        id: None,
        secret: None,
        to: None,
        addresses: port.addresses,
        default: port.default,
        weight: Some(port.limits.weight).filter(|weight| *weight != Weight::default()),
        max_frames: port.limits.frames,
        max_bits: port.limits.bits,
        max_broadcasts: port.limits.broadcasts,
        max_new_addresses: port.limits.new_addresses,
        source: port.limits.source,
        transparent: port.limits.transparent,
        bind_ip: port.limits.bind_ip,
    };
    match port.driver {
        PortDriver::Tap { device, queues } => {
            (entry.driver, entry.device, entry.queues) = (Driver::Tap, device, queues);
        }
        PortDriver::AfPacket { device } => (entry.driver, entry.device) = (Driver::AfPacket, device),
        PortDriver::AfXdp { device, queues } => {
            (entry.driver, entry.device, entry.queues) = (Driver::AfXdp, device, queues);
        }
        PortDriver::Pcap { read, write, repeat, rate } => {
            entry.driver = Driver::Pcap;
            (entry.read, entry.write, entry.rate) = (read, write, rate);
            entry.repeat = Some(repeat);
        }
        PortDriver::Vxlan { remote, vni, local, udp_port, mtu } => {
            entry.driver = Driver::Vxlan;
            (entry.remote, entry.vni, entry.local) = (Some(remote), Some(vni), local);
            (entry.udp_port, entry.mtu) = (udp_port, mtu);
        }
        PortDriver::Geneve { remote, vni, local, udp_port, mtu } => {
            entry.driver = Driver::Geneve;
            (entry.remote, entry.vni, entry.local) = (Some(remote), Some(vni), local);
            (entry.udp_port, entry.mtu) = (udp_port, mtu);
        }
        PortDriver::Memif { path, role, id, secret, queues } => {
            entry.driver = Driver::Memif;
            (entry.path, entry.role, entry.secret) = (Some(path), Some(role), secret);
            entry.queues = queues;
            entry.id = Some(id).filter(|id| *id != 0);
        }
        PortDriver::VhostUser { path, role, queues, memory } => {
            (entry.queues, entry.memory) = (queues, memory);
            (entry.driver, entry.path, entry.role) = (Driver::VhostUser, Some(path), Some(role));
        }
        PortDriver::Null {} => {}
        PortDriver::Pipe { switch, port } => {
            (entry.driver, entry.to) = (Driver::Pipe, Some(CapturePoint::Switch(switch, port)));
        }
        PortDriver::Box { name, port } => {
            (entry.driver, entry.to) = (Driver::Box, Some(CapturePoint::Box(name, port)));
        }
    }
    (port.name, entry)
}

fn box_entry(definition: CreateBox, images: &BTreeMap<ImageDigest, String>) -> (BoxName, BoxEntry) {
    let named = |digest: &ImageDigest| images.get(digest).cloned().unwrap_or_else(|| digest.to_string());
    let image = definition.image_digest().map(named);
    let entry = BoxEntry {
        configuration: definition.source,
        text: definition.configuration,
        image,
        sandbox: definition.sandbox,
        memory: definition.memory,
        ring: definition.ring,
        cores: definition.cores,
        cpu_weight: definition.cpu_weight,
        cpu_limit: definition.cpu_limit,
        dedicated: definition.dedicated,
        share_packets: definition.share_packets,
        restart: definition.restart,
        keep_writes: definition.keep_writes,
        owner: definition.owner,
        start: definition.start,
        attach: definition.ports,
        labels: definition.labels,
        contents: definition.files.into_iter().map(|file| (file.name, file.contents)).collect(),
    };
    (definition.name, entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::online::StackFile;
    use api::{ExternalSwitch, File, Limits};

    #[test]
    fn an_exported_stack_is_read_back() {
        let add = |name: &str, driver: PortDriver| AddPort {
            name: name.parse().expect("a name"),
            driver,
            addresses: Vec::new(),
            default: false,
            limits: Limits::default(),
        };
        let address = MacAddr::new([2, 0, 0, 0, 0, 7]);
        let bound: Vec<api::IpPrefix> =
            ["192.0.2.1", "2001:db8::/64"].map(|text| text.parse().expect("an address")).into();
        let limits = Limits {
            weight: 300.try_into().expect("a weight"),
            frames: Some(5),
            bits: Some(6),
            broadcasts: Some(7),
            new_addresses: Some(8),
            source: Some(address),
            transparent: false,
            bind_ip: bound.try_into().expect("a list"),
        };
        let transparent = Limits { transparent: true, ..Limits::default() };
        let (read, write) = (Some("/in.pcap".to_string()), Some("/out.pcap".to_string()));
        let device = Some("eth1".parse().expect("a device"));
        let mut lan = CreateSwitch::new("lan".parse().expect("a name"));
        (lan.mode, lan.age_seconds, lan.addresses_per_port) = (SwitchMode::Static, 7, 8);
        lan.controllers = vec!["tcp:[::1]:6653".parse().expect("an address")];
        lan.fail_mode = FailMode::Standalone;
        lan.owner = "bob".parse().expect("an owner");
        lan.shared_with = ["carol".parse().expect("an owner")].into();
        lan.ports = vec![
            AddPort {
                limits: transparent.clone(),
                ..add("box", PortDriver::Box { name: "fw".parse().expect("a name"), port: 1 })
            },
            AddPort {
                addresses: vec![address],
                default: true,
                limits: limits.clone(),
                ..add("null", PortDriver::Null {})
            },
            add("pcap", PortDriver::Pcap { read, write, repeat: 0, rate: Some(9) }),
        ];
        lan.flows = [r#"{"match": "tcp", "in_port": "null", "output": "box"}"#, r#"{"output": "normal"}"#]
            .map(|text| serde_json::from_str(text).expect("a flow"))
            .into();
        let mut other = CreateSwitch::new("mgmt".parse().expect("a name"));
        other.owner = "alice".parse().expect("an owner");
        let pipe =
            PortDriver::Pipe { switch: "lan".parse().expect("a name"), port: "far".parse().expect("a name") };
        let (vni, udp_port, mtu) = (42.try_into().expect("a VNI"), 8472.try_into(), 1400.try_into());
        let tunnel = PortDriver::Vxlan {
            remote: "192.0.2.2".parse().expect("an address"),
            vni,
            local: "192.0.2.1".parse().ok(),
            udp_port: udp_port.ok(),
            mtu: mtu.ok(),
        };
        let remote = "2001:db8::2".parse().expect("an address");
        let tunnel6 = PortDriver::Geneve { remote, vni, local: None, udp_port: None, mtu: None };
        let used = ExternalSwitch {
            name: "wan".parse().expect("a name"),
            ports: vec![
                add("iface", PortDriver::AfPacket { device: device.clone() }),
                add("iface2", PortDriver::AfXdp { device, queues: Some(2) }),
                add(
                    "memif",
                    PortDriver::Memif {
                        path: "/run/memif.sock".into(),
                        role: api::SocketRole::Client,
                        id: 7,
                        secret: Some("hush".parse().expect("a secret")),
                        queues: Some(4),
                    },
                ),
                add("pipe", pipe),
                add("tap", PortDriver::Tap { device: None, queues: Some(3) }),
                add("tunnel", tunnel),
                add("tunnel6", tunnel6),
            ],
        };
        let mut small = CreateBox::new("small".parse().expect("a name"), "Idle;");
        small.source = Some("small.click".into());
        let mut full = CreateBox::new("fw".parse().expect("a name"), "// \"\"\" \'\'\' \u{1}\nIdle;\n");
        full.source = Some("a/fw.click".into());
        full.files = vec![
            File { name: "bytes".into(), contents: Value(vec![0xff, 0]) },
            File { name: "rules.txt".into(), contents: "deny all\n".into() },
        ];
        full.image = Some(api::ImageSource::Digest(ImageDigest([7; 32])));
        full.sandbox = Sandbox::Process;
        full.memory = Size(5 << 20);
        full.ports = vec![
            PortRequest { attach: "lan".parse().expect("a switch"), mac: Some(address), limits },
            PortRequest { attach: "pipe:a".parse().expect("a pipe"), ..PortRequest::default() },
            PortRequest { limits: transparent, ..PortRequest::default() },
        ];
        full.cores = 2.try_into().expect("a number");
        full.cpu_weight = 50.try_into().expect("a weight");
        full.cpu_limit = Some("0.5".parse().expect("a limit"));
        (full.dedicated, full.share_packets, full.start) = (true, true, false);
        full.restart = Restart::Always;
        full.keep_writes = true;
        full.owner = "alice".parse().expect("an owner");
        full.labels.insert("rack".into(), "7".into());
        let chain = |switch: &str| CreateChain {
            name: "web".parse().expect("a name"),
            switch: switch.parse().expect("a name"),
            services: vec!["ids".parse().expect("a name")],
            from: Some("iface".parse().expect("a name")),
            to: "tap".parse().expect("a name"),
            both_ways: switch == "lan",
        };
        let stack = Stack {
            owner: "alice".parse().expect("an owner"),
            switches: vec![lan, other],
            boxes: vec![full.clone(), small],
            external: vec![used],
            services: vec![CreateService {
                name: "ids".parse().expect("a name"),
                switch: "lan".parse().expect("a name"),
                instance: CreateBox { name: "ids".parse().expect("a name"), ..full.clone() },
                faces: "in=2,out=0".parse().expect("faces"),
                replicas: 3,
                container: false,
                places: None,
                trust_pool: false,
                auto: "3-5".parse().ok(),
                dead_after_ms: Some(1500),
                may_send_to: ["port:wan", "quarantine"].map(|text| text.parse().expect("a name")).into(),
                translation: Some(Translation {
                    ranges: ["203.0.113.1:1024-65535", "203.0.113.2"]
                        .map(|text| text.parse().expect("a range"))
                        .to_vec(),
                    slices: 4,
                    mappings: vec!["tcp 203.0.113.3:80 -> 10.0.0.5:8080".parse().expect("a mapping")],
                }),
            }],
            chains: vec![chain("lan"), chain("mgmt")],
        };
        let name: StackName = "edge".parse().expect("a name");
        let text = exported(&name, stack.clone(), &BTreeMap::new()).expect("a file");
        let folder = std::env::temp_dir().join(format!("clickbox-export-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("other.toml"), &text).expect("a file");
        let read = StackFile::read(&folder.join("other.toml")).map_err(|error| format!("{error:?}: {text}"));
        std::fs::remove_dir_all(&folder).expect("the folder goes");
        let read = read.expect("a stack");
        let mut read_stack = read.stack;
        read_stack.chains.sort_by(|one, other| one.switch.cmp(&other.switch));
        assert_eq!((read.name, read_stack), (name, stack), "{text}");
    }
}
