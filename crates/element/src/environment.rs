//! The environment: everything outside the router that an element can use.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv4Addr;

use packet::steering::DividedRange;
use packet::{Batch, Pool, SharedBytes, Timestamp};

use crate::error::HandlerError;

/// A handle that can be watched for readiness: a number assigned by the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Descriptor(pub i32);

/// An error of the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IoError {
    /// This environment has no such facility.
    Unsupported(&'static str),
    /// The object does not exist.
    NotFound(String),
    /// A privilege is missing. The text names it and says how to get it.
    Denied(String),
    /// Any other error, as reported by the system.
    Failed(String),
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IoError::Unsupported(what) => write!(f, "{what} is not available here"),
            IoError::NotFound(text) | IoError::Denied(text) | IoError::Failed(text) => f.write_str(text),
        }
    }
}

impl core::error::Error for IoError {}

/// The outcome of a non-blocking transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// The number of bytes transferred.
    Done(usize),
    /// The transfer would block.
    Wait,
    /// The other side has closed.
    Closed,
}

/// Marks the end of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndOfFile;

/// A file or standard input, open for reading; compressed files are decompressed.
pub trait Reader {
    /// Reads into the start of `into`; 0 at the end.
    fn read(&mut self, into: &mut [u8]) -> Result<usize, IoError>;
    /// Size of the file in bytes as stored, if known: for progress.
    fn size(&self) -> Option<u64> {
        None
    }
    /// Number of bytes read so far from the file as stored.
    fn position(&self) -> u64 {
        0
    }
    /// The descriptor to watch if reading may block.
    fn descriptor(&self) -> Option<Descriptor> {
        None
    }
    /// The file, to be read in place; `None` if it has to be read by [`read`](Self::read), for example because it is compressed.
    fn view(&mut self) -> Option<Box<dyn FileView>> {
        None
    }
    /// Goes on at `position`, in bytes from the start of the file. Only a reader with a view can.
    fn seek(&mut self, position: u64) -> Result<(), IoError> {
        let _ = position;
        Err(IoError::Unsupported("seeking"))
    }
}

/// A file that is read in place. Other processes may change it meanwhile.
pub trait FileView {
    /// The bytes from `position` on: at least `least`, if the file has as many.
    fn bytes(&mut self, position: u64, least: usize) -> SharedBytes<'_>;
    /// Whether the file still had all bytes that were read. If not, some of them were zeros.
    fn is_intact(&self) -> bool;
}

/// A file or standard output, open for writing.
pub trait Writer {
    /// Writes all of `bytes`; may buffer.
    fn write(&mut self, bytes: &[u8]) -> Result<(), IoError>;
    /// Flushes buffers.
    fn flush(&mut self) -> Result<(), IoError>;
}

/// A connection or a datagram socket; all operations are non-blocking.
pub trait Stream {
    /// Reads into the start of `into`.
    fn read(&mut self, into: &mut [u8]) -> Result<Io, IoError>;
    /// Writes the start of `bytes`.
    fn write(&mut self, bytes: &[u8]) -> Result<Io, IoError>;
    /// The descriptor to watch.
    fn descriptor(&self) -> Descriptor;
    /// The address of the peer, `ADDRESS:PORT`, if known.
    fn peer(&self) -> Option<String> {
        None
    }
}

/// A listening socket.
pub trait Listener {
    /// The next connection, if one has arrived.
    fn accept(&mut self) -> Result<Option<Box<dyn Stream>>, IoError>;
    /// The descriptor to watch.
    fn descriptor(&self) -> Descriptor;
    /// The local address as the environment prints it, with the port that was assigned.
    fn local(&self) -> String;
}

/// A datagram socket; all operations are non-blocking.
pub trait Datagrams {
    /// Receives a datagram into the start of `into`. Returns its full length, which may exceed the buffer's.
    fn receive(&mut self, into: &mut [u8]) -> Result<Io, IoError>;
    /// The sender's address and port of the last datagram, if the socket's family has them.
    fn sender(&self) -> Option<(Ipv4Addr, u16)>;
    /// Sends all further datagrams to the sender of the last one received.
    fn connect_to_sender(&mut self);
    /// Sends a datagram; if an address is given, to that address and the same port.
    fn send(&mut self, bytes: &[u8], to: Option<Ipv4Addr>) -> Result<Io, IoError>;
    /// The descriptor to watch.
    fn descriptor(&self) -> Descriptor;
}

/// The address of a socket, or of its peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketAddress {
    /// TCP address and port.
    Tcp(Ipv4Addr, u16),
    /// UDP address and port.
    Udp(Ipv4Addr, u16),
    /// UDP multicast group and port. A local address of this kind selects the interface; the socket does not receive
    /// its own datagrams.
    Multicast(Ipv4Addr, u16),
    /// Path of a Unix stream socket.
    Unix(String),
    /// Path of a Unix datagram socket.
    UnixDatagram(String),
}

impl SocketAddress {
    /// The longest path of a Unix socket that Linux takes, in bytes.
    pub const MAX_PATH: usize = 107;
}

/// The socket that an element requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketRequest {
    /// The address to connect to or, for a server, to bind to.
    pub address: SocketAddress,
    /// A client's local address, of the same kind.
    pub local: Option<SocketAddress>,
    /// Whether to connect rather than to listen.
    pub client: bool,
    /// Size of the send buffer in bytes, if not the default.
    pub send_buffer: Option<u32>,
    /// Size of the receive buffer in bytes, if not the default.
    pub receive_buffer: Option<u32>,
    /// Whether small segments are sent at once (`TCP_NODELAY`).
    pub no_delay: bool,
    /// Whether this host receives what it sends to a multicast group.
    pub multicast_loop: bool,
}

/// An open socket.
pub enum Socket {
    /// A server that accepts connections.
    Listener(Box<dyn Listener>),
    /// A connection.
    Stream(Box<dyn Stream>),
    /// Datagrams, for client or server.
    Datagrams(Box<dyn Datagrams>),
}

/// Why a socket could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketError {
    /// The step that failed: `bind`, `connect`.
    pub step: &'static str,
    /// The cause.
    pub error: IoError,
}

impl fmt::Display for SocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.error)
    }
}

impl core::error::Error for SocketError {}

/// The device that an element requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceRequest {
    /// A network interface; in a box, the switch port with that number.
    Interface {
        /// The interface's name, or the port's number.
        name: String,
        /// Whether to receive frames for other hosts.
        promiscuous: bool,
        /// Whether to receive frames that this host sends.
        outbound: bool,
        /// Maximum number of bytes to capture per frame.
        snap: usize,
        /// Whether the device will be read.
        receive: bool,
        /// Whether to keep received frames from the host's network stack.
        exclusive: bool,
        /// Whether to use XDP sockets where the environment has a choice.
        xdp: bool,
    },
    /// The sending side of a port of a steering switch, for packets that go to one place.
    Steered {
        /// The name of the port.
        port: String,
        /// Where the packets go.
        next: NextHop,
    },
    /// A new virtual interface to the host's network stack.
    Tunnel {
        /// Whether it carries Ethernet frames rather than IP packets.
        ethernet: bool,
        /// The name; empty to let the system choose one.
        name: String,
        /// Its address and prefix length. Without them the interface is not brought up.
        address: Option<(Ipv4Addr, u8)>,
        /// The link address.
        link: Option<[u8; 6]>,
        /// The gateway to configure.
        gateway: Option<Ipv4Addr>,
        /// The MTU; 0 for the system's default.
        mtu: usize,
    },
    /// A raw IP socket for one protocol.
    Raw {
        /// The IP protocol.
        protocol: u8,
        /// The TCP or UDP port to accept; 0 for all ports.
        port: u16,
        /// Maximum number of bytes to capture per packet.
        snap: usize,
    },
}

/// Where a steering switch sends the packets of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextHop {
    /// On in their chain.
    Chain,
    /// To an instance of this service.
    Service(String),
    /// Out of this port of the switch.
    Port(String),
    /// Into a chain.
    IntoChain {
        /// The name of the chain.
        name: String,
        /// Whether the later packets of their flows go there too.
        flow: bool,
    },
    /// Where the flows of the switch say.
    LookUp,
}

/// A network device.
pub trait Device {
    /// Appends at most `most` received packets, with their timestamps, to `into`.
    fn receive(&mut self, pool: &Pool, most: usize, into: &mut Batch) -> Result<(), IoError>;
    /// Sends packets from the front of `batch`; leaves those that must wait.
    fn send(&mut self, batch: &mut Batch) -> Result<(), IoError>;
    /// Whether there are packets for the next `receive` that the descriptor does not report.
    fn has_received(&self) -> bool {
        false
    }
    /// Whether to let packets accumulate before receiving them: where waking a sleeping receiver costs the sender.
    fn coalesces(&self) -> bool {
        false
    }
    /// Whether nothing will be received any more.
    fn has_ended(&self) -> bool {
        false
    }
    /// Whether it was removed from the host: it never works again, even if there is another one with its name.
    fn is_gone(&self) -> bool {
        false
    }
    /// How many packets are worth sending in one call.
    fn burst(&self) -> usize {
        1
    }
    /// How many of the packets that `send` took since the last call could not be sent, because they are too long.
    fn take_refused(&mut self) -> usize {
        0
    }
    /// How many of the packets that `receive` read since the last call could not be passed on, because they are too long.
    fn take_unreceived(&mut self) -> usize {
        0
    }
    /// Reports packets that were dropped because there was no room.
    fn count_full(&mut self, _count: u64) {}
    /// The descriptor to watch, if the environment has one.
    fn descriptor(&self) -> Option<Descriptor>;
    /// The name that the device got.
    fn name(&self) -> String;
    /// Number of packets lost before they could be received.
    fn lost(&self) -> u64 {
        0
    }
    /// The link address, if it has one.
    fn link(&self) -> Option<[u8; 6]> {
        None
    }
}

/// The addresses of a network interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its IPv4 address and prefix length.
    pub ip: Option<(Ipv4Addr, u8)>,
    /// Its link address.
    pub link: Option<[u8; 6]>,
}

/// The terminal that the log goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Characters in a line.
    pub columns: usize,
    /// Whether standard output is a terminal too.
    pub output: bool,
}

/// The other shards of a configuration, as the first one reaches them. Each call waits until they are between two turns.
pub trait OtherShards {
    /// Reads a handler of each, in order.
    fn read(&self, path: &str, parameter: &str) -> Vec<Result<String, HandlerError>>;
    /// Writes a handler of each.
    fn write(&self, path: &str, value: &str) -> Result<(), HandlerError>;
    /// Prepares a new configuration in each, or in none.
    fn prepare(&self, text: &str) -> Result<(), HandlerError>;
    /// Drops what was prepared.
    fn abort(&self);
    /// Lets what was prepared take over, in all shards at once: returns when each is about to switch.
    fn commit(&self);
}

/// The environment of a router. Facilities that it lacks fail with [`IoError::Unsupported`].
pub trait Environment {
    /// Wall-clock time.
    fn now(&self) -> Timestamp;
    /// Monotonic time.
    fn steady(&self) -> Timestamp;
    /// Random bits that differ between runs, unless the user asked for reproducible ones.
    fn seed(&self) -> u64;
    /// The other shards, if this is the first of several.
    fn others(&self) -> Option<&dyn OtherShards> {
        None
    }
    /// Announces a new configuration. It may replace the running one, and then opens the same devices in parallel.
    fn prepare(&self) {}
    /// Spreads the packets of a range of addresses or ports over the shards, as [`owner`](packet::steering::owner) says.
    fn divide(&self, _range: DividedRange) -> Result<(), IoError> {
        Err(IoError::Unsupported("translation in several shards"))
    }
    /// Writes a line to the log.
    fn console(&self, text: &str);
    /// The terminal that the log goes to, if there is one.
    fn terminal(&self) -> Option<Terminal> {
        None
    }
    /// Shows a line on that terminal in place of the previous one; the `last` line stays.
    fn draw(&self, _line: &str, _last: bool) {}
    /// Opens a file for reading; `-` is standard input.
    fn open(&self, _path: &str) -> Result<Box<dyn Reader>, IoError> {
        Err(IoError::Unsupported("reading files"))
    }
    /// Creates a file, or opens it for appending; `-` is standard output. An existing file is truncated only at the
    /// first write or flush, so a new configuration that fails, or that takes over the old one's file, does no harm.
    fn create(&self, _path: &str, _append: bool) -> Result<Box<dyn Writer>, IoError> {
        Err(IoError::Unsupported("writing files"))
    }
    /// Opens a device.
    fn device(&self, _request: &DeviceRequest) -> Result<Box<dyn Device>, IoError> {
        Err(IoError::Unsupported("devices"))
    }
    /// Opens a listening socket: `tcp:ADDRESS:PORT`, `unix:PATH`.
    fn listen(&self, _address: &str) -> Result<Box<dyn Listener>, IoError> {
        Err(IoError::Unsupported("sockets"))
    }
    /// A connection inherited by the process, by its descriptor: `fd:NUMBER`.
    fn connect(&self, _address: &str) -> Result<Box<dyn Stream>, IoError> {
        Err(IoError::Unsupported("sockets"))
    }
    /// Opens a socket.
    fn socket(&self, _request: &SocketRequest) -> Result<Socket, SocketError> {
        Err(SocketError { step: "socket", error: IoError::Unsupported("sockets") })
    }
    /// The addresses of an interface, for `name:ip` and `name:eth`.
    fn interface(&self, _name: &str) -> Option<Interface> {
        None
    }
    /// A stream that yields a byte for each signal of that number. When the last such stream is dropped, the signal has
    /// its default effect again.
    fn signal(&self, _number: i32) -> Result<Box<dyn Stream>, IoError> {
        Err(IoError::Unsupported("catching signals"))
    }
    /// Sends a signal to a process.
    fn kill(&self, _process: i32, _signal: i32) -> Result<(), IoError> {
        Err(IoError::Unsupported("sending signals"))
    }
    /// The process ID; 0 if there are no processes.
    fn process_id(&self) -> u32 {
        0
    }
    /// Waits until a descriptor is ready or steady time reaches `until` (`None`: no limit); returns the ready ones. It
    /// may return early with none.
    fn wait(&self, watched: &[(Descriptor, bool, bool)], until: Option<Timestamp>) -> Vec<Descriptor>;
    /// Whether a descriptor can be read or written now, as requested.
    fn is_ready(&self, descriptor: Descriptor, read: bool, write: bool) -> bool {
        !self.wait(&[(descriptor, read, write)], Some(Timestamp::ZERO)).is_empty()
    }
    /// Bytes that the lookup structures of a rule set may take, unless its element is given another limit.
    fn rule_memory(&self) -> usize {
        4 << 20
    }
    /// Whether the router's tasks should yield the CPU now because others wait for it.
    fn is_turn_over(&self) -> bool {
        false
    }
    /// Whether the run was interrupted from outside.
    fn is_interrupted(&self) -> bool {
        false
    }
}
