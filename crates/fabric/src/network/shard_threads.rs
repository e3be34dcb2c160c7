//! The threads that run the switches beside the first one.
//!
//! Each of them has a shard of each switch, and owns it while it runs. A command stops all of them between two rounds, and gets
//! their shards: so it changes all shards at once, and reads what belongs together.

use crate::limits::MAX_WAIT;
use crate::processors::Processors;
use sandbox::EventFd;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use switch::{ForwardingMode, SwitchRunner};

/// One of the threads.
#[derive(Debug)]
pub(super) struct ShardThread {
    /// Its shard in each switch.
    number: usize,
    state: Mutex<ShardState>,
    resumed: Condvar,
    /// Whether it must give up its shards after the present round.
    is_stopped: AtomicBool,
    bell: Arc<EventFd>,
}

#[derive(Debug, Default)]
struct ShardState {
    /// The shards of all switches, in their order, while the thread runs them.
    runners: Vec<SwitchRunner<ForwardingMode>>,
    ends: bool,
}

/// What wakes the threads.
#[derive(Clone, Debug)]
pub(super) struct Bells {
    /// Boxes ring it, whichever thread sleeps.
    pub(super) shared: Arc<EventFd>,
    /// Of each thread.
    pub(super) own: Vec<Arc<EventFd>>,
}

impl Bells {
    /// Wakes all threads but one, because it has read the event that all wait for.
    pub(super) fn pass_on(&self, from: usize) {
        let others = self.own.iter().enumerate().filter(|(number, _)| *number != from);
        others.for_each(|(_, bell)| bell.ring());
    }
}

impl ShardThread {
    /// Starts the thread, stopped.
    pub(super) fn start(
        number: usize,
        bells: &Bells,
        cores: Arc<Processors>,
        spin_time: Duration,
    ) -> io::Result<(Arc<Self>, JoinHandle<()>)> {
        let bell = bells.own.get(number).cloned().ok_or_else(|| io::Error::other("a thread has no bell"))?;
        let thread = Arc::new(Self {
            number,
            state: Mutex::default(),
            resumed: Condvar::new(),
            is_stopped: AtomicBool::new(true),
            bell,
        });
        let (own, bells) = (thread.clone(), bells.clone());
        let run = move || {
            let _sharer = cores.confine_switch_thread(number);
            own.run(&bells, spin_time);
        };
        let handle = std::thread::Builder::new().name(format!("switch {number}")).spawn(run)?;
        Ok((thread, handle))
    }

    fn state(&self) -> MutexGuard<'_, ShardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, bells: &Bells, spin_time: Duration) {
        let mut state = self.state();
        loop {
            let stopped = |state: &mut ShardState| !state.ends && self.is_stopped.load(Ordering::Acquire);
            state = self.resumed.wait_while(state, stopped).unwrap_or_else(PoisonError::into_inner);
            if state.ends {
                return;
            }
            let mut idle = Instant::now();
            while !self.is_stopped.load(Ordering::Acquire) {
                if state.runners.iter_mut().map(SwitchRunner::step).sum::<usize>() > 0 {
                    idle = Instant::now();
                } else if idle.elapsed() >= spin_time {
                    let (own, shared) = (Some(self.bell.as_fd()), Some(bells.shared.as_fd()));
                    if switch::wait_shared(state.runners.iter_mut(), own, shared, MAX_WAIT) {
                        bells.pass_on(self.number);
                    }
                } else {
                    std::hint::spin_loop();
                }
            }
        }
    }

    /// Its shard in each switch.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Has the thread stop after the present round. Its shards must be taken then.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        self.bell.ring();
    }

    /// Takes the shards of the thread, which stops: waits for the end of its round.
    pub(super) fn take(&self) -> Vec<SwitchRunner<ForwardingMode>> {
        std::mem::take(&mut self.state().runners)
    }

    /// Lets the thread go on with its shards.
    pub(super) fn resume(&self, runners: Vec<SwitchRunner<ForwardingMode>>) {
        self.state().runners = runners;
        self.is_stopped.store(false, Ordering::Release);
        self.resumed.notify_one();
    }

    /// Ends the thread, which must be stopped.
    pub(super) fn end(&self) {
        self.state().ends = true;
        self.resumed.notify_one();
    }
}
