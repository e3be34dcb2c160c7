//! The thread that moves packets, and the commands to it.

use super::attach::Network;
use super::shard_threads::{Bells, ShardThread};
use crate::error::OperationError;
use crate::limits::{COMMAND_POLL_TIME, MAX_WAIT, ROUNDS_PER_EXPIRY};
use crate::processors::Processors;
use boundary::limits::MAX_PAIRS;
use protocol::poll_briefly;
use sandbox::{EventFd, SystemError};
use std::os::fd::AsFd;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A command that the thread runs between two rounds.
type Command = Box<dyn FnOnce(&mut Network) + Send>;

/// The thread. Dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct SwitchThread {
    /// Boxes ring it.
    wake_event: Arc<EventFd>,
    /// Wakes the thread for a command.
    bell: Arc<EventFd>,
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<()>>,
    /// The number of threads, with those beside it.
    threads: usize,
}

/// Pause between two looks at timeouts, if each look stops other threads.
const HOUSEKEEPING_PAUSE: Duration = Duration::from_millis(10);

impl SwitchThread {
    /// Starts the thread on the unreserved processors, and others beside it: `threads` in all. When one is idle, it polls for
    /// packets for `spin_time` before it sleeps.
    pub(crate) fn start(
        cores: Arc<Processors>,
        spin_time: Duration,
        threads: usize,
    ) -> Result<Self, SystemError> {
        let system = |cause| SystemError { action: "start the switch's thread", cause };
        let threads = threads.clamp(1, MAX_PAIRS);
        let wake_event = Arc::new(EventFd::new()?);
        let (commands, received) = mpsc::channel();
        let mut network = Network::new(threads).map_err(system)?;
        // A single thread has one event for everything.
        let own = match threads {
            1 => vec![wake_event.clone()],
            count => (0..count).map(|_| EventFd::new().map(Arc::new)).collect::<Result<_, _>>()?,
        };
        let bell = own[0].clone();
        let bells = Bells { shared: wake_event.clone(), own };
        let mut handles = Vec::new();
        for number in 1..threads {
            let started = ShardThread::start(number, &bells, cores.clone(), spin_time);
            let (thread, handle) = started.map_err(system)?;
            network.threads.push(thread);
            handles.push(handle);
        }
        let run = move || {
            let _sharer = cores.confine_switch_thread(0);
            run(&mut network, &bells, &received, spin_time);
            network.threads.iter().for_each(|thread| thread.end());
            // A thread that panicked needs no further cleanup.
            handles.into_iter().for_each(|handle| drop(handle.join()));
        };
        let thread = std::thread::Builder::new().name("switch".into()).spawn(run).map_err(system)?;
        Ok(Self { wake_event, bell, commands: Some(commands), thread: Some(thread), threads })
    }

    /// The number of threads that run the switches.
    pub(crate) fn threads(&self) -> usize {
        self.threads
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
        self.begin(command)?.wait()
    }

    /// Has a command run in the thread, after the commands before it.
    pub(crate) fn begin<T: Send + 'static>(
        &self,
        command: impl FnOnce(&mut Network) -> T + Send + 'static,
    ) -> Result<Begun<T>, OperationError> {
        // The result has a place of its own, because each type that a channel carries costs several kilobytes of code.
        let result = Arc::new(Mutex::new(None));
        let own = result.clone();
        let done = self.send(Box::new(move |network| {
            let result = command(network);
            *own.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }))?;
        Ok(Begun { done, result })
    }

    /// Passes a command to the thread. Returns what says when it has run.
    fn send(&self, command: Command) -> Result<Receiver<()>, OperationError> {
        let (sender, done) = mpsc::channel();
        let command: Command = Box::new(move |network| {
            command(network);
            // The caller waits as long as the thread runs, or has no use for the result.
            let _ = sender.send(());
        });
        self.commands
            .as_ref()
            .ok_or(OperationError::Ending)?
            .send(command)
            .map_err(|_| OperationError::Ending)?;
        self.bell.ring();
        Ok(done)
    }
}

/// A command that the thread runs, or will run.
#[derive(Debug)]
pub(crate) struct Begun<T> {
    done: Receiver<()>,
    result: Arc<Mutex<Option<T>>>,
}

impl<T> Begun<T> {
    /// Waits until the command has run, and returns its result.
    pub(crate) fn wait(self) -> Result<T, OperationError> {
        await_end(&self.done)?;
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        result.take().ok_or(OperationError::Ending)
    }
}

/// Waits until a command has run. It is the same code for all results.
fn await_end(done: &Receiver<()>) -> Result<(), OperationError> {
    let polled = poll_briefly(COMMAND_POLL_TIME, || done.try_recv().ok());
    polled.map_or_else(|| done.recv().map_err(|_| OperationError::Ending), Ok)
}

impl Drop for SwitchThread {
    fn drop(&mut self) {
        self.commands = None;
        self.bell.ring();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked needs no further cleanup.
            let _ = thread.join();
        }
    }
}

impl Network {
    /// Stops the other threads, and takes their shards. All frames that were between two shards have arrived then.
    fn stop_threads(&mut self) {
        self.threads.iter().for_each(|thread| thread.stop());
        for thread in &self.threads {
            for (switch, runner) in self.runners.iter_mut().zip(thread.take()) {
                switch.put_back(thread.number(), runner);
            }
        }
        if !self.threads.is_empty() {
            self.runners.iter_mut().for_each(switch::Shards::settle);
        }
    }

    /// Lets the other threads go on.
    fn resume_threads(&mut self) {
        for thread in &self.threads {
            let number = thread.number();
            thread.resume(self.runners.iter_mut().filter_map(|switch| switch.take(number)).collect());
        }
    }
}

fn run(network: &mut Network, bells: &Bells, commands: &Receiver<Command>, spin_time: Duration) {
    let mut idle = Instant::now();
    let mut rounds = 0u32;
    let shared = (bells.own.len() > 1).then(|| bells.shared.as_fd());
    let own = bells.own.first().map(|bell| bell.as_fd());
    let mut looked = Instant::now();
    let mut next_look = Duration::ZERO;
    network.resume_threads();
    loop {
        let mut is_stopped = false;
        loop {
            match commands.try_recv() {
                Ok(command) => {
                    if !std::mem::replace(&mut is_stopped, true) {
                        network.stop_threads();
                    }
                    command(network);
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    if !is_stopped {
                        network.stop_threads();
                    }
                    return;
                }
            }
        }
        rounds = rounds.wrapping_add(1);
        if network.threads.is_empty() {
            if rounds.is_multiple_of(ROUNDS_PER_EXPIRY) {
                network.expire_flows();
                network.look_for_silence();
            }
        } else if is_stopped || looked.elapsed() >= next_look {
            if !std::mem::replace(&mut is_stopped, true) {
                network.stop_threads();
            }
            let due = [network.expire_flows(), network.look_for_silence(), Some(MAX_WAIT)];
            next_look = due.into_iter().flatten().min().unwrap_or(MAX_WAIT).max(HOUSEKEEPING_PAUSE);
            looked = Instant::now();
        }
        if is_stopped {
            network.resume_threads();
        }
        if network.runners.iter_mut().map(|switch| switch.first().step()).sum::<usize>() > 0 {
            idle = Instant::now();
        } else if idle.elapsed() >= spin_time {
            let most = match shared {
                None => {
                    let due = [network.expire_flows(), network.look_for_silence(), Some(MAX_WAIT)];
                    due.into_iter().flatten().min().unwrap_or(MAX_WAIT)
                }
                Some(_) => next_look.saturating_sub(looked.elapsed()),
            };
            // What a command woke needs no polling afterwards: it takes the time of the threads that command.
            let runners = network.runners.iter_mut().map(switch::Shards::first);
            if switch::wait_shared(runners, own, shared, most) {
                bells.pass_on(0);
            }
        } else {
            std::hint::spin_loop();
        }
    }
}
