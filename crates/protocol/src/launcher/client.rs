//! A daemon's end of the conversation with a launcher.

use super::ending::Ending;
use super::messages::{FabricState, MAX_REPLY, PortDevice, Reply, Request, Share, VERSION};
use super::refusal::Refusal;
use crate::channel::{Channel, ChannelError, Received};
use crate::hello::{Hello, HelloError, StoreIdentity};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde::de::DeserializeOwned;
use std::error::Error;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a launcher may take to end fabrics, beyond the time limit of a request.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to a launcher. A request that takes too long ends it.
#[derive(Debug)]
pub struct Client {
    channel: Channel,
    timeout: Duration,
    /// The version that the launcher speaks.
    peer_version: u16,
}

/// A fabric that was connected.
#[derive(Debug)]
pub struct ConnectedFabric {
    /// The fabric.
    pub state: FabricState,
    /// It was started for this connection. Otherwise it ran before.
    pub is_new: bool,
    /// How the fabric ended that had this number before, if that was not on request.
    pub before: Option<Ending>,
    /// The daemon's end of the conversation with it.
    pub channel: Channel,
}

/// Why a launcher cannot be used, or did not carry out a request.
#[derive(Debug)]
pub enum LauncherError {
    /// The program of the launcher cannot be started.
    Start(PathBuf, io::Error),
    /// No launcher can be reached at this path.
    Connect(PathBuf, io::Error),
    /// The conversation failed. Connect again.
    Channel(ChannelError),
    /// The launcher speaks another version.
    Hello(HelloError),
    /// The launcher's message is no reply to the request. Connect again.
    NotAReply,
    /// The launcher refused the request.
    Refused(Refusal),
}

impl Client {
    /// Connects to the launcher at `path` for the daemon of `store`. Connecting and each request may take `timeout`.
    pub fn connect(path: &Path, store: StoreIdentity, timeout: Duration) -> Result<Client, LauncherError> {
        let failed = |error: rustix::io::Errno| LauncherError::Connect(path.into(), error.into());
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(failed)?;
        // A launcher that does not accept lets `connect` wait for the send limit.
        set_limit(socket.as_fd(), timeout).map_err(failed)?;
        connect(&socket, &SocketAddrUnix::new(path).map_err(failed)?).map_err(failed)?;
        let mut client = Client { channel: Channel::from(socket), timeout, peer_version: VERSION };
        let hello = Hello { version: VERSION, store };
        client.channel.send(&hello, &[]).or_else(|error| match error {
            // The launcher may have refused the connection already.
            ChannelError::Closed => Ok(()),
            error => Err(client.failed(error)),
        })?;
        let theirs = client.receive::<Result<Hello, Refusal>>()?;
        let theirs = theirs.message.map_err(LauncherError::Refused)?;
        hello.agree(&theirs).map_err(LauncherError::Hello)?;
        client.peer_version = theirs.version;
        Ok(client)
    }

    /// The version that the launcher speaks.
    pub fn peer_version(&self) -> u16 {
        self.peer_version
    }

    /// A connection to the fabric with this number. It is started if it does not run. The channel to a fabric that is
    /// just ending closes at once: ask again.
    pub fn connect_fabric(&mut self, number: u32) -> Result<ConnectedFabric, LauncherError> {
        self.connected(&Request::Connect(number), number)
    }

    /// Like [`connect_fabric`](Self::connect_fabric), for one of several fabrics, which gets this share if it is started.
    pub fn connect_fabric_with(
        &mut self,
        number: u32,
        share: Share,
    ) -> Result<ConnectedFabric, LauncherError> {
        self.connected(&Request::ConnectShare(number, share), number)
    }

    fn connected(&mut self, request: &Request, number: u32) -> Result<ConnectedFabric, LauncherError> {
        let received = self.request(request, self.timeout)?;
        match (received.message, one(received.descriptors)) {
            (Reply::Connected { fabric: state, is_new, before }, Some(descriptor))
                if state.number == number =>
            {
                Ok(ConnectedFabric { state, is_new, before, channel: Channel::from(descriptor) })
            }
            _ => Err(self.confused()),
        }
    }

    /// Has the agent of the fabric with this number started, unless it runs.
    pub fn start_agent(&mut self, fabric: u32) -> Result<(), LauncherError> {
        self.done(&Request::StartAgent(fabric), self.timeout)
    }

    /// A device or file, opened.
    pub fn open(&mut self, device: PortDevice) -> Result<OwnedFd, LauncherError> {
        one(self.open_all(device)?).ok_or_else(|| self.confused())
    }

    /// A device or file, opened, with all its descriptors.
    pub fn open_all(&mut self, device: PortDevice) -> Result<Vec<OwnedFd>, LauncherError> {
        let received = self.request(&Request::Open(device), self.timeout)?;
        match received.message {
            Reply::Opened if !received.descriptors.is_empty() => Ok(received.descriptors),
            _ => Err(self.confused()),
        }
    }

    /// The folder for the files that boxes write.
    pub fn open_folder(&mut self, path: PathBuf, fabric: u32) -> Result<OwnedFd, LauncherError> {
        let received = self.request(&Request::OpenFolder(path, fabric), self.timeout)?;
        match (received.message, one(received.descriptors)) {
            (Reply::Opened, Some(descriptor)) => Ok(descriptor),
            _ => Err(self.confused()),
        }
    }

    /// Lets the launcher forget a device. It is no error if the launcher does not know it.
    pub fn close(&mut self, device: PortDevice) -> Result<(), LauncherError> {
        self.done(&Request::Close(device), self.timeout)
    }

    /// Gives the launcher the descriptor of a device that an earlier launcher opened, to keep it.
    pub fn keep(&mut self, device: PortDevice, descriptor: BorrowedFd<'_>) -> Result<(), LauncherError> {
        let received = self.request_with(&Request::Keep(device), &[descriptor], self.timeout)?;
        match received.message {
            Reply::Done => Ok(()),
            _ => Err(self.confused()),
        }
    }

    /// The launcher's process.
    pub fn peer_process(&self) -> Option<i32> {
        socket_peercred(&self.channel).ok().map(|peer| peer.pid.as_raw_pid())
    }

    /// A duplicate of the socket, which reports a hang-up when the conversation has ended.
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        self.channel.as_fd().try_clone_to_owned()
    }

    /// Whether the conversation has ended.
    pub fn has_ended(&self) -> bool {
        let mut ready = [PollFd::new(&self.channel, PollFlags::empty())];
        poll(&mut ready, Some(&Timespec::default())).is_ok_and(|count| count > 0)
    }

    /// Ends the conversation.
    pub fn shut_down(&self) {
        self.channel.shut_down();
    }

    /// The fabrics that run.
    pub fn fabrics(&mut self) -> Result<Vec<FabricState>, LauncherError> {
        let received = self.request(&Request::Fabrics, self.timeout)?;
        match received.message {
            Reply::Fabrics(fabrics) => Ok(fabrics),
            _ => Err(self.confused()),
        }
    }

    /// Ends the fabric with this number, and waits until it has ended.
    pub fn stop(&mut self, number: u32) -> Result<(), LauncherError> {
        self.done(&Request::Stop(number), self.timeout + STOP_TIMEOUT)
    }

    /// Ends all fabrics, and waits until they have ended.
    pub fn stop_all(&mut self) -> Result<(), LauncherError> {
        self.done(&Request::StopAll, self.timeout + STOP_TIMEOUT)
    }

    /// Ends all fabrics and the launcher, and waits until they have ended. A launcher that stays without clients ends its
    /// fabrics only.
    pub fn end(&mut self) -> Result<(), LauncherError> {
        match self.done(&Request::End, self.timeout + STOP_TIMEOUT) {
            Err(LauncherError::Channel(ChannelError::Closed)) => Ok(()),
            result => result,
        }
    }

    fn done(&mut self, request: &Request, timeout: Duration) -> Result<(), LauncherError> {
        match self.request(request, timeout)?.message {
            Reply::Done => Ok(()),
            _ => Err(self.confused()),
        }
    }

    fn request(&mut self, request: &Request, timeout: Duration) -> Result<Received<Reply>, LauncherError> {
        self.request_with(request, &[], timeout)
    }

    fn request_with(
        &mut self,
        request: &Request,
        descriptors: &[BorrowedFd<'_>],
        timeout: Duration,
    ) -> Result<Received<Reply>, LauncherError> {
        set_limit(self.channel.as_fd(), timeout).map_err(|error| self.failed(error.into()))?;
        self.channel.send(request, descriptors).map_err(|error| self.failed(error))?;
        let received = self.receive::<Result<Reply, Refusal>>()?;
        let message = received.message.map_err(LauncherError::Refused)?;
        Ok(Received { message, descriptors: received.descriptors })
    }

    fn receive<T: DeserializeOwned>(&self) -> Result<Received<T>, LauncherError> {
        match self.channel.receive(MAX_REPLY) {
            Ok(Some(received)) => Ok(received),
            Ok(None) => Err(self.failed(ChannelError::Closed)),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Ends the conversation, because a late reply would be taken for the next one.
    fn failed(&self, error: ChannelError) -> LauncherError {
        self.channel.shut_down();
        LauncherError::Channel(error)
    }

    fn confused(&self) -> LauncherError {
        self.channel.shut_down();
        LauncherError::NotAReply
    }
}

impl LauncherError {
    /// Whether nothing listens at the path, or what listened there was just about to end.
    pub fn is_absent(&self) -> bool {
        use io::ErrorKind::{ConnectionRefused, NotFound};
        match self {
            Self::Connect(_, error) => matches!(error.kind(), ConnectionRefused | NotFound),
            Self::Channel(ChannelError::Closed) => true,
            _ => false,
        }
    }
}

pub(super) fn set_limit(socket: std::os::fd::BorrowedFd<'_>, timeout: Duration) -> rustix::io::Result<()> {
    // The system takes a limit of zero for none.
    let limit = Some(timeout.max(Duration::from_millis(1)));
    set_socket_timeout(socket, Timeout::Send, limit)?;
    set_socket_timeout(socket, Timeout::Recv, limit)
}

/// The only descriptor.
fn one(descriptors: Vec<OwnedFd>) -> Option<OwnedFd> {
    <[OwnedFd; 1]>::try_from(descriptors).ok().map(|[descriptor]| descriptor)
}

impl fmt::Display for LauncherError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(path, _) => write!(f, "can't start {}", path.display()),
            Self::Connect(path, _) => write!(f, "no launcher responds at {}", path.display()),
            Self::Channel(_) => f.write_str("the conversation with the launcher failed"),
            Self::Hello(_) => f.write_str("the launcher can't work with this daemon"),
            Self::NotAReply => f.write_str("the launcher's message is no reply to the request"),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl Error for LauncherError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Start(_, error) | Self::Connect(_, error) => Some(error),
            Self::Channel(error) => Some(error),
            Self::Hello(error) => Some(error),
            // `Display` prints the cause's own message.
            Self::Refused(refusal) => refusal.source(),
            Self::NotAReply => None,
        }
    }
}
