//! The outside world, as an element may ask for it.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv4Addr;

use packet::{Batch, Pool, Timestamp};

/// Something that can be watched for readiness; a number that the environment gave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Descriptor(pub i32);

/// Why the environment can't.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IoError {
    /// This environment has no such thing at all.
    Unsupported(&'static str),
    /// It is not there.
    NotFound(String),
    /// The privilege is missing; the text says which, and how to get it.
    Denied(String),
    /// Anything else, as the system put it.
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

/// The outcome of a transfer that never waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// So many bytes were moved.
    Done(usize),
    /// Nothing can be moved now.
    Wait,
    /// The other side has closed.
    Closed,
}

/// Marks the end of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndOfFile;

/// A file, or standard input, to be read; compressed ones come out as they were.
pub trait Reader {
    /// Reads into the start of `into`; 0 at the end.
    fn read(&mut self, into: &mut [u8]) -> Result<usize, IoError>;
    /// Bytes of the file as it lies there, if known: for progress.
    fn size(&self) -> Option<u64> {
        None
    }
    /// Bytes of the file, as it lies there, read so far.
    fn position(&self) -> u64 {
        0
    }
    /// What to watch if reading may have to wait.
    fn descriptor(&self) -> Option<Descriptor> {
        None
    }
}

/// A file, or standard output, to be written.
pub trait Writer {
    /// Writes all of `bytes`, perhaps into a buffer.
    fn write(&mut self, bytes: &[u8]) -> Result<(), IoError>;
    /// Writes buffers out.
    fn flush(&mut self) -> Result<(), IoError>;
}

/// A connection, or a datagram socket: nothing here waits.
pub trait Stream {
    /// Reads into the start of `into`.
    fn read(&mut self, into: &mut [u8]) -> Result<Io, IoError>;
    /// Writes the start of `bytes`.
    fn write(&mut self, bytes: &[u8]) -> Result<Io, IoError>;
    /// What to watch.
    fn descriptor(&self) -> Descriptor;
    /// Who is at the other end, `ADDRESS:PORT`, if that is known.
    fn peer(&self) -> Option<String> {
        None
    }
}

/// A socket that connections arrive at.
pub trait Listener {
    /// The next connection, if one has arrived.
    fn accept(&mut self) -> Result<Option<Box<dyn Stream>>, IoError>;
    /// What to watch.
    fn descriptor(&self) -> Descriptor;
    /// Where it listens, as the environment prints it: the port it got.
    fn local(&self) -> String;
}

/// A socket for datagrams: nothing here waits.
pub trait Datagrams {
    /// Receives one into the start of `into`; how long it was, which may be more than there was room for.
    fn receive(&mut self, into: &mut [u8]) -> Result<Io, IoError>;
    /// The address and port of who sent the last one, where senders have such.
    fn sender(&self) -> Option<(Ipv4Addr, u16)>;
    /// Has all that is sent from now on go to who sent the last one.
    fn answer(&mut self);
    /// Sends one; to another address and the same port if one is given.
    fn send(&mut self, bytes: &[u8], to: Option<Ipv4Addr>) -> Result<Io, IoError>;
    /// What to watch.
    fn descriptor(&self) -> Descriptor;
}

/// Where a socket is, or leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketAddress {
    /// An address and port of TCP.
    Tcp(Ipv4Addr, u16),
    /// An address and port of UDP.
    Udp(Ipv4Addr, u16),
    /// An address and port of UDP that many listen at: all that is sent there comes to each, and a local address of
    /// that kind is the interface to use, and what is sent by oneself does not come back.
    Group(Ipv4Addr, u16),
    /// A Unix socket for connections, by its path.
    Unix(String),
    /// A Unix socket for datagrams, by its path.
    UnixDatagrams(String),
}

impl SocketAddress {
    /// The longest path of a Unix socket that Linux takes, in bytes.
    pub const LONGEST_PATH: usize = 107;
}

/// Which socket an element wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketRequest {
    /// Where it leads to, or for a server where it is.
    pub place: SocketAddress,
    /// Where a client's own end is to be, of the same kind.
    pub local: Option<SocketAddress>,
    /// Whether it leads there rather than is there.
    pub client: bool,
    /// Bytes that may wait to be sent, if not the usual number.
    pub send_buffer: Option<u32>,
    /// Bytes that may wait to be received, if not the usual number.
    pub receive_buffer: Option<u32>,
    /// Whether small pieces are sent at once.
    pub no_delay: bool,
    /// Whether what is sent to a group comes to this host too.
    pub echo: bool,
}

/// A socket that was wanted.
pub enum Socket {
    /// A server that takes connections.
    Listener(Box<dyn Listener>),
    /// A connection.
    Stream(Box<dyn Stream>),
    /// Datagrams, of either side.
    Datagrams(Box<dyn Datagrams>),
}

/// Why there is no socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketError {
    /// The step that failed: `bind`, `connect`.
    pub step: &'static str,
    /// Why.
    pub error: IoError,
}

impl fmt::Display for SocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.error)
    }
}

impl core::error::Error for SocketError {}

/// Which device an element wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceRequest {
    /// A network interface, or in a box the switch port of that number.
    Interface {
        /// Its name or number.
        name: String,
        /// Whether frames for others are wanted too.
        promiscuous: bool,
        /// Whether frames that this host sends are wanted too.
        outbound: bool,
        /// Bytes of a frame to keep.
        snap: usize,
        /// Whether it will be read.
        receive: bool,
        /// Whether the host's kernel is not to handle what it receives.
        exclusive: bool,
    },
    /// A new virtual interface to the host's own stack.
    Tunnel {
        /// Whether it carries Ethernet frames rather than IP packets.
        ethernet: bool,
        /// The name, or empty for one that the system chooses.
        name: String,
        /// Its address and prefix length; without them it is not brought up.
        address: Option<(Ipv4Addr, u8)>,
        /// The link address.
        link: Option<[u8; 6]>,
        /// The gateway to set.
        gateway: Option<Ipv4Addr>,
        /// The largest packet; 0 for the system's choice.
        mtu: usize,
    },
    /// A raw IP socket for one protocol.
    Raw {
        /// The IP protocol.
        protocol: u8,
        /// The TCP or UDP port to accept; 0 for all.
        port: u16,
        /// Bytes of a packet to keep.
        snap: usize,
    },
}

/// A network device.
pub trait Device {
    /// Adds at most `most` packets that have arrived, with their times, to `into`.
    fn receive(&mut self, pool: &Pool, most: usize, into: &mut Batch) -> Result<(), IoError>;
    /// Sends from the front of `batch` and leaves what must wait.
    fn send(&mut self, batch: &mut Batch) -> Result<(), IoError>;
    /// Whether it pays to let packets gather before they are fetched: where each that wakes a sleeper costs its sender.
    fn gathers(&self) -> bool {
        false
    }
    /// How many packets are worth sending in one call.
    fn burst(&self) -> usize {
        1
    }
    /// Told of packets that found no room and were dropped.
    fn count_full(&mut self, _count: u64) {}
    /// What to watch, where the environment has such a thing.
    fn descriptor(&self) -> Option<Descriptor>;
    /// The name that it has got.
    fn name(&self) -> String;
    /// Packets that were lost before they could be received.
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
    /// Whether standard output goes to a terminal too.
    pub output: bool,
}

/// The outside world. What an environment lacks it refuses with [`IoError::Unsupported`].
pub trait Environment {
    /// Wall-clock time.
    fn now(&self) -> Timestamp;
    /// Time that never jumps.
    fn steady(&self) -> Timestamp;
    /// Bits that differ between runs, where the user has not asked for the same ones.
    fn seed(&self) -> u64;
    /// A configuration is about to be made; it may be meant to take over from one that runs, and then opens the same
    /// devices beside it.
    fn prepare(&self) {}
    /// A line for the log.
    fn console(&self, text: &str);
    /// The terminal that the log goes to, where there is one.
    fn terminal(&self) -> Option<Terminal> {
        None
    }
    /// Shows a line on that terminal in place of the one that was drawn before; the `last` one stays.
    fn draw(&self, _line: &str, _last: bool) {}
    /// Opens a file to read; `-` is standard input.
    fn open(&self, _path: &str) -> Result<Box<dyn Reader>, IoError> {
        Err(IoError::Unsupported("reading files"))
    }
    /// Creates a file, or opens it to append; `-` is standard output. What is in it goes at the first write or flush
    /// only, so that a new configuration that fails, or takes the old one's file over, does no harm.
    fn create(&self, _path: &str, _append: bool) -> Result<Box<dyn Writer>, IoError> {
        Err(IoError::Unsupported("writing files"))
    }
    /// Opens a device.
    fn device(&self, _request: &DeviceRequest) -> Result<Box<dyn Device>, IoError> {
        Err(IoError::Unsupported("devices"))
    }
    /// Listens: `tcp:ADDRESS:PORT`, `unix:PATH`.
    fn listen(&self, _address: &str) -> Result<Box<dyn Listener>, IoError> {
        Err(IoError::Unsupported("sockets"))
    }
    /// A connection that the process was started with, by its descriptor: `fd:NUMBER`.
    fn connect(&self, _address: &str) -> Result<Box<dyn Stream>, IoError> {
        Err(IoError::Unsupported("sockets"))
    }
    /// Makes a socket.
    fn socket(&self, _request: &SocketRequest) -> Result<Socket, SocketError> {
        Err(SocketError { step: "socket", error: IoError::Unsupported("sockets") })
    }
    /// An interface's addresses, for `name:ip` and `name:eth`.
    fn interface(&self, _name: &str) -> Option<Interface> {
        None
    }
    /// A host's IPv4 address by its name in the system's tables.
    fn host(&self, _name: &str) -> Option<Ipv4Addr> {
        None
    }
    /// A stream that gives a byte each time the signal of that number arrives; when the last one for it goes, the
    /// signal does again what it does by itself.
    fn signal(&self, _number: i32) -> Result<Box<dyn Stream>, IoError> {
        Err(IoError::Unsupported("catching signals"))
    }
    /// Sends a signal to a process.
    fn kill(&self, _process: i32, _signal: i32) -> Result<(), IoError> {
        Err(IoError::Unsupported("sending signals"))
    }
    /// The number of this process; 0 where there are none.
    fn process(&self) -> u32 {
        0
    }
    /// The names of the files in a directory.
    fn list(&self, _path: &str) -> Result<Vec<String>, IoError> {
        Err(IoError::Unsupported("directories"))
    }
    /// Waits until a descriptor is ready or steady time reaches `until` (`None`: for ever); returns the ready ones. May
    /// return early with none.
    fn wait(&self, watched: &[(Descriptor, bool, bool)], until: Option<Timestamp>) -> Vec<Descriptor>;
    /// Whether a descriptor can be read or written now, whichever is asked for.
    fn is_ready(&self, descriptor: Descriptor, read: bool, write: bool) -> bool {
        !self.wait(&[(descriptor, read, write)], Some(Timestamp::ZERO)).is_empty()
    }
    /// Whether the router's tasks are to stop for now, as others wait for the processor.
    fn is_turn_over(&self) -> bool {
        false
    }
    /// Whether the run was asked to stop from outside.
    fn is_interrupted(&self) -> bool {
        false
    }
}
