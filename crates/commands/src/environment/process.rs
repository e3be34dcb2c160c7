//! The environment of a plain process.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use element::{
    Descriptor, Device, DeviceRequest, DividedRange, Environment, Interface, IoError, Listener, OtherShards,
    Reader, Socket, SocketError, SocketRequest, Stream, Terminal, Writer,
};
use packet::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use signal_hook::SigId;

use super::descriptors::Descriptors;
use super::devices::{self, Devices};
use super::replay::{MemoryCapture, Replay};
use super::shard::{ShardLink, ShardSupport};
use super::{bindings, files, open_socket, sockets};
use crate::{configuration, screen};

/// The signals that stop a run.
const STOP_SIGNALS: [i32; 2] = [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM];

/// This host, as an unprivileged process sees it.
pub(crate) struct ProcessEnvironment {
    descriptors: Descriptors,
    devices: Devices,
    signals: sockets::Signals,
    progress: files::ReadProgress,
    capture: Option<MemoryCapture>,
    interrupted: Arc<AtomicBool>,
    /// The handlers by which signals stop the run, until an element asks for the signal.
    stop_handlers: RefCell<Vec<(i32, SigId)>>,
    /// What it has if this is the environment of a shard.
    shard: Option<ShardSupport>,
}

impl ProcessEnvironment {
    /// Catches SIGINT and SIGTERM: the first one stops the run, a second one ends the process.
    pub(crate) fn new() -> ProcessEnvironment {
        let interrupted = Arc::new(AtomicBool::new(false));
        let mut stop_handlers = Vec::new();
        for signal in STOP_SIGNALS {
            // The order matters: at the first signal the flag is not set yet, so the signal only sets it.
            let end = signal_hook::flag::register_conditional_default(signal, interrupted.clone());
            let stop = signal_hook::flag::register(signal, interrupted.clone());
            // Registration fails only for signals that can't be caught.
            stop_handlers.extend(end.into_iter().chain(stop).map(|id| (signal, id)));
        }
        ProcessEnvironment {
            descriptors: Descriptors::default(),
            devices: Devices::default(),
            signals: sockets::Signals::default(),
            progress: files::ReadProgress::default(),
            capture: None,
            interrupted,
            stop_handlers: RefCell::new(stop_handlers),
            shard: None,
        }
    }

    /// Like `new`, with a capture that is not a file of the host.
    pub(crate) fn with(capture: MemoryCapture) -> ProcessEnvironment {
        ProcessEnvironment { capture: Some(capture), ..ProcessEnvironment::new() }
    }

    /// Like `new`, for one of several shards.
    pub(crate) fn of_shard(link: ShardLink, others: Option<Box<dyn OtherShards>>) -> ProcessEnvironment {
        let environment = ProcessEnvironment::new();
        let shard = ShardSupport::new(link, others, &environment.descriptors);
        for signal in STOP_SIGNALS {
            // Without it, the shard stops when it wakes by itself.
            environment.stop_handlers.borrow_mut().extend(shard.wake_at(signal).map(|id| (signal, id)));
        }
        ProcessEnvironment { shard: Some(shard), ..environment }
    }

    /// The shard's first configuration is built and runs.
    pub(crate) fn start_shard(&self) {
        if let Some(shard) = &self.shard {
            shard.run();
        }
    }

    /// Whether a signal stopped the run.
    pub(crate) fn is_stopped(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// The progress of reading files: bytes read and total bytes.
    pub(crate) fn progress(&self) -> (u64, u64) {
        self.progress.sum()
    }
}

fn clock(id: ClockId) -> Timestamp {
    let time = clock_gettime(id);
    Timestamp::from_parts(time.tv_sec, time.tv_nsec as u32)
}

impl Environment for ProcessEnvironment {
    fn now(&self) -> Timestamp {
        clock(ClockId::Realtime)
    }

    fn steady(&self) -> Timestamp {
        clock(ClockId::Monotonic)
    }

    fn seed(&self) -> u64 {
        use std::hash::{BuildHasher, Hasher};
        std::hash::RandomState::new().build_hasher().finish()
    }

    fn prepare(&self) {
        self.devices.xdp.prepare();
    }

    fn console(&self, text: &str) {
        if self.capture.is_none() {
            screen::print(&configuration::quoted(text));
        }
    }

    fn terminal(&self) -> Option<Terminal> {
        let output = std::io::IsTerminal::is_terminal(&std::io::stdout());
        screen::is_available().then(|| Terminal { columns: screen::size().0, output })
    }

    fn draw(&self, line: &str, last: bool) {
        let line = configuration::quoted(line);
        if last { screen::print(&line) } else { screen::draw(&[line.into_owned()]) }
    }

    fn open(&self, path: &str) -> Result<Box<dyn Reader>, IoError> {
        if let Some(capture) = self.capture.as_ref().filter(|capture| capture.name == path) {
            return Ok(Box::new(Replay::new(capture.clone())));
        }
        match &self.shard {
            Some(shard) => shard.open(path, &self.progress),
            None => files::open(path, &self.progress),
        }
    }

    fn create(&self, path: &str, append: bool) -> Result<Box<dyn Writer>, IoError> {
        match &self.shard {
            Some(shard) => shard.create(path, append),
            None => files::create(path, append),
        }
    }

    fn device(&self, request: &DeviceRequest) -> Result<Box<dyn Device>, IoError> {
        let filter = self.shard.as_ref().and_then(ShardSupport::filter);
        devices::open(request, &self.descriptors, &self.devices, filter, &self.progress)
    }

    fn listen(&self, address: &str) -> Result<Box<dyn Listener>, IoError> {
        sockets::listen(address, &self.descriptors)
    }

    fn connect(&self, address: &str) -> Result<Box<dyn Stream>, IoError> {
        sockets::connect(address, &self.descriptors)
    }

    fn socket(&self, request: &SocketRequest) -> Result<Socket, SocketError> {
        open_socket::open(request, &self.descriptors)
    }

    fn interface(&self, name: &str) -> Option<Interface> {
        bindings::addresses(name)
    }

    fn signal(&self, number: i32) -> Result<Box<dyn Stream>, IoError> {
        let stream = self.signals.open(number, &self.descriptors)?;
        self.stop_handlers
            .borrow_mut()
            .retain(|(signal, id)| *signal != number || !signal_hook::low_level::unregister(*id));
        Ok(stream)
    }

    fn kill(&self, process: i32, signal: i32) -> Result<(), IoError> {
        use rustix::process::{Pid, Signal, kill_process};
        let unknown = || IoError::Failed("no such process or signal".into());
        let pid = Pid::from_raw(process).ok_or_else(unknown)?;
        let signal = Signal::from_named_raw(signal).ok_or_else(unknown)?;
        kill_process(pid, signal).map_err(|error| IoError::Failed(error.to_string()))
    }

    fn process_id(&self) -> u32 {
        std::process::id()
    }

    fn wait(&self, watched: &[(Descriptor, bool, bool)], until: Option<Timestamp>) -> Vec<Descriptor> {
        let limit =
            until.map(|until| Duration::from_nanos((until - self.steady()).nanos().max(0).cast_unsigned()));
        let Some(waker) = self.shard.as_ref().map(ShardSupport::waker) else {
            return self.descriptors.wait(watched, limit);
        };
        let all: Vec<_> = watched.iter().copied().chain([(waker, true, false)]).collect();
        let mut ready = self.descriptors.wait(&all, limit);
        ready.retain(|descriptor| *descriptor != waker);
        ready
    }

    fn is_interrupted(&self) -> bool {
        self.is_stopped() || self.shard.as_ref().is_some_and(ShardSupport::is_woken)
    }

    fn divide(&self, range: DividedRange) -> Result<(), IoError> {
        self.shard.as_ref().map_or(Ok(()), |shard| shard.divide(range))
    }

    fn others(&self) -> Option<&dyn OtherShards> {
        self.shard.as_ref()?.others()
    }
}
