//! The settings of a switch port, as command-line options and as entries of a stack file.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use api::{
    AddPort, BoundAddresses, CapturePoint, Device, HostAddress, IpPrefix, IpPrefixError, Limits, MacAddr,
    MemifSecret, PortDriver, PortName, Size, SocketRole, TunnelMtu, UdpPort, Vni, Weight,
};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::error::FileError;

/// The drivers of switch ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub(crate) enum Driver {
    /// A tap device of the host.
    Tap,
    /// A network interface of the host.
    #[serde(alias = "af-packet")]
    #[value(alias = "af-packet")]
    AfPacket,
    /// A network interface of the host, taken from it by XDP sockets.
    #[serde(alias = "af-xdp")]
    #[value(alias = "af-xdp")]
    AfXdp,
    /// A VXLAN tunnel to another host.
    Vxlan,
    /// A GENEVE tunnel to another host.
    Geneve,
    /// Capture files to read and write.
    Pcap,
    /// Memory that is shared with VPP, a DPDK application, or another switch.
    Memif,
    /// The network device of a virtual machine, by vhost-user.
    #[serde(alias = "vhost-user")]
    #[value(alias = "vhost-user")]
    VhostUser,
    /// Nothing: frames to it are discarded.
    Null,
    /// A port of another switch.
    Pipe,
    /// A port of a box.
    Box,
}

/// The settings of a port.
#[derive(Args, Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PortOptions {
    /// Driver of the port.
    #[arg(long, value_enum)]
    driver: Driver,
    /// tap, af_packet, af_xdp: name of the host's interface [default: the name of the port]
    #[arg(long)]
    device: Option<Device>,
    /// af_xdp: number of receive queues to use, from the first one on [default: all]. tap: maximum number of queues;
    /// memif: of rings in each direction; vhost_user: of queue pairs [default: one for each switch thread]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    queues: Option<u32>,
    /// vxlan, geneve: address of the other host.
    #[arg(long, value_name = "ADDRESS")]
    remote: Option<HostAddress>,
    /// vxlan, geneve: number of the virtual network, from 0 to 16777215.
    #[arg(long, value_name = "N")]
    vni: Option<Vni>,
    /// vxlan, geneve: address of this host [default: by the host's routes]
    #[arg(long, value_name = "ADDRESS")]
    local: Option<HostAddress>,
    /// vxlan, geneve: UDP port of both hosts [default: 4789 for vxlan, 6081 for geneve]
    #[arg(long, value_name = "N")]
    udp_port: Option<UdpPort>,
    /// vxlan, geneve: MTU for packets in the tunnel [default: the greatest that the path allows]
    #[arg(long, value_name = "BYTES")]
    mtu: Option<TunnelMtu>,
    /// pcap: capture file to send into the switch.
    #[arg(long, value_name = "FILE")]
    read: Option<PathBuf>,
    /// pcap: capture file to write.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// pcap: how often to play the capture; 0 repeats it until the port is removed.
    #[arg(long, value_name = "N")]
    repeat: Option<u32>,
    /// pcap: packets per second [default: as fast as the switch takes them]
    #[arg(long, value_name = "N")]
    rate: Option<u64>,
    /// memif, vhost_user: path of the Unix socket.
    #[arg(long, value_name = "SOCKET")]
    path: Option<PathBuf>,
    /// memif, vhost_user: whether the port listens at the socket or connects to it [default for vhost_user: server]
    #[arg(long, value_name = "server|client", value_parser = parse_role)]
    role: Option<SocketRole>,
    /// vhost_user: how much memory the machine may have [default: 16G]
    #[arg(long, value_name = "SIZE")]
    memory: Option<Size>,
    /// memif: number of the interface, the same at both ends [default: 0]
    #[arg(long, value_name = "N")]
    id: Option<u32>,
    /// memif: what a client must know [default: a server accepts every client]
    #[arg(long, value_name = "TEXT")]
    secret: Option<MemifSecret>,
    /// pipe: other end, as SWITCH/PORT. box: port of a box, as BOX:N.
    #[arg(long, value_name = "SWITCH/PORT|BOX:N")]
    to: Option<CapturePoint>,
    /// Static switch: Ethernet address behind this port. May be repeated.
    #[arg(long = "address", value_name = "MAC")]
    #[serde(default)]
    addresses: Vec<MacAddr>,
    /// Static switch: send frames to unknown addresses to this port.
    #[arg(long)]
    #[serde(default)]
    default: bool,
    /// Weight when ports compete for the switch [default: 100]
    #[arg(long, value_name = "N")]
    weight: Option<Weight>,
    /// Limit of frames per second from this port into the switch.
    #[arg(long, value_name = "N")]
    max_frames: Option<u64>,
    /// Limit of bits per second from this port into the switch.
    #[arg(long, value_name = "N")]
    max_bits: Option<u64>,
    /// Limit of broadcasts and multicasts per second from this port into the switch.
    #[arg(long, value_name = "N")]
    max_broadcasts: Option<u64>,
    /// Learning switch: limit of new addresses per second from this port.
    #[arg(long, value_name = "N")]
    max_new_addresses: Option<u64>,
    /// Accept only frames with this source address [default: any; for a box, the address of its port]
    #[arg(long, value_name = "MAC")]
    source: Option<MacAddr>,
    /// box: let the box send from any Ethernet address, as bridges do.
    #[arg(long)]
    #[serde(default)]
    transparent: bool,
    /// Accept only frames from these IP addresses or prefixes, in IPv4, IPv6, ARP and neighbour discovery.
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    #[serde(default)]
    bind_ip: Vec<IpPrefix>,
}

/// Why the settings of a port are rejected.
#[derive(Debug)]
pub(crate) enum PortOptionsError {
    /// A `pcap` port has no file.
    NoCapture(PortName),
    /// A `memif` port has no socket or no role.
    NoMemif(PortName),
    /// A `vhost_user` port has no socket.
    NoVhostUser(PortName),
    /// A `pipe` port has no other end.
    NoPipeEnd(PortName),
    /// A `box` port names no port of a box.
    NoBoxPort(PortName),
    /// A tunnel lacks the other host or the network.
    NoTunnelEnd(PortName),
    /// The driver does not have this option.
    Unsupported {
        /// The port.
        port: PortName,
        /// Its driver.
        driver: Driver,
        /// The option.
        option: &'static str,
    },
    /// The IP addresses cannot be bound to the port.
    BindIp(PortName, IpPrefixError),
    /// The path of a file can't be made absolute.
    Folder(FileError),
}

impl fmt::Display for PortOptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCapture(port) => write!(f, "port {port}: a pcap port needs --read, --write or both"),
            Self::NoMemif(port) => write!(
                f,
                "port {port}: a memif port needs --path SOCKET, and --role server or --role client: the one that the \
                 process at the other end does not have"
            ),
            Self::NoVhostUser(port) => write!(f, "port {port}: a vhost_user port needs --path SOCKET"),
            Self::NoPipeEnd(port) => write!(f, "port {port}: a pipe needs --to SWITCH/PORT, its other end"),
            Self::NoBoxPort(port) => write!(f, "port {port}: a box needs --to BOX:N, the port of the box"),
            Self::NoTunnelEnd(port) => {
                write!(
                    f,
                    "port {port}: a tunnel needs --remote ADDRESS and --vni N, the other host and the network"
                )
            }
            Self::Unsupported { port, driver, option } => {
                let driver = driver.to_possible_value();
                let driver = driver.as_ref().map_or("", |value| value.get_name());
                write!(f, "port {port}: the driver {driver} has no {option:?}")
            }
            Self::BindIp(port, _) => write!(f, "port {port}: --bind-ip is refused"),
            Self::Folder(error) => error.fmt(f),
        }
    }
}

impl Error for PortOptionsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // The message is the cause's.
            Self::Folder(error) => error.source(),
            Self::BindIp(_, error) => Some(error),
            Self::NoCapture(_)
            | Self::NoMemif(_)
            | Self::NoVhostUser(_)
            | Self::NoPipeEnd(_)
            | Self::NoBoxPort(_)
            | Self::NoTunnelEnd(_)
            | Self::Unsupported { .. } => None,
        }
    }
}

impl PortOptions {
    /// The request that adds the port. Relative paths start at `folder`.
    pub(crate) fn add(&self, name: PortName, folder: &Path) -> Result<AddPort, PortOptionsError> {
        self.check(&name)?;
        let path = |path: &Option<PathBuf>| {
            let absolute = path.as_ref().map(|path| std::path::absolute(folder.join(path)));
            let absolute = absolute
                .transpose()
                .map_err(|error| PortOptionsError::Folder(FileError::new(folder, error)))?;
            Ok::<_, PortOptionsError>(absolute.map(|path| path.to_string_lossy().into_owned()))
        };
        let driver = match (self.driver, self.to.clone()) {
            (Driver::Tap, _) => PortDriver::Tap { device: self.device.clone(), queues: self.queues },
            (Driver::AfPacket, _) => PortDriver::AfPacket { device: self.device.clone() },
            (Driver::AfXdp, _) => PortDriver::AfXdp { device: self.device.clone(), queues: self.queues },
            (Driver::Pcap, _) if self.read.is_none() && self.write.is_none() => {
                return Err(PortOptionsError::NoCapture(name));
            }
            (Driver::Pcap, _) => PortDriver::Pcap {
                read: path(&self.read)?,
                write: path(&self.write)?,
                repeat: self.repeat.unwrap_or(1),
                rate: self.rate,
            },
            (Driver::Vxlan | Driver::Geneve, _) => {
                let (Some(remote), Some(vni)) = (self.remote, self.vni) else {
                    return Err(PortOptionsError::NoTunnelEnd(name));
                };
                let (local, udp_port, mtu) = (self.local, self.udp_port, self.mtu);
                match self.driver {
                    Driver::Vxlan => PortDriver::Vxlan { remote, vni, local, udp_port, mtu },
                    _ => PortDriver::Geneve { remote, vni, local, udp_port, mtu },
                }
            }
            (Driver::Memif, _) => match (path(&self.path)?, self.role) {
                (Some(path), Some(role)) => {
                    let (id, secret) = (self.id.unwrap_or(0), self.secret.clone());
                    PortDriver::Memif { path, role, id, secret, queues: self.queues }
                }
                _ => return Err(PortOptionsError::NoMemif(name)),
            },
            (Driver::VhostUser, _) => PortDriver::VhostUser {
                path: path(&self.path)?.ok_or_else(|| PortOptionsError::NoVhostUser(name.clone()))?,
                role: self.role.unwrap_or_default(),
                queues: self.queues,
                memory: self.memory,
            },
            (Driver::Null, _) => PortDriver::Null {},
            (Driver::Pipe, Some(CapturePoint::Switch(switch, port))) => PortDriver::Pipe { switch, port },
            (Driver::Pipe, _) => return Err(PortOptionsError::NoPipeEnd(name)),
            (Driver::Box, Some(CapturePoint::Box(name, port))) => PortDriver::Box { name, port },
            (Driver::Box, _) => return Err(PortOptionsError::NoBoxPort(name)),
        };
        let bind_ip = BoundAddresses::try_from(self.bind_ip.clone());
        let limits = Limits {
            weight: self.weight.unwrap_or_default(),
            frames: self.max_frames,
            bits: self.max_bits,
            broadcasts: self.max_broadcasts,
            new_addresses: self.max_new_addresses,
            source: self.source,
            transparent: self.transparent,
            bind_ip: bind_ip.map_err(|error| PortOptionsError::BindIp(name.clone(), error))?,
        };
        Ok(AddPort { name, driver, addresses: self.addresses.clone(), default: self.default, limits })
    }

    /// Rejects options that the driver does not support.
    fn check(&self, name: &PortName) -> Result<(), PortOptionsError> {
        let devices: &[Driver] = &[Driver::Tap, Driver::AfPacket, Driver::AfXdp];
        let captures: &[Driver] = &[Driver::Pcap];
        let tunnels: &[Driver] = &[Driver::Vxlan, Driver::Geneve];
        let sockets: &[Driver] = &[Driver::Memif, Driver::VhostUser];
        let given = [
            ("device", self.device.is_some(), devices),
            (
                "queues",
                self.queues.is_some(),
                &[Driver::Tap, Driver::AfXdp, Driver::Memif, Driver::VhostUser],
            ),
            ("remote", self.remote.is_some(), tunnels),
            ("vni", self.vni.is_some(), tunnels),
            ("local", self.local.is_some(), tunnels),
            ("udp_port", self.udp_port.is_some(), tunnels),
            ("mtu", self.mtu.is_some(), tunnels),
            ("read", self.read.is_some(), captures),
            ("write", self.write.is_some(), captures),
            ("repeat", self.repeat.is_some(), captures),
            ("rate", self.rate.is_some(), captures),
            ("path", self.path.is_some(), sockets),
            ("role", self.role.is_some(), sockets),
            ("memory", self.memory.is_some(), &[Driver::VhostUser]),
            ("id", self.id.is_some(), &[Driver::Memif]),
            ("secret", self.secret.is_some(), &[Driver::Memif]),
            ("to", self.to.is_some(), &[Driver::Pipe, Driver::Box]),
            ("transparent", self.transparent, &[Driver::Box]),
        ];
        match given.iter().find(|(_, is_given, drivers)| *is_given && !drivers.contains(&self.driver)) {
            Some((option, ..)) => {
                Err(PortOptionsError::Unsupported { port: name.clone(), driver: self.driver, option })
            }
            None => Ok(()),
        }
    }
}

fn parse_role(text: &str) -> Result<SocketRole, &'static str> {
    match text {
        "server" => Ok(SocketRole::Server),
        "client" => Ok(SocketRole::Client),
        _ => Err("a port is the server or the client of its socket"),
    }
}
