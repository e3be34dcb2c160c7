//! `Socket`: packets over TCP, UDP and Unix sockets.

use core::net::Ipv4Addr;

use element::arguments::{FromArgument, Raw, TcpPort, UdpPort};
use element::prelude::*;
use element::{Descriptor, Io, Listener, Signal, Stream};

/// Packets pushed in that may wait for room; Click would stand still instead.
const MOST_WAITING: usize = 1024;

/// Sends the packets that go in over a socket, and emits what comes from the socket.
///
/// TYPE is TCP or UDP, with ADDR and PORT, or UNIX or UNIX_DGRAM, with FILENAME. A client connects to that place; a
/// server waits there, for one connection at a time, and a UDP server answers whoever wrote last. Without an output the
/// element is a client, else a server, unless CLIENT says otherwise.
/// ```click
/// // InfiniteSource(LIMIT 9) -> Queue -> Socket(UDP, 10.0.0.1, 5000);
/// InfiniteSource(LIMIT 1, STOP true) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 1
/// ```
/// ## Differences
/// Local addresses, ALLOW, DENY, SNDBUF, RCVBUF, Unix datagram servers and a UDP client's ADDR 0.0.0.0 are refused.
/// NODELAY is always true. Of packets that are pushed 1024 wait for room, and more are dropped.
#[derive(Args)]
#[element(
    name = "Socket",
    group = "devices",
    ports = "0-1/0-1",
    processing = "a/h",
    flow = "x/y",
    task,
    see = "RawSocket, ControlSocket"
)]
pub struct SocketArgs {
    /// TCP, UDP, UNIX or UNIX_DGRAM.
    #[arg(position)]
    r#type: String,
    /// The address, or the name of a Unix socket.
    #[arg(position)]
    addr: Raw,
    /// The TCP or UDP port.
    #[arg(position)]
    port: Option<Raw>,
    /// Whether it connects rather than waits.
    client: Option<bool>,
    /// Bytes of a packet to receive.
    #[arg(default = "2048")]
    snaplen: u16,
    /// Bytes in front of packets.
    #[arg(default = "28")]
    headroom: u16,
    /// Whether packets have the time of their arrival.
    #[arg(default = "true")]
    timestamp: bool,
    /// Whether small pieces are sent at once.
    #[arg(default = "true")]
    nodelay: bool,
    /// Logs connections that open and close.
    #[arg(default = "false")]
    verbose: bool,
}

/// The element.
pub struct Socket {
    args: SocketArgs,
    address: String,
    client: bool,
    datagrams: bool,
    listener: Option<Box<dyn Listener>>,
    stream: Option<Box<dyn Stream>>,
    waiting: Batch,
    signal: Signal,
    buffer: Vec<u8>,
}

impl Element for Socket {
    type Args = SocketArgs;

    fn new(args: SocketArgs, setup: &mut Setup) -> Result<Socket, SetupError> {
        let kind = args.r#type.to_ascii_uppercase();
        let client = args.client.unwrap_or(setup.outputs() == 0);
        let wrong = |keyword: &'static str| move |problem| SetupError::argument(keyword, problem);
        let place = match (kind.as_str(), &args.port) {
            ("TCP" | "UDP", Some(port)) => {
                let address = Ipv4Addr::from_argument(&args.addr.0, setup).map_err(wrong("ADDR"))?;
                let port = match kind.as_str() {
                    "TCP" => TcpPort::from_argument(&port.0, setup).map_err(wrong("PORT"))?.0,
                    _ => UdpPort::from_argument(&port.0, setup).map_err(wrong("PORT"))?.0,
                };
                if client && address.is_unspecified() {
                    return Err(SetupError::argument("ADDR", "a client needs an address to send to"));
                }
                format!("{address}:{port}")
            }
            ("TCP" | "UDP", None) => {
                return Err(SetupError { messages: vec![element::Message::Missing { keyword: "PORT" }] });
            }
            ("UNIX" | "UNIX_DGRAM", None) => element::text::unquote(&args.addr.0),
            ("UNIX" | "UNIX_DGRAM", Some(_)) => {
                return Err(SetupError::argument("LOCAL_FILENAME", "not supported"));
            }
            _ => return Err(SetupError::new(format_args!("unknown socket type ‘{kind}’"))),
        };
        let scheme = match (kind.as_str(), client) {
            ("TCP", _) => "tcp",
            ("UDP", true) => "udp",
            ("UDP", false) => "udp-server",
            ("UNIX", _) => "unix",
            (_, true) => "unixdgram",
            (_, false) => return Err(SetupError::new("UNIX_DGRAM servers are not supported")),
        };
        if args.snaplen == 0 || args.headroom > 8190 || !args.nodelay {
            return Err(SetupError::new("SNAPLEN, HEADROOM or NODELAY out of range"));
        }
        Ok(Socket {
            address: format!("{scheme}:{place}"),
            client,
            datagrams: kind == "UDP" || kind == "UNIX_DGRAM",
            buffer: vec![0; args.snaplen.into()],
            args,
            listener: None,
            stream: None,
            waiting: Batch::default(),
            signal: Signal::BUSY,
        })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        if self.client || self.datagrams {
            let call = if self.client { "connect" } else { "bind" };
            let stream = cx.environment().connect(&self.address);
            self.open(cx, stream.map_err(|error| SetupError::new(format_args!("{call}: {error}")))?);
        } else {
            let listener = cx.environment().listen(&self.address);
            let listener = listener.map_err(|error| SetupError::new(format_args!("bind: {error}")))?;
            cx.watch(listener.descriptor(), true, false);
            self.listener = Some(listener);
        }
        if cx.inputs() > 0 && !cx.is_push_input(0) {
            self.signal = cx.upstream_signal(0);
            cx.schedule();
        }
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, _: usize, mut batch: Batch) {
        for packet in batch.drain() {
            if self.stream.is_none() {
                cx.drop(packet, "not_connected");
            } else if self.waiting.len() >= MOST_WAITING {
                cx.drop(packet, "full");
            } else {
                self.waiting.push(packet);
            }
        }
        cx.recycle(batch);
        self.flush(cx);
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        if self.stream.is_none() || !self.waiting.is_empty() {
            return false;
        }
        let count = cx.pull(0, cx.batch_limit(), &mut self.waiting);
        self.flush(cx);
        if self.waiting.is_empty() && (count > 0 || self.signal.is_active()) {
            cx.schedule();
        }
        count > 0
    }

    fn ready(&mut self, cx: &mut Context, descriptor: Descriptor) {
        if self.listener.as_ref().is_some_and(|listener| listener.descriptor() == descriptor) {
            // One connection at a time: the next one waits in the system's queue.
            if self.stream.is_none()
                && let Some(Ok(Some(stream))) = self.listener.as_mut().map(|listener| listener.accept())
            {
                cx.watch(descriptor, false, false);
                self.open(cx, stream);
            }
            return;
        }
        if cx.outputs() > 0 {
            self.receive(cx);
        }
        self.flush(cx);
        if self.waiting.is_empty() && cx.inputs() > 0 && !cx.is_push_input(0) {
            cx.schedule();
        }
    }

    fn cleanup(&mut self, _: &mut Context) {
        self.listener = None;
        self.stream = None;
        self.waiting.clear();
    }
}

impl Socket {
    fn open(&mut self, cx: &Context, stream: Box<dyn Stream>) {
        self.log(cx, "opened", stream.descriptor());
        cx.watch(stream.descriptor(), cx.outputs() > 0, false);
        self.stream = Some(stream);
        if cx.inputs() > 0 && !cx.is_push_input(0) {
            cx.schedule();
        }
    }

    fn close(&mut self, cx: &Context) {
        if let Some(stream) = self.stream.take() {
            cx.watch(stream.descriptor(), false, false);
            self.log(cx, "closed", stream.descriptor());
        }
        if let Some(listener) = &self.listener {
            cx.watch(listener.descriptor(), true, false);
        }
    }

    fn log(&self, cx: &Context, what: &str, descriptor: Descriptor) {
        if self.args.verbose {
            cx.say(&format!("{} :: Socket: {what} connection {}", cx.name(), descriptor.0));
        }
    }

    fn receive(&mut self, cx: &mut Context) {
        for _ in 0..cx.batch_limit() {
            let Some(stream) = &mut self.stream else { return };
            match stream.read(&mut self.buffer) {
                Ok(Io::Done(count)) => {
                    let Some(mut packet) = cx.packet(self.buffer.get(..count).unwrap_or_default()) else {
                        continue;
                    };
                    if self.args.timestamp {
                        packet.set_timestamp(cx.now());
                    }
                    cx.send(0, packet);
                }
                Ok(Io::Wait) => return,
                // Nobody listens where a datagram went: the next one may find somebody.
                Ok(Io::Closed) | Err(_) if self.datagrams => return,
                Ok(Io::Closed) | Err(_) => return self.close(cx),
            }
        }
    }

    /// Sends what waits; what finds no room waits on.
    fn flush(&mut self, cx: &mut Context) {
        let Some(stream) = &mut self.stream else {
            self.waiting.clear();
            return;
        };
        let (mut sent, mut closed) = (0, false);
        for packet in self.waiting.iter_mut() {
            match stream.write(packet.data()) {
                Ok(Io::Done(count)) if count >= packet.len() || self.datagrams => sent += 1,
                Ok(Io::Done(count)) => {
                    packet.strip(count);
                    break;
                }
                Ok(Io::Wait) => break,
                Ok(Io::Closed) | Err(_) if self.datagrams => sent += 1,
                Ok(Io::Closed) | Err(_) => {
                    closed = true;
                    break;
                }
            }
        }
        drop(self.waiting.drain_front(sent));
        if closed {
            let lost = core::mem::take(&mut self.waiting);
            cx.drop_batch(lost, "not_connected");
            return self.close(cx);
        }
        cx.watch(stream.descriptor(), cx.outputs() > 0, !self.waiting.is_empty());
    }
}
