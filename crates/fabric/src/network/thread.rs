//! The thread that moves packets, and the commands to it.

use super::attach::Network;
use crate::error::OperationError;
use crate::limits::ROUNDS_PER_EXPIRY;
use crate::processors::Processors;
use sandbox::{EventFd, SystemError};
use std::os::fd::AsFd;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum sleep. Its only use is to recover if a box's process loses a wake-up.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// A command that the thread runs between two rounds.
type Command = Box<dyn FnOnce(&mut Network) + Send>;

/// The thread. Dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct SwitchThread {
    wake_event: Arc<EventFd>,
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<()>>,
}

impl SwitchThread {
    /// Starts the thread on the unreserved processors. When it is idle, it polls for packets for `spin_time` before it
    /// sleeps.
    pub(crate) fn start(cores: Arc<Processors>, spin_time: Duration) -> Result<Self, SystemError> {
        let system = |cause| SystemError { action: "start the switch's thread", cause };
        let wake_event = Arc::new(EventFd::new()?);
        let (commands, received) = mpsc::channel();
        let mut network = Network::new().map_err(system)?;
        let own = wake_event.clone();
        let run = move || {
            let _sharer = cores.confine_current_thread();
            run(&mut network, &own, &received, spin_time);
        };
        let thread = std::thread::Builder::new().name("switch".into()).spawn(run).map_err(system)?;
        Ok(Self { wake_event, commands: Some(commands), thread: Some(thread) })
    }

    /// The event that boxes signal when they have packets.
    pub(crate) fn wake_event(&self) -> Arc<EventFd> {
        self.wake_event.clone()
    }

    /// Runs a command in the thread, waits, and returns its result.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        command: impl FnOnce(&mut Network) -> T + Send + 'static,
    ) -> Result<T, OperationError> {
        // The result has a place of its own, because each type that a channel carries costs several kilobytes of code.
        let result = Arc::new(Mutex::new(None));
        let own = result.clone();
        self.perform(Box::new(move |network| {
            let result = command(network);
            *own.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }))?;
        let mut result = result.lock().unwrap_or_else(PoisonError::into_inner);
        result.take().ok_or(OperationError::Ending)
    }

    /// Runs a command in the thread, and waits.
    fn perform(&self, command: Command) -> Result<(), OperationError> {
        let (sender, done) = mpsc::channel();
        let command: Command = Box::new(move |network| {
            command(network);
            // The caller waits as long as the thread runs.
            let _ = sender.send(());
        });
        self.commands
            .as_ref()
            .ok_or(OperationError::Ending)?
            .send(command)
            .map_err(|_| OperationError::Ending)?;
        self.wake_event.ring();
        done.recv().map_err(|_| OperationError::Ending)
    }
}

impl Drop for SwitchThread {
    fn drop(&mut self) {
        self.commands = None;
        self.wake_event.ring();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked needs no further cleanup.
            let _ = thread.join();
        }
    }
}

fn run(network: &mut Network, wake_event: &EventFd, commands: &Receiver<Command>, spin_time: Duration) {
    let mut idle = Instant::now();
    let mut rounds = 0u32;
    loop {
        loop {
            match commands.try_recv() {
                Ok(command) => command(network),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        rounds = rounds.wrapping_add(1);
        if rounds.is_multiple_of(ROUNDS_PER_EXPIRY) {
            network.expire_flows();
            network.look_for_silence();
        }
        if network.runners.iter_mut().map(switch::SwitchRunner::step).sum::<usize>() > 0 {
            idle = Instant::now();
        } else if idle.elapsed() >= spin_time {
            let due = [network.expire_flows(), network.look_for_silence(), Some(MAX_WAIT)];
            let most = due.into_iter().flatten().min().unwrap_or(MAX_WAIT);
            // What a command woke needs no polling afterwards: it takes the time of the threads that command.
            switch::wait(&mut network.runners, Some(wake_event.as_fd()), most);
        } else {
            std::hint::spin_loop();
        }
    }
}
