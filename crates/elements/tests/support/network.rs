//! A network in memory: pairs of interfaces joined by a cable, the kernel of a host, raw sockets and datagram sockets.
//!
//! Packets arrive at once and in order, and are queued until the receiver reads them. The kernel answers only ARP
//! requests and echo requests for its own address.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::rc::{Rc, Weak};

use element::{
    Datagrams, Descriptor, Device, DeviceRequest, Io, IoError, Listener, Socket, SocketAddress,
    SocketRequest, Stream,
};
use packet::{Batch, Pool};

use super::START;

/// Length of an Ethernet header.
const ETHERNET_LENGTH: usize = 14;
/// The default Ethernet address of the kernel's interface.
const KERNEL_ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// The first port of sockets without a local port.
const FIRST_PORT: u16 = 40_000;

/// Length of the longest frame that a device called `short...` sends.
const SHORT_LENGTH: usize = 1_514;

/// The IP protocol and UDP port to which nothing can be sent, because there is never room.
const FULL: u16 = 253;
/// The IP protocol and UDP port to which each packet fails.
const BROKEN: u16 = 254;

/// An address and port.
type Sender = (Ipv4Addr, u16);

/// All devices and sockets that are open.
#[derive(Default)]
pub(crate) struct Network {
    endpoints: RefCell<Vec<Weak<Endpoint>>>,
    opened: Cell<i32>,
}

/// The other side of an endpoint.
enum EndpointKind {
    /// Interface `name`; its frames arrive at the other end of the cable.
    Interface { name: String, receives: bool },
    /// The kernel, by frames or by IP packets.
    Kernel { ethernet: bool, name: String, link: [u8; 6], address: Option<Ipv4Addr> },
    /// This host's packets of one IP protocol.
    Raw { protocol: u8 },
    /// A UDP socket.
    Datagrams { local: Sender, remote: Cell<Option<Sender>> },
    /// A member of a multicast group.
    Member { group: Sender, local: Sender, hears_itself: bool },
}

/// Why an endpoint sends nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    Full,
    Broken,
}

impl EndpointKind {
    /// What keeps packets from being sent: devices are called `full...` or `broken...`, sockets have these ports.
    fn obstacle(&self) -> Option<Obstacle> {
        let by_name = |name: &str| match name {
            name if name.starts_with("full") => Some(Obstacle::Full),
            name if name.starts_with("broken") => Some(Obstacle::Broken),
            _ => None,
        };
        let by_number = |number| match number {
            FULL => Some(Obstacle::Full),
            BROKEN => Some(Obstacle::Broken),
            _ => None,
        };
        match self {
            EndpointKind::Interface { name, .. } | EndpointKind::Kernel { name, .. } => by_name(name),
            EndpointKind::Raw { protocol } => by_number(u16::from(*protocol)),
            EndpointKind::Datagrams { remote, .. } => by_number(remote.get()?.1),
            EndpointKind::Member { group, .. } => by_number(group.1),
        }
    }
}

/// An open device or socket.
struct Endpoint {
    descriptor: Descriptor,
    kind: EndpointKind,
    arrived: RefCell<VecDeque<(Vec<u8>, Sender)>>,
    last_sender: Cell<Option<Sender>>,
    /// Packets that were too long since the last question.
    refused: Cell<usize>,
    /// Packets that were too long to be received, since this was asked.
    unreceived: Cell<usize>,
}

/// An endpoint together with the network that it is in.
struct Handle {
    network: Rc<Network>,
    endpoint: Rc<Endpoint>,
}

impl Network {
    /// Opens a device.
    pub(crate) fn device(self: &Rc<Network>, request: &DeviceRequest) -> Box<dyn Device> {
        Box::new(self.open(match request {
            DeviceRequest::Interface { name, receive, .. } => {
                EndpointKind::Interface { name: name.clone(), receives: *receive }
            }
            // Nothing comes back. Port 0 takes everything.
            DeviceRequest::Steered { port, .. } => EndpointKind::Interface {
                name: match port.as_str() {
                    "1" => "full0".into(),
                    "2" => "broken0".into(),
                    "3" => "short0".into(),
                    _ => format!("steered {port}"),
                },
                receives: false,
            },
            DeviceRequest::Tunnel { ethernet, name, address, link, .. } => EndpointKind::Kernel {
                ethernet: *ethernet,
                name: name.clone(),
                link: link.unwrap_or(KERNEL_ADDRESS),
                address: address.map(|(address, _)| address),
            },
            DeviceRequest::Raw { protocol, .. } => EndpointKind::Raw { protocol: *protocol },
        }))
    }

    /// Opens a socket; `None` if it is neither a UDP socket nor one that waits for TCP connections, which never come.
    pub(crate) fn socket(self: &Rc<Network>, request: &SocketRequest) -> Option<Socket> {
        if let SocketAddress::Tcp(address, port) = request.address {
            self.opened.set(self.opened.get() + 1);
            let waiting =
                Waiting { descriptor: Descriptor(self.opened.get()), local: format!("{address}:{port}") };
            return (!request.client).then(|| Socket::Listener(Box::new(waiting)));
        }
        let free = (Ipv4Addr::LOCALHOST, FIRST_PORT + u16::try_from(self.opened.get()).ok()?);
        let local = match request.local {
            Some(SocketAddress::Udp(address, port)) => (address, if port == 0 { free.1 } else { port }),
            _ => free,
        };
        let kind = match request.address {
            SocketAddress::Udp(address, port) if request.client => {
                EndpointKind::Datagrams { local, remote: Cell::new(Some((address, port))) }
            }
            SocketAddress::Udp(address, port) => {
                EndpointKind::Datagrams { local: (address, port), remote: Cell::new(None) }
            }
            SocketAddress::Multicast(address, port) => {
                let hears_itself = request.multicast_loop && request.local.is_none();
                EndpointKind::Member { group: (address, port), local, hears_itself }
            }
            _ => return None,
        };
        Some(Socket::Datagrams(Box::new(self.open(kind))))
    }

    fn open(self: &Rc<Network>, kind: EndpointKind) -> Handle {
        self.opened.set(self.opened.get() + 1);
        let descriptor = Descriptor(self.opened.get());
        let (arrived, last_sender) = (RefCell::default(), Cell::default());
        let (refused, unreceived) = (Cell::default(), Cell::default());
        let endpoint = Rc::new(Endpoint { descriptor, kind, arrived, last_sender, refused, unreceived });
        self.endpoints.borrow_mut().push(Rc::downgrade(&endpoint));
        Handle { network: self.clone(), endpoint }
    }

    fn endpoints(&self) -> Vec<Rc<Endpoint>> {
        self.endpoints.borrow().iter().filter_map(Weak::upgrade).collect()
    }

    /// The watched descriptors that are ready as requested. Writing is possible unless the endpoint is full.
    pub(crate) fn ready(&self, watched: &[(Descriptor, bool, bool)]) -> Vec<Descriptor> {
        let has_arrived = |descriptor| {
            let mut all = self.endpoints().into_iter();
            all.any(|endpoint| endpoint.descriptor == descriptor && !endpoint.arrived.borrow().is_empty())
        };
        let is_full = |descriptor| {
            let mut all = self.endpoints().into_iter();
            all.any(|endpoint| {
                endpoint.descriptor == descriptor && endpoint.kind.obstacle() == Some(Obstacle::Full)
            })
        };
        let ready = watched.iter().filter(|(descriptor, read, write)| {
            *write && !is_full(*descriptor) || *read && has_arrived(*descriptor)
        });
        ready.map(|(descriptor, _, _)| *descriptor).collect()
    }

    /// Whether packets are waiting to be read.
    pub(crate) fn is_waiting(&self) -> bool {
        self.endpoints().iter().any(|endpoint| !endpoint.arrived.borrow().is_empty())
    }

    /// Delivers a packet of an endpoint, to `to` if the packet has a destination of its own.
    fn send(&self, from: &Endpoint, bytes: &[u8], to: Option<Ipv4Addr>) {
        let deliver = |bytes: &[u8], sender: Sender, is_receiver: &dyn Fn(&Endpoint) -> bool| {
            for endpoint in self.endpoints().iter().filter(|endpoint| is_receiver(endpoint)) {
                endpoint.arrived.borrow_mut().push_back((bytes.to_vec(), sender));
            }
        };
        let unknown = (Ipv4Addr::UNSPECIFIED, 0);
        match &from.kind {
            EndpointKind::Interface { name, .. } => {
                let other_end = other_end(name);
                deliver(bytes, unknown, &|endpoint| match &endpoint.kind {
                    EndpointKind::Interface { name, receives } => *receives && *name == other_end,
                    _ => false,
                });
            }
            EndpointKind::Kernel { name, .. } if name.starts_with("mirror") => {
                let reversed: Vec<u8> = bytes.iter().rev().copied().collect();
                deliver(&reversed, unknown, &|endpoint| endpoint.descriptor == from.descriptor);
            }
            EndpointKind::Kernel { ethernet, link, address, .. } => {
                let Some(address) = *address else { return };
                let reply =
                    if *ethernet { frame_reply(bytes, *link, address) } else { echo_reply(bytes, address) };
                if let Some(reply) = reply {
                    deliver(&reply, unknown, &|endpoint| endpoint.descriptor == from.descriptor);
                }
            }
            EndpointKind::Raw { protocol } => {
                let is_receiver = |endpoint: &Endpoint| match endpoint.kind {
                    EndpointKind::Raw { protocol: other } => other == *protocol,
                    _ => false,
                };
                deliver(bytes, unknown, &is_receiver);
                if let Some(reply) = echo_reply(bytes, Ipv4Addr::LOCALHOST) {
                    deliver(&reply, unknown, &is_receiver);
                }
            }
            EndpointKind::Datagrams { local, remote } => {
                let Some((address, port)) = remote.get() else { return };
                let receiver = (to.unwrap_or(address), port);
                deliver(
                    bytes,
                    *local,
                    &|endpoint| matches!(endpoint.kind, EndpointKind::Datagrams { local, .. } if local == receiver),
                );
            }
            EndpointKind::Member { group, local, hears_itself } => deliver(bytes, *local, &|endpoint| {
                let is_member =
                    matches!(endpoint.kind, EndpointKind::Member { group: other, .. } if other == *group);
                is_member && (*hears_itself || endpoint.descriptor != from.descriptor)
            }),
        }
    }
}

/// The interface at the other end of the cable: `eth0` and `eth1` are joined, `eth2` and `eth3`, and so on.
fn other_end(name: &str) -> String {
    let number = name.strip_prefix("eth").and_then(|number| number.parse::<u32>().ok());
    number.map_or_else(|| name.to_string(), |number| format!("eth{}", number ^ 1))
}

/// The Internet checksum.
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!sum as u16).to_be_bytes()
}

/// The answer to an echo request for this address.
fn echo_reply(packet: &[u8], address: Ipv4Addr) -> Option<Vec<u8>> {
    let header = usize::from(packet.first()? & 15) * 4;
    let is_request = packet.get(9)? == &1 && packet.get(header)? == &8;
    if !is_request || packet.get(16..20)? != address.octets() {
        return None;
    }
    let mut reply = packet.to_vec();
    // The checksum of the IP header covers the same words in another order, so it stays.
    reply[12..16].copy_from_slice(&packet[16..20]);
    reply[16..20].copy_from_slice(&packet[12..16]);
    reply[header] = 0;
    reply.get_mut(header + 2..header + 4)?.fill(0);
    let sum = checksum(&reply[header..]);
    reply[header + 2..header + 4].copy_from_slice(&sum);
    Some(reply)
}

/// The answer to an ARP request for this address, or to an echo request in a frame.
fn frame_reply(frame: &[u8], link: [u8; 6], address: Ipv4Addr) -> Option<Vec<u8>> {
    let (header, payload) = frame.split_at_checked(ETHERNET_LENGTH)?;
    let (sender, kind) = (&header[6..12], &header[12..14]);
    let payload = match kind {
        [8, 0] if header[..6] == link => echo_reply(payload, address)?,
        [8, 6] if payload.get(7)? == &1 && payload.get(24..28)? == address.octets() => {
            let (hardware, neighbour) = (&payload[..7], &payload[8..18]);
            [hardware, &[2], &link, &address.octets(), neighbour].concat()
        }
        _ => return None,
    };
    Some([sender, &link, kind, &payload].concat())
}

impl Device for Handle {
    fn receive(&mut self, pool: &Pool, most: usize, into: &mut Batch) -> Result<(), IoError> {
        let mut arrived = self.endpoint.arrived.borrow_mut();
        let is_narrow = self.name().starts_with("narrow");
        for _ in 0..most {
            let Some((bytes, _)) = arrived.front() else { break };
            if is_narrow && bytes.len() > SHORT_LENGTH {
                self.endpoint.unreceived.set(self.endpoint.unreceived.get() + 1);
                arrived.pop_front();
                continue;
            }
            let Some(mut packet) = pool.allocate(bytes.len()) else { break };
            packet.data_mut().copy_from_slice(bytes);
            packet.set_timestamp(START);
            into.push(packet);
            arrived.pop_front();
        }
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch) -> Result<(), IoError> {
        match self.endpoint.kind.obstacle() {
            Some(Obstacle::Full) => {}
            Some(Obstacle::Broken) => return Err(IoError::Failed("it is broken".into())),
            None => {
                let is_short = self.name().starts_with("short");
                for packet in batch.drain() {
                    if is_short && packet.len() > SHORT_LENGTH {
                        self.endpoint.refused.set(self.endpoint.refused.get() + 1);
                    } else {
                        self.network.send(&self.endpoint, packet.data(), None);
                    }
                }
            }
        }
        Ok(())
    }

    fn take_refused(&mut self) -> usize {
        self.endpoint.refused.take()
    }

    fn take_unreceived(&mut self) -> usize {
        self.endpoint.unreceived.take()
    }

    fn descriptor(&self) -> Option<Descriptor> {
        Some(self.endpoint.descriptor)
    }

    fn name(&self) -> String {
        match &self.endpoint.kind {
            EndpointKind::Interface { name, .. } | EndpointKind::Kernel { name, .. } => name.clone(),
            _ => String::new(),
        }
    }
}

/// A socket that waits for connections.
struct Waiting {
    descriptor: Descriptor,
    local: String,
}

impl Listener for Waiting {
    fn accept(&mut self) -> Result<Option<Box<dyn Stream>>, IoError> {
        Ok(None)
    }

    fn descriptor(&self) -> Descriptor {
        self.descriptor
    }

    fn local(&self) -> String {
        self.local.clone()
    }
}

impl Datagrams for Handle {
    fn receive(&mut self, into: &mut [u8]) -> Result<Io, IoError> {
        let Some((bytes, sender)) = self.endpoint.arrived.borrow_mut().pop_front() else {
            return Ok(Io::Wait);
        };
        let count = bytes.len().min(into.len());
        into[..count].copy_from_slice(&bytes[..count]);
        self.endpoint.last_sender.set(Some(sender));
        Ok(Io::Done(bytes.len()))
    }

    fn sender(&self) -> Option<Sender> {
        self.endpoint.last_sender.get()
    }

    fn connect_to_sender(&mut self) {
        if let EndpointKind::Datagrams { remote, .. } = &self.endpoint.kind {
            remote.set(self.endpoint.last_sender.get());
        }
    }

    fn send(&mut self, bytes: &[u8], to: Option<Ipv4Addr>) -> Result<Io, IoError> {
        match self.endpoint.kind.obstacle() {
            Some(Obstacle::Full) => return Ok(Io::Wait),
            Some(Obstacle::Broken) => return Err(IoError::Failed("it is broken".into())),
            None => self.network.send(&self.endpoint, bytes, to),
        }
        Ok(Io::Done(bytes.len()))
    }

    fn descriptor(&self) -> Descriptor {
        self.endpoint.descriptor
    }
}
