//! `Socket`: sends and receives packets over TCP, UDP and Unix sockets.

use core::net::Ipv4Addr;

use element::arguments::ElementName;
use element::prelude::*;
use element::{Descriptor, Io, Listener, QueueAge, Signal, SocketAddress, SocketRequest};

use super::access_control::AccessControl;
use super::socketaddresses::{AddressArguments, internet_addresses, unix_addresses};
use super::transport::SocketTransport;

/// Maximum pushed packets that wait for room; Click would block instead.
const MAX_WAITING: usize = 1024;

/// Sends and receives packets through a TCP, UDP or Unix socket.
///
/// TYPE is TCP or UDP, with ADDR and PORT, or UNIX or UNIX_DGRAM, with FILENAME. A client connects to that address. A
/// server listens there, for one connection at a time; a datagram server answers the last sender. CLIENT selects the
/// role. By default, the element is a client if it has no output or if a local address follows the remote one, else a
/// server. A UDP client with address 0.0.0.0 sends each packet to its destination annotation.
///
/// A server accepts packets from hosts with a route in the table ALLOW. It accepts hosts without a route in ALLOW
/// unless they have one in DENY.
/// ```click
/// // A client that sends, and a server that receives.
/// InfiniteSource(DATA "hello", LIMIT 3) -> Queue -> Socket(UDP, 127.0.0.1, 5000);
/// Socket(UDP, 127.0.0.1, 5000) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 3
/// c.byte_count = 15
/// ```
/// ## Differences
/// Up to 1024 pushed packets wait for room, and more are dropped; Click blocks. A local address makes the element a
/// client, as Click documents but does not do. A datagram that cannot be sent is lost without affecting others. PROPER
/// has no effect. The file of a Unix socket is removed with it.
#[derive(Args)]
#[element(
    name = "Socket",
    group = "devices",
    ports = "0-1/0-1",
    processing = "a/h",
    flow = "x/y",
    task,
    logs,
    see = "RawSocket, ControlSocket",
    drops = "not_sent, not_connected, full, denied",
    fates = "received, delivered, waiting"
)]
pub struct SocketArgs {
    /// TCP, UDP, UNIX or UNIX_DGRAM.
    #[arg(position)]
    r#type: String,
    #[arg(flatten)]
    addresses: AddressArguments,
    /// Whether to connect instead of listening.
    client: Option<bool>,
    #[arg(flatten)]
    packets: PacketArguments,
    /// Send small segments at once (TCP).
    #[arg(default = "true")]
    nodelay: bool,
    #[arg(flatten)]
    hosts: HostArguments,
    /// PlanetLab option without effect.
    #[arg(default = "false")]
    proper: bool,
}

/// How bytes become packets, and the buffer sizes.
#[derive(ArgumentGroup)]
pub(super) struct PacketArguments {
    /// Maximum bytes of a packet to receive.
    #[arg(default = "2048")]
    snaplen: u16,
    /// Headroom of packets in bytes, at most 8190.
    #[arg(default = "28")]
    headroom: u16,
    /// Set the timestamp to the time of arrival.
    #[arg(default = "true")]
    timestamp: bool,
    /// Bytes that may wait to be sent; the system's choice if absent.
    pub(super) sndbuf: Option<u32>,
    /// Bytes that may wait to be received; the system's choice if absent.
    pub(super) rcvbuf: Option<u32>,
}

/// Which hosts are admitted.
#[derive(ArgumentGroup, Default)]
pub(super) struct HostArguments {
    /// Route table of hosts to accept.
    allow: Option<ElementName>,
    /// Route table of hosts to reject unless ALLOW contains them.
    deny: Option<ElementName>,
    /// Log connections that open and close, and rejected hosts.
    #[arg(default = "false")]
    verbose: bool,
}

pub struct Socket {
    packets: PacketArguments,
    hosts: HostArguments,
    request: SocketRequest,
    /// Whether each packet is sent to its own destination.
    per_packet_destination: bool,
    access: AccessControl,
    listener: Option<Box<dyn Listener>>,
    transport: Option<SocketTransport>,
    waiting: Batch,
    age: QueueAge,
    signal: Signal,
    buffer: Vec<u8>,
}

impl Element for Socket {
    type Args = SocketArgs;

    fn new(args: SocketArgs, setup: &mut Setup) -> Result<Socket, SetupError> {
        let kind = args.r#type.to_ascii_uppercase();
        let (address, local) = match kind.as_str() {
            "TCP" | "UDP" => internet_addresses(kind == "TCP", &args.addresses, setup)?,
            "UNIX" | "UNIX_DGRAM" => unix_addresses(kind == "UNIX", &args.addresses)?,
            _ => return Err(SetupError::new(format_args!("unknown socket type ‘{kind}’"))),
        };
        let _ = args.proper;
        let client = args.client.unwrap_or(setup.outputs() == 0 || local.is_some());
        let per_packet_destination =
            client && matches!(address, SocketAddress::Udp(Ipv4Addr::UNSPECIFIED, _));
        let request = SocketRequest {
            address,
            local,
            client,
            send_buffer: args.packets.sndbuf,
            receive_buffer: args.packets.rcvbuf,
            no_delay: args.nodelay,
            multicast_loop: true,
        };
        Ok(Socket { per_packet_destination, ..Socket::unopened(request, args.packets, args.hosts)? })
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.access = AccessControl::new(cx, self.hosts.allow.as_ref(), self.hosts.deny.as_ref())?;
        Ok(())
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let socket = cx.environment().socket(&self.request).map_err(SetupError::new)?;
        match socket {
            element::Socket::Listener(listener) => {
                cx.watch(listener.descriptor(), true, false);
                self.log(cx, &format!("listening for connections on {}", self.address()));
                self.listener = Some(listener);
            }
            element::Socket::Stream(stream) => {
                self.log(cx, &format!("opened connection {} to {}", stream.descriptor().0, self.address()));
                self.open(cx, SocketTransport::Stream(stream));
            }
            element::Socket::Datagrams(datagrams) => self.open(cx, SocketTransport::Datagrams(datagrams)),
        }
        if cx.inputs() > 0 && !cx.is_push_input(0) {
            self.signal = cx.upstream_signal(0);
            cx.schedule();
        }
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, _: usize, mut batch: Batch) {
        for packet in batch.drain() {
            if self.transport.is_none() {
                cx.drop(packet, Reason::NOT_CONNECTED);
            } else if self.waiting.len() >= MAX_WAITING {
                cx.drop(packet, Reason::FULL);
            } else {
                self.age.arrive(1, || cx.steady());
                self.waiting.push(packet);
            }
        }
        cx.recycle(batch);
        self.flush(cx);
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        if self.transport.is_none() || !self.waiting.is_empty() {
            return false;
        }
        let count = cx.pull(0, cx.batch_limit(), &mut self.waiting);
        self.age.arrive(count, || cx.steady());
        self.flush(cx);
        if self.waiting.is_empty() && (count > 0 || self.signal.is_active()) {
            cx.schedule();
        }
        count > 0
    }

    fn ready(&mut self, cx: &mut Context, descriptor: Descriptor) {
        if self.listener.as_ref().is_some_and(|listener| listener.descriptor() == descriptor) {
            return self.accept(cx);
        }
        if cx.outputs() > 0 {
            self.receive(cx);
        }
        self.flush(cx);
        if self.waiting.is_empty() && cx.inputs() > 0 && !cx.is_push_input(0) {
            cx.schedule();
        }
    }

    fn waiting(&self, waiting: &mut Waiting) {
        waiting.add(self.waiting.len(), self.age.oldest());
    }

    fn cleanup(&mut self, _: &mut Context) {
        self.listener = None;
        self.transport = None;
        self.waiting.clear();
    }
}

impl Socket {
    /// Creates a socket that is not open yet.
    pub(super) fn unopened(
        request: SocketRequest,
        packets: PacketArguments,
        hosts: HostArguments,
    ) -> Result<Socket, SetupError> {
        if packets.snaplen == 0 || packets.headroom > 8190 {
            return Err(SetupError::new("SNAPLEN or HEADROOM out of range"));
        }
        Ok(Socket {
            request,
            per_packet_destination: false,
            access: AccessControl::default(),
            buffer: vec![0; packets.snaplen.into()],
            packets,
            hosts,
            listener: None,
            transport: None,
            waiting: Batch::default(),
            age: QueueAge::default(),
            signal: Signal::BUSY,
        })
    }

    /// Accepts a connection. There is one at a time; the next one waits in the system's queue.
    fn accept(&mut self, cx: &Context) {
        let Some(listener) = self.listener.as_mut().filter(|_| self.transport.is_none()) else { return };
        let stream = match listener.accept() {
            Ok(Some(stream)) => stream,
            Ok(None) => return,
            Err(error) => return self.log(cx, &format!("accept: {error}")),
        };
        let peer = stream.peer().unwrap_or_default();
        let host = peer.split(':').next().and_then(|host| host.parse().ok());
        let admitted = host.is_none_or(|host| self.access.admits(cx, host));
        let (what, number) = (if admitted { "opened" } else { "denied" }, stream.descriptor().0);
        let from = if peer.is_empty() { String::new() } else { format!(" from {peer}") };
        self.log(cx, &format!("{what} connection {number}{from}"));
        if admitted {
            if let Some(listener) = &self.listener {
                cx.watch(listener.descriptor(), false, false);
            }
            self.open(cx, SocketTransport::Stream(stream));
        }
    }

    fn open(&mut self, cx: &Context, transport: SocketTransport) {
        cx.watch(transport.descriptor(), cx.outputs() > 0, false);
        self.transport = Some(transport);
        if cx.inputs() > 0 && !cx.is_push_input(0) {
            cx.schedule();
        }
    }

    fn close(&mut self, cx: &Context) {
        if let Some(transport) = self.transport.take() {
            cx.watch(transport.descriptor(), false, false);
            self.log(cx, &format!("closed connection {}", transport.descriptor().0));
        }
        if let Some(listener) = &self.listener {
            cx.watch(listener.descriptor(), true, false);
        }
    }

    fn log(&self, cx: &Context, text: &str) {
        if self.hosts.verbose {
            cx.log(&format!("{} :: Socket: {text}", cx.name()));
        }
    }

    /// The socket's address or peer, for messages.
    fn address(&self) -> String {
        match &self.request.address {
            SocketAddress::Tcp(address, port)
            | SocketAddress::Udp(address, port)
            | SocketAddress::Multicast(address, port) => format!("{address}:{port}"),
            SocketAddress::Unix(name) | SocketAddress::UnixDatagram(name) => name.clone(),
        }
    }

    fn receive(&mut self, cx: &mut Context) {
        for _ in 0..cx.batch_limit() {
            let Some(transport) = &mut self.transport else { return };
            let length = match transport.read(&mut self.buffer) {
                Ok(Io::Done(length)) => length,
                Ok(Io::Wait) => return,
                Ok(Io::Closed) | Err(_) => match transport {
                    // There was no receiver at the datagram's destination; the next datagram may reach one.
                    SocketTransport::Datagrams(_) => return,
                    SocketTransport::Stream(_) => return self.close(cx),
                },
            };
            if let SocketTransport::Datagrams(datagrams) = transport
                && !self.request.client
            {
                let sender = datagrams.sender();
                if let Some((host, port)) = sender.filter(|(host, _)| !self.access.admits(cx, *host)) {
                    self.log(cx, &format!("dropped datagram from {host}:{port}"));
                    cx.count(Fate::Received, 1);
                    cx.count_drops(Reason::DENIED, 1);
                    continue;
                }
                datagrams.connect_to_sender();
            }
            self.emit(cx, length);
        }
    }

    /// Emits `length` received bytes as far as they fit into the packet.
    fn emit(&self, cx: &mut Context, length: usize) {
        let bytes = self.buffer.get(..length).unwrap_or(&self.buffer);
        let packet = cx.pool().allocate_with(self.packets.headroom.into(), bytes.len());
        let Some(mut packet) = cx.begin(Fate::Received, packet) else { return };
        packet.data_mut().copy_from_slice(bytes);
        packet.set_extra_length(u32::try_from(length - bytes.len()).unwrap_or(u32::MAX));
        if self.packets.timestamp {
            packet.set_timestamp(cx.now());
        }
        cx.send(0, packet);
    }

    fn take_waiting(&mut self) -> Batch {
        self.age.leave(self.waiting.len());
        core::mem::take(&mut self.waiting)
    }

    /// Sends waiting packets as far as there is room.
    fn flush(&mut self, cx: &mut Context) {
        let Some(transport) = &mut self.transport else {
            let lost = self.take_waiting();
            return cx.drop_batch(lost, Reason::NOT_CONNECTED);
        };
        let (mut sent, mut lost, mut closed) = (0, 0, false);
        for packet in self.waiting.iter_mut() {
            let to = self.per_packet_destination.then(|| packet.destination_ip());
            match transport.write(packet, to) {
                Ok(Io::Done(count)) if count >= packet.len() => sent += 1,
                Ok(Io::Done(count)) => {
                    packet.strip(count);
                    break;
                }
                Ok(Io::Wait) => break,
                Ok(Io::Closed) | Err(_) if matches!(transport, SocketTransport::Datagrams(_)) => {
                    (sent, lost) = (sent + 1, lost + 1)
                }
                Ok(Io::Closed) | Err(_) => {
                    closed = true;
                    break;
                }
            }
        }
        drop(self.waiting.drain_front(sent));
        self.age.leave(sent);
        cx.count(Fate::Delivered, sent - lost);
        cx.count_drops(Reason::NOT_SENT, lost as u64);
        if closed {
            let lost = self.take_waiting();
            cx.drop_batch(lost, Reason::NOT_CONNECTED);
            return self.close(cx);
        }
        cx.watch(transport.descriptor(), cx.outputs() > 0, !self.waiting.is_empty());
    }
}
