//! The loop of a launcher.

use crate::error::RunError;
use crate::event::Event;
use crate::listener::Listener;
use crate::privileges;
use crate::service::Service;
use crate::settings::Settings;
use protocol::launcher::{Shortfall, Step};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::stdio::dup2_stdin;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// Runs a launcher until SIGTERM, SIGINT or SIGHUP, or until it has been idle. It then ends its fabrics.
///
/// It changes limits, capabilities and signal handlers of this process for good, and must be called before the process
/// has other threads.
pub fn run(settings: Settings, report: &mut dyn FnMut(&Event)) -> Result<(), RunError> {
    let (mut signals, sender) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        pipe::register(signal, sender.try_clone()?)?;
    }
    signals.set_nonblocking(true)?;
    let listener = Listener::open(&settings.socket)?;
    let mut settings = settings;
    let wanted = settings.fabric_user.filter(|user| geteuid().is_root() && *user != 0);
    settings.fabric_user = wanted.filter(|user| privileges::can_become(*user));
    let mut shortfalls = privileges::prepare(settings.fabric_user.is_some());
    if wanted != settings.fabric_user {
        shortfalls.push(Shortfall { step: Step::ChangeUser, errno: Errno::PERM.raw_os_error() });
    }
    if settings.closes_input {
        dup2_stdin(File::open("/dev/null")?)?;
    }
    report(&Event::Ready(shortfalls.clone()));
    let mut service = Service::new(settings, shortfalls);
    let mut noted = listener.store();
    service.adopt(noted, report);
    while service.tick(Instant::now()) {
        let ready = wait(&service, &listener, &signals)?;
        let now = Instant::now();
        if ready.signal {
            // Several signals are one.
            while signals.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
            service.end(now);
        }
        // What has ended is known before a request is answered.
        service.reap(report);
        for client in ready.clients {
            service.serve(client, now, report);
        }
        // The store of a client is known before its first fabric is started.
        if let Some(store) = service.store.filter(|store| noted != Some(*store)) {
            listener.note_store(store);
            noted = Some(store);
        }
        if let Some(socket) = ready.listener.then(|| listener.accept()).flatten() {
            service.accept(socket);
        }
    }
    Ok(())
}

/// What happened.
struct Ready {
    signal: bool,
    listener: bool,
    /// Clients with a message or an end.
    clients: Vec<u64>,
}

/// Waits until something happens, or until the service has to do something.
fn wait(service: &Service, listener: &Listener, signals: &UnixStream) -> Result<Ready, RunError> {
    let timeout = service.next_tick().map(|at| at.saturating_duration_since(Instant::now()));
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let mut places =
        vec![PollFd::new(signals, PollFlags::IN), PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
    for client in service.clients.values() {
        // A client that waits for an answer sends nothing; its end is reported all the same.
        let events = if client.waits_for.is_empty() { PollFlags::IN } else { PollFlags::empty() };
        places.push(PollFd::from_borrowed_fd(client.as_fd(), events));
    }
    for fabric in service.fabrics.iter().chain(service.leaving.iter().map(|leaving| &leaving.fabric)) {
        places.push(PollFd::from_borrowed_fd(fabric.pidfd(), PollFlags::IN));
        let agent = fabric.agent.as_ref().and_then(|agent| agent.pidfd());
        places.extend(agent.map(|agent| PollFd::from_borrowed_fd(agent, PollFlags::IN)));
    }
    places.extend(service.spare_pidfd().map(|spare| PollFd::from_borrowed_fd(spare, PollFlags::IN)));
    match poll(&mut places, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let ready: Vec<bool> = places.iter().map(|place| !place.revents().is_empty()).collect();
    let clients = service.clients.keys().zip(ready.iter().skip(2)).filter(|(_, is_ready)| **is_ready);
    Ok(Ready {
        signal: ready.first() == Some(&true),
        listener: ready.get(1) == Some(&true),
        clients: clients.map(|(client, _)| *client).collect(),
    })
}
