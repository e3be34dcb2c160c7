//! Network devices of this host: interfaces, tunnels and raw sockets.

use std::cell::Cell;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::rc::Rc;

use capture::LinkType;
use element::{Descriptor, Device, DeviceRequest, IoError};
use packet::socket_filter::FilterInstruction;
use packet::{Batch, Packet, PacketType, Pool, Timestamp};
use switch::device::{
    InterfaceReader, MAX_READ, PacketSocket, PacketSocketSettings, RawSocket, ReadFrame, Tunnel,
    TunnelSettings, attach_filter,
};

use super::bindings;
use super::captures::{CaptureFiles, CaptureUse};
use super::descriptors::Descriptors;
use super::device_parts::{BURST, HEADROOM, device_error, interface_error};
use super::files::{ReadProgress, io_error};
use super::filter::KernelFilter;
use super::xdp::XdpInterfaces;

/// The largest packet that a tunnel can carry, in bytes.
const MAX_TUNNEL_PACKET: usize = 65_535;
/// Receive buffer of an interface in bytes: about 3,700 frames at the default SNAPLEN.
const RECEIVE_BUFFER: usize = 1 << 23;
/// Frames of an interface up to this length, at least, need no system call. They are cut to SNAPLEN when they are read, because
/// a checksum covers the whole frame.
const SLOT: usize = 2046;

/// What the devices of an environment share.
#[derive(Default)]
pub(super) struct Devices {
    pub(super) xdp: XdpInterfaces,
    captures: CaptureFiles,
}

/// Opens a device. Of an interface, several shards receive only what their filter accepts.
pub(super) fn open(
    request: &DeviceRequest,
    descriptors: &Descriptors,
    Devices { xdp, captures }: &Devices,
    filter: Option<Vec<FilterInstruction>>,
    progress: &ReadProgress,
) -> Result<Box<dyn Device>, IoError> {
    if let Some((name, usage)) = capture_use(request)
        && let Some(files) = bindings::captures(name)
    {
        if filter.is_some() {
            return Err(IoError::Unsupported("the driver pcap with several shards"));
        }
        return captures.open(name, &files, usage, descriptors, progress);
    }
    match request {
        DeviceRequest::Interface { name, promiscuous, outbound, snap, receive, exclusive, xdp: method } => {
            let (interface, by_xdp) = bindings::open(name, *method)?;
            let settings = PacketSocketSettings {
                promiscuous: *promiscuous,
                outbound: *outbound,
                snap: *snap,
                receive: if *receive { RECEIVE_BUFFER } else { 0 },
                gso: *receive,
                fits: false,
            };
            let open = || {
                if by_xdp
                    && let Some(device) = xdp.open(interface, settings, filter.is_some(), descriptors)?
                {
                    return Ok(device);
                }
                InterfaceDevice::open(interface, settings, *exclusive, descriptors, filter)
            };
            open().map_err(|error| match error {
                IoError::NotFound(_) | IoError::Failed(_)
                    if name == interface && bindings::is_foreign(name) =>
                {
                    bindings::unbound(name)
                }
                // The message begins with the name in the configuration.
                IoError::NotFound(text) if name != interface => {
                    IoError::NotFound(format!("{interface}: {text}"))
                }
                IoError::Failed(text) if name != interface => IoError::Failed(format!("{interface}: {text}")),
                error => error,
            })
        }
        DeviceRequest::Steered { .. } => Err(IoError::Unsupported("a steering switch")),
        DeviceRequest::Tunnel { ethernet, name, address, link, gateway, mtu } => {
            let settings = TunnelSettings {
                ethernet: *ethernet,
                name: bindings::open_tap(name)?.to_string(),
                address: *address,
                mac: *link,
                gateway: *gateway,
                mtu: *mtu,
            };
            let tunnel = Tunnel::open(&settings).map_err(|error| device_error(&error, "CAP_NET_ADMIN"))?;
            // An Ethernet header, and possibly a VLAN tag, are added to the MTU.
            let longest = if *mtu == 0 { MAX_TUNNEL_PACKET } else { (*mtu + 18).min(MAX_TUNNEL_PACKET) };
            let name = tunnel.name().to_string();
            Ok(SinglePacketDevice::boxed(descriptors, tunnel, &name, longest, *link))
        }
        DeviceRequest::Raw { protocol, port, snap } => {
            let socket =
                RawSocket::open(*protocol, *port).map_err(|error| device_error(&error, "CAP_NET_RAW"))?;
            Ok(SinglePacketDevice::boxed(descriptors, socket, "", *snap, None))
        }
    }
}

/// The name of a device that can stand for captures, and what is done with it.
fn capture_use(request: &DeviceRequest) -> Option<(&str, CaptureUse)> {
    match request {
        DeviceRequest::Interface { name, snap, receive, .. } => {
            let (receives, sends) = (*receive, !*receive);
            Some((name, CaptureUse { link: LinkType::ETHERNET, receives, sends, snap: *snap }))
        }
        DeviceRequest::Tunnel { ethernet, name, .. } => {
            let link = if *ethernet { LinkType::ETHERNET } else { LinkType::RAW };
            Some((name, CaptureUse { link, receives: true, sends: true, snap: MAX_TUNNEL_PACKET }))
        }
        DeviceRequest::Steered { .. } | DeviceRequest::Raw { .. } => None,
    }
}

/// A network interface as an element's device. Frames that the kernel joined are received as the packets that they were joined
/// from.
struct InterfaceDevice {
    interface: InterfaceReader,
    /// Keeps received frames from the host's kernel.
    _filter: Option<KernelFilter>,
    /// Keeps the descriptor registered.
    _socket: Rc<dyn AsFd>,
    descriptor: Descriptor,
    name: String,
    /// Maximum number of bytes to keep of a frame.
    snap: usize,
    /// Buffer for a frame that is longer.
    whole: Vec<u8>,
    /// Joined frames that can't be cut, since the last call of `take_unreceived`.
    unreceived: usize,
    /// Packets dropped because the pool was exhausted. They are read nevertheless, so that the interface does not
    /// stall.
    no_buffer: u64,
    /// Frames that the kernel dropped.
    missed: Cell<u64>,
}

impl InterfaceDevice {
    fn open(
        name: &str,
        settings: PacketSocketSettings,
        exclusive: bool,
        descriptors: &Descriptors,
        filter: Option<Vec<FilterInstruction>>,
    ) -> Result<Box<dyn Device>, IoError> {
        let open = || {
            let settings = PacketSocketSettings { snap: settings.snap.max(SLOT), ..settings };
            let socket = PacketSocket::open_descriptor(name, settings)?;
            if let Some(code) = filter.filter(|_| settings.receive > 0) {
                attach_filter(&socket, code.iter().map(|one| (one.code, one.jt, one.jf, one.k)))?;
            }
            PacketSocket::from_descriptor(socket, settings)
        };
        let interface = open().map_err(|error| device_error(&error, "CAP_NET_RAW"))?;
        let filter = exclusive.then(|| KernelFilter::install(name)).transpose()?;
        let socket = Rc::new(interface.socket());
        let descriptor = descriptors.register(&socket);
        Ok(Box::new(InterfaceDevice {
            interface: InterfaceReader::new(interface),
            _filter: filter,
            _socket: socket,
            descriptor,
            name: name.into(),
            snap: settings.snap,
            whole: Vec::new(),
            unreceived: 0,
            no_buffer: 0,
            missed: Cell::new(0),
        }))
    }
}

impl InterfaceDevice {
    fn failure(&self, error: &io::Error) -> IoError {
        interface_error(error, self.is_gone())
    }
}

/// A packet with the first bytes of a frame, at most `snap`. `whole` is a buffer for longer frames.
fn packet(pool: &Pool, frame: &mut ReadFrame<'_>, snap: usize, whole: &mut Vec<u8>) -> Option<Packet> {
    let length = frame.length();
    let kept = length.min(snap);
    let mut packet = pool.allocate_with(HEADROOM, kept)?;
    if kept == length {
        frame.copy_to(packet.data_mut());
    } else {
        whole.resize(whole.len().max(length), 0);
        frame.copy_to(whole);
        packet.data_mut().copy_from_slice(whole.get(..kept)?);
    }
    packet.set_packet_type(PacketType::from_number(frame.packet_type));
    let (seconds, nanos) = frame.time;
    packet.set_timestamp(Timestamp::from_parts(seconds, nanos));
    packet.set_extra_length(u32::try_from(frame.cut() + length - kept).unwrap_or(u32::MAX));
    packet.set_mac(0);
    Some(packet)
}

impl Device for InterfaceDevice {
    fn receive(&mut self, pool: &Pool, most: usize, into: &mut Batch) -> Result<(), IoError> {
        let InterfaceDevice { interface, snap, whole, no_buffer, .. } = self;
        let read =
            interface.receive(most, MAX_READ, |mut frame| match packet(pool, &mut frame, *snap, whole) {
                Some(packet) => into.push(packet),
                None => *no_buffer += 1,
            });
        self.unreceived += read.refused;
        let is_empty = read.frames + read.refused == 0;
        let error = if is_empty { self.interface.socket().take_error() } else { None };
        error.map_or(Ok(()), |error| Err(self.failure(&error)))
    }

    fn has_received(&self) -> bool {
        self.interface.has_frame_in_hand()
    }

    fn send(&mut self, batch: &mut Batch) -> Result<(), IoError> {
        let outcome = self.interface.socket().send(batch.iter().map(Packet::data));
        drop(batch.drain_front(outcome.frames));
        outcome.error.map_or(Ok(()), |error| Err(self.failure(&error)))
    }

    fn is_gone(&self) -> bool {
        self.interface.socket().is_gone()
    }

    fn coalesces(&self) -> bool {
        true
    }

    fn burst(&self) -> usize {
        BURST
    }

    fn take_unreceived(&mut self) -> usize {
        std::mem::take(&mut self.unreceived)
    }

    fn descriptor(&self) -> Option<Descriptor> {
        Some(self.descriptor)
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn lost(&self) -> u64 {
        self.missed.set(self.missed.get() + self.interface.take_missed());
        self.missed.get() + self.no_buffer
    }

    fn link(&self) -> Option<[u8; 6]> {
        Some(self.interface.socket().mac())
    }
}

/// A device that is read and written one packet at a time.
trait PacketDevice: AsFd + 'static {
    /// Receives one packet; `None` if none is waiting.
    fn receive_one(&self, pool: &Pool, snap: usize) -> io::Result<Option<Packet>>;
    /// Sends one packet; false if there is no room.
    fn send_one(&self, packet: &Packet) -> io::Result<bool>;
}

/// A packet device as an element's device.
struct SinglePacketDevice<D> {
    device: Rc<D>,
    descriptor: Descriptor,
    name: String,
    /// Maximum number of bytes to keep of a packet.
    snap: usize,
    link: Option<[u8; 6]>,
}

impl<D: PacketDevice> SinglePacketDevice<D> {
    fn boxed(
        descriptors: &Descriptors,
        device: D,
        name: &str,
        snap: usize,
        link: Option<[u8; 6]>,
    ) -> Box<dyn Device> {
        let device = Rc::new(device);
        let descriptor = descriptors.register(&device);
        Box::new(SinglePacketDevice { device, descriptor, name: name.into(), snap, link })
    }
}

impl<D: PacketDevice> Device for SinglePacketDevice<D> {
    fn receive(&mut self, pool: &Pool, most: usize, into: &mut Batch) -> Result<(), IoError> {
        for _ in 0..most {
            match self.device.receive_one(pool, self.snap) {
                Ok(Some(packet)) => into.push(packet),
                Ok(None) => break,
                Err(error) => return Err(io_error(&error)),
            }
        }
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch) -> Result<(), IoError> {
        let mut sent = 0;
        let mut result = Ok(());
        for packet in batch.iter() {
            match self.device.send_one(packet) {
                Ok(true) => sent += 1,
                Ok(false) => break,
                Err(error) => {
                    result = Err(io_error(&error));
                    break;
                }
            }
        }
        drop(batch.drain_front(sent));
        result
    }

    fn descriptor(&self) -> Option<Descriptor> {
        Some(self.descriptor)
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn link(&self) -> Option<[u8; 6]> {
        self.link
    }
}

/// A packet to receive into. If the pool is exhausted, the frame is read and lost, so that the device does not stall.
fn allocate(pool: &Pool, length: usize) -> io::Result<Packet> {
    pool.allocate_with(HEADROOM, length).ok_or_else(|| io::Error::other("no free packet"))
}

impl PacketDevice for Tunnel {
    fn receive_one(&self, pool: &Pool, snap: usize) -> io::Result<Option<Packet>> {
        let mut packet = allocate(pool, snap)?;
        let Some(length) = self.receive(packet.data_mut())? else { return Ok(None) };
        packet.truncate(length);
        Ok(Some(packet))
    }

    fn send_one(&self, packet: &Packet) -> io::Result<bool> {
        self.send(packet.data())
    }
}

impl PacketDevice for RawSocket {
    fn receive_one(&self, pool: &Pool, snap: usize) -> io::Result<Option<Packet>> {
        let mut packet = allocate(pool, snap)?;
        let Some(length) = self.receive(packet.data_mut())? else { return Ok(None) };
        packet.truncate(length);
        packet.set_extra_length(u32::try_from(length.saturating_sub(snap)).unwrap_or(u32::MAX));
        Ok(Some(packet))
    }

    fn send_one(&self, packet: &Packet) -> io::Result<bool> {
        let destination = packet.data().get(16..20).and_then(|bytes| bytes.first_chunk::<4>());
        let destination = destination.ok_or_else(|| io::Error::other("runt IP packet"))?;
        self.send(packet.data(), Ipv4Addr::from(*destination))
    }
}
