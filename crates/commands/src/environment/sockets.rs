//! Non-blocking TCP and Unix sockets, and signals as streams.
//!
//! Addresses: `tcp:HOST:PORT`, `unix:PATH`, `fd:NUMBER`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use element::{Descriptor, Io, IoError, Listener, Stream};
use signal_hook::SigId;

use super::descriptors::Descriptors;
use super::files::io_error;

/// The path of a Unix socket, which is removed on drop.
pub(super) struct SocketFile(pub(super) String);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It may have been replaced or removed in the meantime.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A connection of either kind.
pub(super) struct Connection<S> {
    socket: Rc<S>,
    descriptor: Descriptor,
    pub(super) peer: Option<String>,
    pub(super) name: Option<SocketFile>,
}

impl<S: AsFd + 'static> Connection<S> {
    pub(super) fn new(socket: S, descriptors: &Descriptors) -> Connection<S> {
        let socket = Rc::new(socket);
        let descriptor = descriptors.register(&socket);
        Connection { socket, descriptor, peer: None, name: None }
    }
}

/// The result of a non-blocking transfer.
pub(super) fn io_result(result: io::Result<usize>, reading: bool) -> Result<Io, IoError> {
    match result {
        Ok(0) if reading => Ok(Io::Closed),
        Ok(count) => Ok(Io::Done(count)),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(Io::Wait),
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => {
                Ok(Io::Closed)
            }
            _ => Err(io_error(&error)),
        },
    }
}

impl<S> Stream for Connection<S>
where
    for<'a> &'a S: Read + Write,
{
    fn read(&mut self, into: &mut [u8]) -> Result<Io, IoError> {
        io_result((&*self.socket).read(into), !into.is_empty())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Io, IoError> {
        io_result((&*self.socket).write(bytes), false)
    }

    fn descriptor(&self) -> Descriptor {
        self.descriptor
    }

    fn peer(&self) -> Option<String> {
        self.peer.clone()
    }
}

/// A listening socket of either kind.
pub(super) struct ListeningSocket<S> {
    socket: Rc<S>,
    descriptor: Descriptor,
    descriptors: Descriptors,
    local: String,
    pub(super) name: Option<SocketFile>,
    /// Whether its connections send small segments at once (`TCP_NODELAY`).
    pub(super) no_delay: bool,
}

impl<S: AsFd + 'static> ListeningSocket<S> {
    pub(super) fn new(socket: S, descriptors: &Descriptors, local: String) -> ListeningSocket<S> {
        let socket = Rc::new(socket);
        let descriptor = descriptors.register(&socket);
        let descriptors = descriptors.clone();
        ListeningSocket { socket, descriptor, descriptors, local, name: None, no_delay: true }
    }

    fn poll_accept<T>(&self, result: io::Result<T>) -> Result<Option<T>, IoError> {
        match result {
            Ok(stream) => Ok(Some(stream)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(io_error(&error)),
        }
    }
}

impl Listener for ListeningSocket<TcpListener> {
    fn accept(&mut self) -> Result<Option<Box<dyn Stream>>, IoError> {
        let Some((stream, peer)) = self.poll_accept(self.socket.accept())? else { return Ok(None) };
        stream
            .set_nonblocking(true)
            .and_then(|()| stream.set_nodelay(self.no_delay))
            .map_err(|error| io_error(&error))?;
        let mut connection = Connection::new(stream, &self.descriptors);
        connection.peer = Some(peer.to_string());
        Ok(Some(Box::new(connection)))
    }

    fn descriptor(&self) -> Descriptor {
        self.descriptor
    }

    fn local(&self) -> String {
        self.local.clone()
    }
}

impl Listener for ListeningSocket<UnixListener> {
    fn accept(&mut self) -> Result<Option<Box<dyn Stream>>, IoError> {
        let Some((stream, _)) = self.poll_accept(self.socket.accept())? else { return Ok(None) };
        stream.set_nonblocking(true).map_err(|error| io_error(&error))?;
        Ok(Some(Box::new(Connection::new(stream, &self.descriptors))))
    }

    fn descriptor(&self) -> Descriptor {
        self.descriptor
    }

    fn local(&self) -> String {
        self.local.clone()
    }
}

/// Listens at an address.
pub(super) fn listen(address: &str, descriptors: &Descriptors) -> Result<Box<dyn Listener>, IoError> {
    let (kind, rest) = address.split_once(':').unwrap_or((address, ""));
    let failed = |error: io::Error| io_error(&error);
    match kind {
        "tcp" => {
            let socket = TcpListener::bind(rest).map_err(failed)?;
            socket.set_nonblocking(true).map_err(failed)?;
            let local = socket.local_addr().map_err(failed)?.port().to_string();
            Ok(Box::new(ListeningSocket::new(socket, descriptors, local)))
        }
        "unix" => {
            let socket = UnixListener::bind(rest).map_err(failed)?;
            socket.set_nonblocking(true).map_err(failed)?;
            let mut listening = ListeningSocket::new(socket, descriptors, rest.to_string());
            listening.name = Some(SocketFile(rest.to_string()));
            Ok(Box::new(listening))
        }
        _ => Err(IoError::Unsupported("this kind of socket")),
    }
}

/// Opens an inherited connection by its address.
pub(super) fn connect(address: &str, descriptors: &Descriptors) -> Result<Box<dyn Stream>, IoError> {
    match address.split_once(':') {
        Some(("fd", number)) => open_inherited(number, descriptors),
        _ => Err(IoError::Unsupported("this kind of socket")),
    }
}

/// A connection inherited by the process: a duplicate of its descriptor. Because the original stays open, closing it
/// shuts down the socket.
struct Inherited(Connection<UnixStream>);

impl Stream for Inherited {
    fn read(&mut self, into: &mut [u8]) -> Result<Io, IoError> {
        self.0.read(into)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Io, IoError> {
        self.0.write(bytes)
    }

    fn descriptor(&self) -> Descriptor {
        self.0.descriptor
    }
}

impl Drop for Inherited {
    fn drop(&mut self) {
        // The peer may already have closed it.
        let _ = self.0.socket.shutdown(std::net::Shutdown::Both);
    }
}

fn open_inherited(number: &str, descriptors: &Descriptors) -> Result<Box<dyn Stream>, IoError> {
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
    let failed = |error: rustix::io::Errno| io_error(&error.into());
    let number = number.parse().map_err(|_| IoError::Failed("bad file descriptor".into()))?;
    let process = pidfd_open(getpid(), PidfdFlags::empty()).map_err(failed)?;
    let copy = pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).map_err(failed)?;
    // Read, write and shutdown are the same for every kind of stream socket.
    let socket = UnixStream::from(copy);
    socket.set_nonblocking(true).map_err(|error| io_error(&error))?;
    Ok(Box::new(Inherited(Connection::new(socket, descriptors))))
}

/// The caught signals.
#[derive(Default)]
pub(super) struct Signals {
    caught: Rc<RefCell<HashMap<i32, CaughtSignal>>>,
}

struct CaughtSignal {
    /// The number of open streams for the signal.
    streams: usize,
    /// Set while there are none; the signal then has its default effect.
    has_default_effect: Arc<AtomicBool>,
}

/// A stream for a signal.
struct SignalStream {
    connection: Connection<UnixStream>,
    number: i32,
    id: SigId,
    caught: Rc<RefCell<HashMap<i32, CaughtSignal>>>,
}

impl Stream for SignalStream {
    fn read(&mut self, into: &mut [u8]) -> Result<Io, IoError> {
        self.connection.read(into)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Io, IoError> {
        self.connection.write(bytes)
    }

    fn descriptor(&self) -> Descriptor {
        self.connection.descriptor
    }
}

impl Drop for SignalStream {
    fn drop(&mut self) {
        signal_hook::low_level::unregister(self.id);
        if let Some(caught) = self.caught.borrow_mut().get_mut(&self.number) {
            caught.streams -= 1;
            caught.has_default_effect.store(caught.streams == 0, Ordering::Relaxed);
        }
    }
}

impl Signals {
    /// A stream that yields a byte for each arrival of a signal.
    pub(super) fn open(&self, number: i32, descriptors: &Descriptors) -> Result<Box<dyn Stream>, IoError> {
        let failed = |error: io::Error| io_error(&error);
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        ours.set_nonblocking(true).map_err(failed)?;
        let id = signal_hook::low_level::pipe::register(number, theirs).map_err(failed)?;
        let mut caught = self.caught.borrow_mut();
        if let Some(caught) = caught.get_mut(&number) {
            caught.streams += 1;
            caught.has_default_effect.store(false, Ordering::Relaxed);
        } else {
            let has_default_effect = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register_conditional_default(number, has_default_effect.clone())
                .map_err(failed)?;
            caught.insert(number, CaughtSignal { streams: 1, has_default_effect });
        }
        let connection = Connection::new(ours, descriptors);
        Ok(Box::new(SignalStream { connection, number, id, caught: self.caught.clone() }))
    }
}
