//! A fabric's process, from its start by a launcher to its end.

use crate::Settings;
use crate::filter;
use crate::lifecycle::{Fabric, StartError};
use crate::serve::{report, serve, serve_agent};
use protocol::Channel;
use protocol::launcher::{EndReason, FabricEnd, MAX_REQUEST, SuccessorListener, ToFabric};
use sandbox::{Forker, HostSettings, KvmDevice};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a fabric without boxes waits for a daemon.
const EMPTY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a fabric with neither a launcher nor a daemon waits for another launcher.
const ADOPTION_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause between two attempts to accept a launcher, when this process has no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What the threads of the process tell its main thread.
enum Event {
    /// A daemon connects.
    Connected(Channel),
    /// The agent connects.
    Agent(Channel),
    /// The connection with this number has ended.
    Disconnected(u64, Option<String>),
    /// The launcher has gone: no other daemon can connect, unless another launcher can and does.
    Abandoned { is_adoptable: bool },
    /// Another launcher has adopted this fabric.
    Adopted,
}

/// Runs a fabric until a daemon ends it, until it has neither boxes nor a daemon for some time, or until neither a launcher
/// nor a daemon is left and no other launcher adopts it. Before its first daemon it waits as long as its launcher lives.
/// A new daemon takes the place of the one before. This process must have no other thread; from then on it may make only
/// the system calls that a fabric needs.
///
/// # Errors
///
/// The image was rejected, a thread could not be created, or the system call filter was refused.
pub fn run(settings: &Settings, end: FabricEnd) -> Result<(), StartError> {
    // What forks later has the filter too, and the spawner could not work with it.
    let forker = Forker::fork()?;
    let host = HostSettings { kvm: KvmDevice::Given(end.kvm), forker: Some(forker) };
    let fabric = Fabric::start(settings, host, end.store)?;
    // Nothing that a daemon or a box sent was read yet.
    filter::program()?.install()?;
    let (sender, events) = channel();
    let listener = sender.clone();
    let launcher = Arc::new(Mutex::new(Arc::new(end.launcher)));
    let present = launcher.clone();
    std::thread::spawn(move || listen(&present, end.successors, &listener));
    let reason = supervise(&fabric, &sender, &events);
    fabric.end();
    let launcher = launcher.lock().unwrap_or_else(PoisonError::into_inner).clone();
    // One that has ended does not need it.
    let _ = launcher.send(&reason, &[]);
    Ok(())
}

/// Passes on the messages of the launcher, and of those that follow it. The present one is kept in `present`.
fn listen(present: &Mutex<Arc<Channel>>, mut successors: Option<SuccessorListener>, events: &Sender<Event>) {
    let set = |launcher: Arc<Channel>| *present.lock().unwrap_or_else(PoisonError::into_inner) = launcher;
    let mut launcher = present.lock().unwrap_or_else(PoisonError::into_inner).clone();
    loop {
        while let Ok(Some(received)) = launcher.receive::<ToFabric>(MAX_REQUEST) {
            match (received.message, received.descriptors.into_iter().next()) {
                (ToFabric::Daemon, Some(descriptor)) => {
                    // The main thread ends last.
                    let _ = events.send(Event::Connected(Channel::from(descriptor)));
                }
                (ToFabric::Agent, Some(descriptor)) => {
                    let _ = events.send(Event::Agent(Channel::from(descriptor)));
                }
                // Without a listener, this fabric ends some time after its launcher and its daemon.
                (ToFabric::Successor, Some(socket)) => successors = SuccessorListener::listen(socket).ok(),
                _ => {}
            }
        }
        let _ = events.send(Event::Abandoned { is_adoptable: successors.is_some() });
        let Some(successors) = &successors else { return };
        launcher = loop {
            match successors.accept() {
                Ok(launcher) => break Arc::new(launcher),
                Err(_) => std::thread::sleep(ACCEPT_PAUSE),
            }
        };
        set(launcher.clone());
        let _ = events.send(Event::Adopted);
    }
}

/// Returns why the fabric ends.
fn supervise(fabric: &Fabric, sender: &Sender<Event>, events: &Receiver<Event>) -> EndReason {
    let mut number = 0;
    let mut current: Option<(u64, Arc<Channel>)> = None;
    let mut agent: Option<(Arc<Channel>, JoinHandle<()>)> = None;
    let mut is_abandoned = false;
    let mut adoption_timeout = Duration::ZERO;
    // Since when there has been neither a launcher nor a daemon.
    let mut alone_since: Option<Instant> = None;
    loop {
        let left = alone_since.map(|since| adoption_timeout.saturating_sub(since.elapsed()));
        match events.recv_timeout(left.unwrap_or(EMPTY_TIMEOUT)) {
            Ok(Event::Connected(channel)) => {
                // Two daemons would contradict each other.
                if let Some((_, before)) = current.take() {
                    before.shut_down();
                }
                number += 1;
                let channel = Arc::new(channel);
                current = Some((number, channel.clone()));
                let (fabric, sender) = (fabric.clone(), sender.clone());
                std::thread::spawn(move || {
                    let why = serve(&fabric, &channel);
                    let _ = sender.send(Event::Disconnected(number, why));
                });
            }
            Ok(Event::Agent(channel)) => {
                if let Some((before, thread)) = agent.take() {
                    before.shut_down();
                    // What it leaves must not be taken for the next one's. A thread that panicked needs no further cleanup.
                    let _ = thread.join();
                }
                let (own, fabric) = (Arc::new(channel), fabric.clone());
                let channel = own.clone();
                agent = Some((own, std::thread::spawn(move || serve_agent(&fabric, &channel))));
            }
            Ok(Event::Disconnected(ended, why)) => {
                if let Some(why) = why {
                    report(&format!("a connection of a daemon was closed: {why}"));
                }
                if current.take_if(|(number, _)| *number == ended).is_some() && fabric.ends_with_connection()
                {
                    return EndReason::WithDaemon;
                }
            }
            // No daemon was ever connected, so no launcher may adopt it.
            Ok(Event::Abandoned { .. }) if number == 0 => return EndReason::Abandoned,
            Ok(Event::Abandoned { is_adoptable }) => {
                is_abandoned = true;
                adoption_timeout = if is_adoptable { ADOPTION_TIMEOUT } else { Duration::ZERO };
            }
            Ok(Event::Adopted) => is_abandoned = false,
            Err(RecvTimeoutError::Timeout) if number > 0 && current.is_none() && fabric.is_empty() => {
                return EndReason::Empty;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return EndReason::Unknown,
        }
        alone_since = match is_abandoned && current.is_none() {
            true => alone_since.or_else(|| Some(Instant::now())),
            false => None,
        };
        let is_left = alone_since.is_some_and(|since| since.elapsed() >= adoption_timeout);
        if fabric.is_ending() {
            return EndReason::Ordered;
        }
        if is_left {
            return EndReason::Abandoned;
        }
    }
}
