//! Reserves processors for boxes, and keeps all other threads off them.

use crate::error::OperationError;
use crate::numa;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where the kernel says which processors are at which memory.
const NODES: &str = "/sys/devices/system/node";

/// The processors that the daemon may use.
#[derive(Debug)]
pub(crate) struct Processors {
    all: Vec<usize>,
    /// Those of each NUMA node that has any. None if the kernel does not say.
    nodes: Vec<BTreeSet<usize>>,
    state: Mutex<State>,
}

/// Restricts a thread or process to these processors.
type ApplyAffinity = Box<dyn Fn(&[usize]) + Send>;

#[derive(Default)]
struct State {
    /// Processors that are reserved for a box.
    reserved: BTreeSet<usize>,
    /// Called with the unreserved processors whenever they change, by subscription number.
    subscribers: BTreeMap<u64, ApplyAffinity>,
    /// The next subscription's number.
    next: u64,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("reserved", &self.reserved).finish_non_exhaustive()
    }
}

/// A processor reserved for a box. Dropping it releases the processor.
#[derive(Debug)]
pub(crate) struct ReservedProcessor {
    number: usize,
    cores: Arc<Processors>,
}

/// A subscription to the unreserved processors. Dropping it ends the subscription.
#[derive(Debug)]
pub(crate) struct AffinityGuard {
    number: u64,
    cores: Arc<Processors>,
}

impl Processors {
    /// The processors on which the calling thread may run.
    pub(crate) fn new() -> Self {
        let set = sched_getaffinity(None).unwrap_or_default();
        let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect();
        let nodes = numa::nodes(Path::new(NODES), &all);
        Self { all, nodes, state: Mutex::default() }
    }

    /// The number of processors.
    pub(crate) fn count(&self) -> usize {
        self.all.len().max(1)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Subscribes to the unreserved processors: `keep` is called with them whenever they change, and by
    /// [`AffinityGuard::apply`].
    pub(crate) fn subscribe(self: &Arc<Self>, keep: impl Fn(&[usize]) + Send + 'static) -> AffinityGuard {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.subscribers.insert(number, Box::new(keep));
        AffinityGuard { number, cores: self.clone() }
    }

    /// Keeps a switch thread, which calls this, off reserved processors until the guard is dropped. On a host with several
    /// NUMA nodes, the threads take turns at the nodes, and each stays at its own. The kernel gives a thread memory of the
    /// node where it first uses it.
    pub(crate) fn confine_switch_thread(self: &Arc<Self>, number: usize) -> AffinityGuard {
        let thread = rustix::thread::gettid();
        let node = match self.nodes.len() {
            0 | 1 => None,
            count => self.nodes.get(number % count).cloned(),
        };
        let sharer = self.subscribe(move |processors| {
            let mut set = CpuSet::new();
            numa::at(node.as_ref(), processors).for_each(|core| set.set(core));
            // If the kernel refuses, the thread may run on any processor: slower, but correct.
            let _ = sched_setaffinity(Some(thread), &set);
        });
        sharer.apply();
        sharer
    }

    /// Reserves a processor. The first one is never reserved: it stays for the switch and the other boxes.
    pub(crate) fn reserve(self: &Arc<Self>) -> Result<ReservedProcessor, OperationError> {
        let mut state = self.state();
        let free = self.all.iter().skip(1).rev().find(|core| !state.reserved.contains(core));
        let number = *free.ok_or(OperationError::NoProcessor { all: self.count() })?;
        state.reserved.insert(number);
        self.notify(&state);
        drop(state);
        Ok(ReservedProcessor { number, cores: self.clone() })
    }

    fn shared(&self, state: &State) -> Vec<usize> {
        self.all.iter().copied().filter(|core| !state.reserved.contains(core)).collect()
    }

    /// Calls the subscribers with the unreserved processors.
    fn notify(&self, state: &State) {
        let shared = self.shared(state);
        state.subscribers.values().for_each(|keep| keep(&shared));
    }
}

impl ReservedProcessor {
    /// The processor's number in the kernel.
    pub(crate) fn number(&self) -> usize {
        self.number
    }
}

impl Drop for ReservedProcessor {
    fn drop(&mut self) {
        let mut state = self.cores.state();
        state.reserved.remove(&self.number);
        self.cores.notify(&state);
    }
}

impl AffinityGuard {
    /// Applies the current restriction, for a subscriber that could not be restricted earlier.
    pub(crate) fn apply(&self) {
        let state = self.cores.state();
        let is_restricted = !state.reserved.is_empty() || self.cores.nodes.len() > 1;
        if let Some(keep) = state.subscribers.get(&self.number).filter(|_| is_restricted) {
            keep(&self.cores.shared(&state));
        }
    }
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        self.cores.state().subscribers.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_support::{Capability, skip};

    /// The processors on which the calling thread may run.
    fn allowed() -> Vec<usize> {
        let set = sched_getaffinity(None).unwrap();
        (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
    }

    #[test]
    fn switch_threads_take_turns_at_the_nodes() {
        let all = Processors::new().all;
        let (Some(&first), Some(&last)) = (all.first(), all.last()) else { panic!("no processor") };
        if first == last {
            skip(Capability::Processors, "two nodes need two");
            return;
        }
        let nodes = vec![BTreeSet::from([first]), all.iter().copied().skip(1).collect()];
        let cores = Arc::new(Processors { all: all.clone(), nodes, state: Mutex::default() });
        let at = |number| {
            let cores = cores.clone();
            let run = move || {
                let _sharer = cores.confine_switch_thread(number);
                let before = allowed();
                let _reserved = cores.reserve().unwrap();
                (before, allowed())
            };
            std::thread::spawn(run).join().unwrap()
        };
        let (left, rest) = (all[..all.len() - 1].to_vec(), all[1..].to_vec());
        // A node whose processors are all reserved is left for those of the others.
        let left_there = if rest.len() == 1 { left } else { rest[..rest.len() - 1].to_vec() };
        assert_eq!(
            [at(0), at(1), at(2)],
            [(vec![first], vec![first]), (rest, left_there), (vec![first], vec![first])]
        );
    }

    #[test]
    fn a_reserved_cpu_is_used_by_no_other_thread() {
        let cores = Arc::new(Processors::new());
        let all = cores.all.clone();
        if all.len() < 2 {
            assert!(matches!(cores.reserve(), Err(OperationError::NoProcessor { all: 1 })));
            skip(Capability::Processors, "boxes can't have the only one");
            return;
        }
        let thread = std::thread::spawn(move || {
            let sharer = cores.confine_switch_thread(0);
            assert_eq!(allowed(), all);
            let core = cores.reserve().unwrap();
            assert_eq!((core.number(), allowed()), (all[all.len() - 1], all[..all.len() - 1].to_vec()));
            // One is left for the others.
            let more: Vec<ReservedProcessor> = std::iter::from_fn(|| cores.reserve().ok()).collect();
            assert_eq!((more.len(), allowed()), (all.len() - 2, vec![all[0]]));
            assert!(matches!(cores.reserve(), Err(OperationError::NoProcessor { .. })));
            drop(core);
            assert_eq!(allowed(), [all[0], all[all.len() - 1]]);
            drop(more);
            assert_eq!(allowed(), all);
            // Later subscribers are restricted too, and dropped ones are not called any more.
            let core = cores.reserve().unwrap();
            let (sender, received) = std::sync::mpsc::channel();
            let late = cores.subscribe(move |shared| sender.send(shared.to_vec()).unwrap());
            late.apply();
            assert_eq!(received.try_recv().unwrap(), all[..all.len() - 1]);
            drop((late, sharer, core));
            assert!(received.recv().is_err());
            assert_eq!(allowed(), all[..all.len() - 1]);
        });
        thread.join().unwrap();
    }
}
