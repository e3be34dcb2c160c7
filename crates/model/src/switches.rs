//! Switches and their ports.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::controllers::{ControllerAddress, ControllerStatus, FailMode, OpenFlowNumber};
use crate::flows::AddFlow;
use crate::ip_prefix::BoundAddresses;
use crate::mac_addr::MacAddr;
use crate::memif::MemifSecret;
use crate::name::{BoxName, Owner, PortName, StackName, SwitchName};
use crate::size::{Size, TunnelMtu, UdpPort, Vni, Weight};
use crate::text::as_text;
use crate::time::Time;
use crate::traffic::{Rates, Traffic};
use crate::tunnels::{HostAddress, Tunnel, TunnelKind};

/// How a switch forwards frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SwitchMode {
    /// The switch learns addresses from the sources of frames. Frames to unknown addresses go to all ports.
    #[default]
    Learning,
    /// The switch has a fixed table. Frames to unknown addresses go to the `default` port, or are dropped if there is
    /// none. Frames to group addresses go to all ports.
    Static,
    /// The switch has flows, which say where packets go. Packets that match none are dropped.
    Steering,
}

/// The definition of a switch to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSwitch {
    /// The name of the switch.
    pub name: SwitchName,
    /// How the switch forwards frames.
    #[serde(default)]
    pub mode: SwitchMode,
    /// Seconds after which a learned address expires.
    #[serde(default = "default_age")]
    pub age_seconds: u32,
    /// The maximum number of addresses learned from one port, so that no port can fill the table with forged ones.
    #[serde(default = "default_addresses")]
    pub addresses_per_port: u32,
    /// The owner of the switch. Only this owner's boxes and switches can be attached to it, and those of `shared_with`.
    #[serde(default)]
    pub owner: Owner,
    /// Other owners whose boxes and switches can be attached to the switch.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub shared_with: BTreeSet<Owner>,
    /// The ports to create.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<AddPort>,
    /// The flows to add, for a steering switch. They have no timeouts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<AddFlow>,
    /// OpenFlow controllers that the switch connects to, for a steering switch: at most eight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controllers: Vec<ControllerAddress>,
    /// What the switch does while no controller is connected.
    #[serde(default, skip_serializing_if = "FailMode::is_default")]
    pub fail_mode: FailMode,
}

impl CreateSwitch {
    /// A switch with defaults for everything else.
    pub fn new(name: SwitchName) -> Self {
        Self {
            name,
            mode: SwitchMode::default(),
            age_seconds: default_age(),
            addresses_per_port: default_addresses(),
            owner: Owner::default(),
            shared_with: BTreeSet::new(),
            ports: Vec::new(),
            flows: Vec::new(),
            controllers: Vec::new(),
            fail_mode: FailMode::default(),
        }
    }

    /// Whether an owner's boxes and switches can be attached to the switch.
    pub fn admits(&self, owner: &Owner) -> bool {
        self.owner == *owner || self.shared_with.contains(owner)
    }
}

/// The ageing time that IEEE 802.1D recommends.
fn default_age() -> u32 {
    300
}

fn default_addresses() -> u32 {
    1024
}

/// The definition of a port to add to a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddPort {
    /// The name of the port.
    pub name: PortName,
    /// The device, file, switch or box behind the port.
    pub driver: PortDriver,
    /// Ethernet addresses behind the port, for a static switch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<MacAddr>,
    /// Whether the port receives frames to unknown addresses, in a static switch. The last such port is used.
    #[serde(default)]
    pub default: bool,
    /// Limits on the frames that enter the switch through the port.
    #[serde(default, skip_serializing_if = "Limits::is_default")]
    pub limits: Limits,
}

/// The device, file, switch or box behind a port of a switch: an object such as `{"kind": "tap", "device": "tap0"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    deny_unknown_fields,
    expecting = "an object such as {\"kind\": \"tap\", \"device\": \"tap0\"}"
)]
pub enum PortDriver {
    /// A tap device on the host. It is created if it does not exist.
    Tap {
        /// The name of the device. Absent: the name of the port.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<Device>,
        /// The maximum number of queues: 1 to 16. There is no more than one for each switch thread, and one if the device was
        /// created for one. Absent: one for each switch thread.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queues: Option<u32>,
    },
    /// A network interface of the host, through a packet socket. The host still receives the interface's packets.
    #[serde(alias = "af-packet")]
    AfPacket {
        /// The name of the interface. Absent: the name of the port.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<Device>,
    },
    /// A network interface of the host, through XDP sockets. The host does not receive the packets of the queues that are used.
    /// If XDP cannot be used, the port works as one of `af_packet`, and `awaits` says why.
    #[serde(alias = "af-xdp")]
    AfXdp {
        /// The name of the interface. Absent: the name of the port.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<Device>,
        /// How many receive queues to use, from the first one on: 1 to 16. The host receives the packets of the others. Absent: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queues: Option<u32>,
    },
    /// Capture files on the daemon's host: one to replay, one to write, or both.
    Pcap {
        /// The absolute path of a capture to replay.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        read: Option<String>,
        /// The absolute path of a capture to write sent frames to. The file must not exist.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        write: Option<String>,
        /// How often to replay the capture; 0: until the port is removed.
        #[serde(default = "once")]
        repeat: u32,
        /// Packets to replay per second. Absent: as fast as the switch forwards them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rate: Option<u64>,
    },
    /// A VXLAN tunnel (RFC 7348) to a switch on another host.
    Vxlan {
        /// The address of the other host.
        remote: HostAddress,
        /// The number of the virtual network.
        vni: Vni,
        /// The address of this host. Absent: the one that the host's routes choose.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        local: Option<HostAddress>,
        /// The UDP port of both hosts. Absent: 4789.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        udp_port: Option<UdpPort>,
        /// The MTU for packets in the tunnel. Absent: the greatest that the path allows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mtu: Option<TunnelMtu>,
    },
    /// A GENEVE tunnel (RFC 8926) to a switch on another host.
    Geneve {
        /// The address of the other host.
        remote: HostAddress,
        /// The number of the virtual network.
        vni: Vni,
        /// The address of this host. Absent: the one that the host's routes choose.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        local: Option<HostAddress>,
        /// The UDP port of both hosts. Absent: 6081.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        udp_port: Option<UdpPort>,
        /// The MTU for packets in the tunnel. Absent: the greatest that the path allows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mtu: Option<TunnelMtu>,
    },
    /// The virtio network device of a virtual machine, over memory that the machine shares: this is its vhost-user back end.
    #[serde(alias = "vhost-user")]
    VhostUser {
        /// The absolute path of a Unix socket on the daemon's host.
        path: String,
        /// Which side listens at the socket.
        #[serde(default)]
        role: SocketRole,
        /// The maximum number of queue pairs: 1 to 16. The machine may use fewer. Absent: one for each switch thread.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queues: Option<u32>,
        /// How much memory the machine may have. Pages of it that the switch is the first to write to count as memory of the fabric.
        /// Absent: 16 GiB.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory: Option<Size>,
    },
    /// A memif interface: memory that is shared with a process on the daemon's host, such as VPP, or a DPDK application.
    Memif {
        /// The absolute path of the control socket.
        path: String,
        /// Whether the port waits for the other process or connects to it.
        role: SocketRole,
        /// The number of the interface. Both ends need the same one.
        #[serde(default)]
        id: u32,
        /// What a client must know. Absent: a server accepts every client.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secret: Option<MemifSecret>,
        /// The maximum number of rings in each direction: 1 to 16. The other process may have fewer. Absent: one for each switch
        /// thread.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queues: Option<u32>,
    },
    /// Nothing: sent frames are discarded, and none are received.
    Null {},
    /// A port of another switch, or of the same one. Both ends are created and removed together.
    Pipe {
        /// The other switch.
        switch: SwitchName,
        /// The name of the port at the other switch.
        port: PortName,
    },
    /// A port of a box that is attached to nothing.
    Box {
        /// The box.
        name: BoxName,
        /// The number of the box's port.
        port: u8,
    },
}

impl PortDriver {
    /// The name, as in a stack file.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Tap { .. } => "tap",
            Self::AfPacket { .. } => "af_packet",
            Self::AfXdp { .. } => "af_xdp",
            Self::Pcap { .. } => "pcap",
            Self::Vxlan { .. } => "vxlan",
            Self::Geneve { .. } => "geneve",
            Self::VhostUser { .. } => "vhost_user",
            Self::Memif { .. } => "memif",
            Self::Null {} => "null",
            Self::Pipe { .. } => "pipe",
            Self::Box { .. } => "box",
        }
    }

    /// The driver, as those see it who may not know its secret.
    pub fn without_secret(mut self) -> Self {
        if let Self::Memif { secret, .. } = &mut self {
            *secret = None;
        }
        self
    }

    /// The tunnel that the port is, if it is one.
    pub fn tunnel(&self) -> Option<Tunnel> {
        let (kind, (remote, local), vni, udp_port, mtu) = match *self {
            Self::Vxlan { remote, local, vni, udp_port, mtu } => {
                (TunnelKind::Vxlan, (remote, local), vni, udp_port, mtu)
            }
            Self::Geneve { remote, local, vni, udp_port, mtu } => {
                (TunnelKind::Geneve, (remote, local), vni, udp_port, mtu)
            }
            _ => return None,
        };
        Some(Tunnel::new(kind, (remote, local), vni, udp_port, mtu))
    }
}

/// A setting with which a port could never work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortSettingError {
    /// A number of queues that is not from 1 to 16.
    Queues(u32),
    /// No machine has so little memory, or so much.
    Memory(Size),
    /// A capture would never be replayed.
    Rate,
}

impl fmt::Display for PortSettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queues(queues) => {
                write!(f, "a port can't have {queues} queues: give 1 to 16, or leave the number out")
            }
            Self::Memory(memory) => write!(
                f,
                "no machine that has {memory} of memory can connect: give from {MIN_GUEST_MEMORY} to {MAX_GUEST_MEMORY}, at least \
                 what the machine has, or leave the memory out for 16G"
            ),
            Self::Rate => f.write_str(
                "at 0 packets per second, no packet is ever replayed: give another rate, or leave it out to replay as fast as the \
                 switch forwards",
            ),
        }
    }
}

impl std::error::Error for PortSettingError {}

/// Queues that a port may have.
const PORT_QUEUES: std::ops::RangeInclusive<u32> = 1..=16;

/// Memory of a machine at a vhost-user port: less than any has, and more than any has, but not so much that it uses up the
/// addresses of the fabric.
const MIN_GUEST_MEMORY: Size = Size(1 << 20);
const MAX_GUEST_MEMORY: Size = Size(16 << 40);

impl PortDriver {
    /// Checks the settings of a new port.
    ///
    /// # Errors
    ///
    /// The port could never work with one of them.
    pub fn check(&self) -> Result<(), PortSettingError> {
        let queues = match self {
            Self::Tap { queues, .. }
            | Self::AfXdp { queues, .. }
            | Self::VhostUser { queues, .. }
            | Self::Memif { queues, .. } => *queues,
            _ => None,
        };
        if let Some(queues) = queues.filter(|queues| !PORT_QUEUES.contains(queues)) {
            return Err(PortSettingError::Queues(queues));
        }
        match self {
            Self::VhostUser { memory: Some(memory), .. }
                if !(MIN_GUEST_MEMORY..=MAX_GUEST_MEMORY).contains(memory) =>
            {
                Err(PortSettingError::Memory(*memory))
            }
            Self::Pcap { rate: Some(0), .. } => Err(PortSettingError::Rate),
            _ => Ok(()),
        }
    }
}

/// The side of a Unix socket that a port has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SocketRole {
    /// The port listens, and peers connect, one after the other.
    #[default]
    Server,
    /// The peer listens, and the port connects, again if the connection ends.
    Client,
}

impl fmt::Display for SocketRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Server => "server",
            Self::Client => "client",
        })
    }
}

/// The other end of a port that has a connection of its own to it: a peer, a network device, or another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// No peer is connected, the device is down or has no carrier, or the last packets could not be sent to the other host.
    Waiting,
    /// A peer is connected. No packets pass yet.
    Connected,
    /// Packets pass.
    Up,
}

fn once() -> u32 {
    1
}

/// The name of a network device on the host: 1 to 15 bytes without white space, slashes and colons.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Device(String);

/// Text that is not a valid name of a network device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceError;

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a network device has 1 to 15 bytes, without white space and slashes")
    }
}

impl std::error::Error for DeviceError {}

impl Device {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Device {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        let plain = |byte: u8| byte.is_ascii_graphic() && !b"/:".contains(&byte);
        let good = (1..=15).contains(&text.len()) && text.bytes().all(plain) && ![".", ".."].contains(&text);
        if good { Ok(Self(text.to_string())) } else { Err(DeviceError) }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

as_text!(Device, "Device", "^[!-.0-9;-~]{1,15}$", "The name of a network device of the daemon's host.");

/// Limits on the frames that enter a switch through a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The share of the switch when ports compete.
    #[serde(default)]
    pub weight: Weight,
    /// The maximum number of frames per second. The excess is dropped as `capped`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
    /// The maximum number of bits per second. The excess is dropped as `capped`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits: Option<u64>,
    /// The maximum number of frames to group addresses per second: broadcasts and multicasts. The excess is dropped as
    /// `broadcasts_capped`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broadcasts: Option<u64>,
    /// The maximum number of addresses per second that a learning switch learns from the port. Frames from more new ones are
    /// dropped as `capped`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_addresses: Option<u64>,
    /// The only accepted source address. Absent: for a port of a box, the Ethernet address of that port; for others, any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<MacAddr>,
    /// Whether a box may send from any Ethernet address, as bridges do, instead of only from that of its port. It can then
    /// pretend to be another station. Without effect if `source` is given, and at ports without a box.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub transparent: bool,
    /// The only accepted IP addresses of senders, in IPv4, IPv6, ARP and neighbour discovery. Other protocols than these
    /// are then dropped. Empty: any.
    #[serde(default, skip_serializing_if = "BoundAddresses::is_empty")]
    pub bind_ip: BoundAddresses,
}

impl Limits {
    /// Whether nothing is limited.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The status of a switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchStatus {
    /// The name of the switch.
    pub name: SwitchName,
    /// How the switch forwards frames.
    pub mode: SwitchMode,
    /// Seconds after which a learned address expires.
    pub age_seconds: u32,
    /// The maximum number of addresses learned from one port.
    pub addresses_per_port: u32,
    /// The owner of the switch.
    #[serde(default)]
    pub owner: Owner,
    /// Other owners whose boxes and switches can be attached to the switch.
    #[serde(default)]
    pub shared_with: BTreeSet<Owner>,
    /// The stack that the switch belongs to.
    #[serde(default)]
    pub stack: Option<StackName>,
    /// When the switch was created.
    pub created: Time,
    /// Number of ports.
    pub ports: u32,
    /// Number of addresses in the table.
    pub addresses: u32,
    /// Traffic of all ports together, with those that were removed.
    pub traffic: Traffic,
    /// Current rates. `cores` is the CPU time of the switch itself.
    pub rates: Rates,
    /// Dropped frames of all ports by reason, with those that were removed.
    #[serde(default)]
    pub drops: BTreeMap<String, u64>,
    /// The flows of a steering switch, and how packets found them. Absent: the switch has another mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steering: Option<SteeringStatus>,
}

/// How the packets of a steering switch found their flows, since the switch was created or the fabric was restarted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SteeringStatus {
    /// Flows of users.
    pub flows: u32,
    /// Entries of OpenFlow controllers.
    pub controller_entries: u32,
    /// Packets that were looked up.
    pub lookups: u64,
    /// Those whose result the flow cache had. The others were looked up in the tables.
    pub cache_hits: u64,
    /// Results that left the flow cache because it had no room for them.
    pub cache_evictions: u64,
    /// Later fragments of IP packets that followed their first fragment.
    pub fragments_followed: u64,
    /// Later fragments whose first fragment was not known. Flows with conditions on ports do not match them.
    pub fragments_unknown: u64,
    /// Reports of removed entries to controllers that were lost because too many waited.
    pub lost_reports: u64,
}

/// All details of a switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchDetail {
    /// The status of the switch.
    #[serde(flatten)]
    pub status: SwitchStatus,
    /// The OpenFlow controllers.
    #[serde(default)]
    pub controllers: Vec<ControllerStatus>,
    /// The datapath identifier by which controllers know the switch, in hexadecimal digits. Absent without controllers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datapath: Option<String>,
    /// The ports, services and chains as controllers know them, by number. Empty without controllers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub openflow_numbers: Vec<OpenFlowNumber>,
    /// What the switch does while no controller is connected.
    #[serde(default)]
    pub fail_mode: FailMode,
    /// The ports, by name.
    pub port_list: Vec<SwitchPort>,
}

/// The status of a switch's port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchPort {
    /// The name of the port.
    pub name: PortName,
    /// The device, file, switch or box behind the port.
    pub driver: PortDriver,
    /// Limits on the frames that enter the switch through the port.
    pub limits: Limits,
    /// Whether the port receives frames to unknown addresses, in a static switch.
    #[serde(default)]
    pub default: bool,
    /// The stack that made the port. Absent: a client did.
    #[serde(default)]
    pub stack: Option<StackName>,
    /// Why the port does not work, for example because its device was removed or its box has ended. Absent while it
    /// works.
    #[serde(default)]
    pub fault: Option<String>,
    /// Whether a peer is connected to the port, its device is up and has a carrier, or its other host can be reached. Absent for
    /// ports without a connection of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkState>,
    /// What the port waits for, although it works, why it works by another driver, or which frames it has no room for. Absent
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits: Option<String>,
    /// The number of the port in OpenFlow, if the switch steers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openflow: Option<u32>,
    /// How many queues of its device the port uses, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<u32>,
    /// Traffic through the port.
    pub traffic: Traffic,
    /// Current rates.
    pub rates: Rates,
    /// Dropped frames by reason.
    #[serde(default)]
    pub drops: BTreeMap<String, u64>,
}

/// The port to assign an address to, in a static switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetAddress {
    /// The name of the port.
    pub port: PortName,
}

/// An entry of a switch's address table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AddressEntry {
    /// The address.
    pub mac: MacAddr,
    /// The port behind which the address is.
    pub port: PortName,
    /// How the switch got the address.
    pub kind: AddressKind,
    /// Seconds since a frame came from the address. Absent for a static address.
    #[serde(default)]
    pub age_seconds: Option<u32>,
}

/// How a switch got an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AddressKind {
    /// It was assigned.
    Static,
    /// It was learned from a frame.
    Learned,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn drivers_have_the_names_that_stand_for_them() {
        for driver in [
            json!({ "kind": "tap" }),
            json!({ "kind": "af_packet" }),
            json!({ "kind": "af_xdp" }),
            json!({ "kind": "pcap", "read": "/in.pcap" }),
            json!({ "kind": "vxlan", "remote": "192.0.2.2", "vni": 1 }),
            json!({ "kind": "geneve", "remote": "192.0.2.2", "vni": 1 }),
            json!({ "kind": "vhost_user", "path": "/vm.sock" }),
            json!({ "kind": "memif", "path": "/memif.sock", "role": "server" }),
            json!({ "kind": "null" }),
            json!({ "kind": "pipe", "switch": "wan", "port": "lan" }),
            json!({ "kind": "box", "name": "fw", "port": 0 }),
        ] {
            let parsed: PortDriver = serde_json::from_value(driver.clone()).unwrap();
            assert_eq!(driver["kind"], parsed.name());
        }
    }
}
