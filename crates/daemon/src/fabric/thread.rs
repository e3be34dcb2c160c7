//! The thread that moves packets, and the commands to it.

use super::network::Network;
use crate::error::OperationError;
use crate::processors::Processors;
use sandbox::EventFd;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the idle thread polls for packets before it sleeps.
const SPIN_TIME: Duration = Duration::from_micros(50);

/// Maximum sleep. Its only use is to recover if a process outside the daemon loses a bell.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Maximum sleep while packets become due by time alone.
const PACED_WAIT: Duration = Duration::from_millis(1);

/// A command that the thread runs between two rounds.
type Command = Box<dyn FnOnce(&mut Network) + Send>;

/// The thread. Dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Fabric {
    bell: Arc<EventFd>,
    orders: Option<Sender<Command>>,
    thread: Option<JoinHandle<()>>,
}

impl Fabric {
    /// Starts the thread on the unreserved processors.
    pub(crate) fn start(cores: Arc<Processors>) -> Result<Self, OperationError> {
        let system = |error| OperationError::system("start the switch's thread", error);
        let bell = EventFd::new()?;
        let bell = Arc::new(bell);
        let (orders, received) = mpsc::channel();
        let mut network = Network::new().map_err(system)?;
        let own = bell.clone();
        let run = move || {
            let _sharer = cores.confine_current_thread();
            run(&mut network, &own, &received);
        };
        let thread = std::thread::Builder::new().name("switch".into()).spawn(run).map_err(system)?;
        Ok(Self { bell, orders: Some(orders), thread: Some(thread) })
    }

    /// The bell that boxes ring when they have packets.
    pub(crate) fn bell(&self) -> Arc<EventFd> {
        self.bell.clone()
    }

    /// Runs a command in the thread, waits, and returns its result.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        order: impl FnOnce(&mut Network) -> T + Send + 'static,
    ) -> Result<T, OperationError> {
        let (tell, answer) = mpsc::channel();
        let order: Command = Box::new(move |network| {
            // The caller may have given up.
            let _ = tell.send(order(network));
        });
        self.orders
            .as_ref()
            .ok_or(OperationError::Ending)?
            .send(order)
            .map_err(|_| OperationError::Ending)?;
        self.bell.ring();
        answer.recv().map_err(|_| OperationError::Ending)
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        self.orders = None;
        self.bell.ring();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked needs no further cleanup.
            let _ = thread.join();
        }
    }
}

fn run(network: &mut Network, bell: &EventFd, orders: &Receiver<Command>) {
    let mut idle = Instant::now();
    loop {
        loop {
            match orders.try_recv() {
                Ok(order) => order(network),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        if network.runners.iter_mut().map(switch::SwitchRunner::step).sum::<usize>() > 0 {
            idle = Instant::now();
        } else if idle.elapsed() >= SPIN_TIME {
            let most = if network.is_paced() { PACED_WAIT } else { MAX_WAIT };
            switch::wait(&mut network.runners, Some(bell.as_fd()), most);
            idle = Instant::now();
        } else {
            std::hint::spin_loop();
        }
    }
}
