//! The messages of the launcher.
//!
//! With a daemon: each side sends a [`Hello`](crate::Hello); the launcher's may be a [`Refusal`] instead. Then the
//! daemon sends one [`Request`] at a time, and the launcher answers it with a [`Reply`] or a [`Refusal`].
//!
//! With a fabric: the launcher sends [`ToFabric`]. The fabric sends an [`EndReason`] before it ends on its own, and nothing else.

use super::ending::Ending;
use super::refusal::Shortfall;
use crate::StoreIdentity;
use model::{HostAddress, TunnelKind};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[cfg(doc)]
use super::{ending::EndReason, refusal::Refusal};

/// The version of these conversations. A change that the previous version does not understand raises it by one.
pub const VERSION: u16 = 1;

/// Maximum number of bytes of a request: the longest path, and its framing.
pub const MAX_REQUEST: usize = 8 << 10;

/// Maximum number of bytes of a reply. The longest lists all fabrics.
pub const MAX_REPLY: usize = 1 << 20;

/// What a daemon asks of a launcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// A connection to the fabric with this number. It is started if it does not run. The reply has one descriptor:
    /// the daemon's end of a new channel to the fabric.
    Connect(u32),
    /// A device or file, opened. The reply has one descriptor, unless the device says otherwise.
    Open(PortDevice),
    /// The folder in which the fabric with this number creates the files that boxes write: made if it does not exist, and
    /// owned by the user of the fabric. The path must be absolute. The reply has one descriptor.
    OpenFolder(PathBuf, u32),
    /// Forget the launcher's duplicate of the descriptor. A tap disappears when no fabric has it either.
    Close(PortDevice),
    /// Keep the descriptor that comes with the request, as if the launcher had opened the tap or recording: it was opened by
    /// a launcher that has ended. One that is kept already stays.
    Keep(PortDevice),
    /// Like [`Connect`](Self::Connect), for one of several fabrics. If it is started, it gets this share.
    ConnectShare(u32, Share),
    /// The agent of the fabric with this number, which holds the sessions with OpenFlow controllers: it is started, and again
    /// whenever it ends, as long as the fabric runs.
    StartAgent(u32),
    /// The fabrics that run.
    Fabrics,
    /// End the fabric with this number. The reply comes when it has ended.
    Stop(u32),
    /// End all fabrics. The reply comes when they have ended.
    StopAll,
    /// End all fabrics and the launcher. There is no reply: the connection closes when they have ended. A launcher that
    /// stays without clients takes it for [`StopAll`](Self::StopAll).
    End,
}

/// What a fabric gets of the processors when there are several fabrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Its weight when fabrics compete for a processor: 1 to 10,000.
    pub weight: u16,
    /// The numbers of the processors that it has to itself. None: all processors, which it shares.
    pub processors: Vec<u16>,
}

impl Default for Share {
    /// The same as every other fabric has.
    fn default() -> Self {
        Self { weight: 100, processors: Vec::new() }
    }
}

/// A device or file behind a port. It is named by its kind and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PortDevice {
    /// The TAP device with this name. It is created if it does not exist. The launcher keeps it until it is closed:
    /// each reply has the same device. With several switch threads it has as many queues, of which the launcher keeps the first:
    /// each reply has that one, and others.
    Tap(String),
    /// Packet sockets on the network interface with this name: others with each reply, one for each switch thread. The launcher
    /// keeps one of the last ones, so that the interface stays promiscuous while a fabric is replaced.
    Interface(String),
    /// The network interface with this name, for XDP sockets in this number of its receive queues; `None`: in all. The reply has a
    /// packet socket that watches the interface, the memory for frames, the link of the program, and a socket for each queue. As many
    /// queues as there are switch threads have buffers to send from.
    /// The launcher keeps none of them, so that the program is detached when the fabric ends.
    Xdp(String, Option<u32>),
    /// A capture to read. The path must be absolute.
    Replay(PathBuf),
    /// A capture to write. The path must be absolute, and the file must not exist when it is opened first. The launcher
    /// keeps it until it is closed: each reply has the same file.
    Recording(PathBuf),
    /// The socket of a tunnel: another one with each reply. The launcher keeps the UDP port reserved, as long as it keeps any
    /// tunnel there.
    Tunnel(TunnelDevice),
    /// A Unix socket that listens at this path, which must be absolute; a socket there at which no one listens is replaced. The
    /// launcher keeps it until it is closed: each reply has the same socket.
    Listener(SocketProtocol, PathBuf),
    /// A connection to the peer that listens at this path, which must be absolute: another one with each reply. It is handed out
    /// when the peer has sent its first message, so that no other server is reached with the launcher's privileges.
    Connection(SocketProtocol, PathBuf),
}

/// What the peers of a port speak at its Unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SocketProtocol {
    /// vhost-user, over a stream. The front end speaks first.
    VhostUser,
    /// memif, over packets (`SOCK_SEQPACKET`). The server speaks first.
    Memif,
}

/// A tunnel to another host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TunnelDevice {
    /// The headers.
    pub kind: TunnelKind,
    /// The address of this host. `None`: the one that the host's routes choose.
    pub local: Option<HostAddress>,
    /// The address of the other host.
    pub remote: HostAddress,
    /// The UDP port of both hosts.
    pub udp_port: u16,
    /// The number of the virtual network: 24 bits.
    pub vni: u32,
}

/// What a launcher answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The fabric will serve the other end of the descriptor.
    Connected {
        /// The fabric.
        fabric: FabricState,
        /// It was started for this request. Otherwise it ran before.
        is_new: bool,
        /// How the fabric ended that had this number before, if that was not on request and no daemon has learned it yet.
        #[serde(default)]
        before: Option<Ending>,
    },
    /// The descriptor is the device, file or folder.
    Opened,
    /// The request was carried out.
    Done,
    /// The fabrics that run.
    Fabrics(Vec<FabricState>),
}

/// A fabric that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FabricState {
    /// Its number.
    pub number: u32,
    /// Its process.
    pub pid: u32,
    /// Its control groups: one in each hierarchy in which it has its own.
    pub cgroups: Vec<PathBuf>,
    /// Measures that the host does not permit.
    pub shortfalls: Vec<Shortfall>,
}

/// What a launcher tells a fabric. The launcher that follows one that was killed connects to the socket of
/// [`Successor`](Self::Successor), and sends [`Daemon`](Self::Daemon) only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToFabric {
    /// The user and the group that the fabric is to become. If it comes, it comes first.
    User(u32),
    /// The descriptor is a bound socket at which the fabric is to listen for the next launcher. It comes before
    /// [`Identity`](Self::Identity), for a spare before its first [`Daemon`](Self::Daemon), or not at all.
    Successor,
    /// The store that the fabric serves. Its descriptor, if it has one, is `/dev/kvm`.
    Identity(StoreIdentity),
    /// A daemon connects. The descriptor is the fabric's end of a new channel.
    Daemon,
    /// The agent that holds the sessions with OpenFlow controllers connects. The descriptor is as with
    /// [`Daemon`](Self::Daemon).
    Agent,
}
