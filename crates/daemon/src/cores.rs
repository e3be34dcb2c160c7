//! Which processors boxes have for themselves, and who keeps away from these.

use crate::error::Failure;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The processors that the daemon may use.
#[derive(Debug)]
pub(crate) struct Cores {
    all: Vec<usize>,
    state: Mutex<State>,
}

/// What keeps someone to processors.
type Keep = Box<dyn Fn(&[usize]) + Send>;

#[derive(Default)]
struct State {
    /// Those that a box has for itself.
    taken: BTreeSet<usize>,
    /// Who shares the others, by number: what is called with these when they change.
    sharers: BTreeMap<u64, Keep>,
    /// The next sharer's number.
    next: u64,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("taken", &self.taken).finish_non_exhaustive()
    }
}

/// A processor that a box has for itself; dropped, it is everybody's.
#[derive(Debug)]
pub(crate) struct Core {
    number: usize,
    cores: Arc<Cores>,
}

/// One that shares processors with others; dropped, it is forgotten.
#[derive(Debug)]
pub(crate) struct Sharer {
    number: u64,
    cores: Arc<Cores>,
}

impl Cores {
    /// All on which the calling thread may run.
    pub(crate) fn new() -> Self {
        let set = sched_getaffinity(None).unwrap_or_default();
        let all = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect();
        Self { all, state: Mutex::default() }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.all.len().max(1)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has someone keep away from processors that boxes have for themselves: `keep` is called with those that are left,
    /// whenever that changes, and at [`Sharer::begin`].
    pub(crate) fn share(self: &Arc<Self>, keep: impl Fn(&[usize]) + Send + 'static) -> Sharer {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.sharers.insert(number, Box::new(keep));
        Sharer { number, cores: self.clone() }
    }

    /// Has the calling thread keep away from them, for as long as it keeps what is returned.
    pub(crate) fn share_thread(self: &Arc<Self>) -> Sharer {
        let thread = rustix::thread::gettid();
        let sharer = self.share(move |processors| {
            let mut set = CpuSet::new();
            processors.iter().for_each(|core| set.set(*core));
            // Where the kernel forbids it the thread runs where the kernel likes: slower, and still right.
            let _ = sched_setaffinity(Some(thread), &set);
        });
        sharer.begin();
        sharer
    }

    /// Takes a processor out of those that are shared. The first stays for the switch and all boxes that have none for
    /// themselves.
    pub(crate) fn take(self: &Arc<Self>) -> Result<Core, Failure> {
        let mut state = self.state();
        let free = self.all.iter().skip(1).rev().find(|core| !state.taken.contains(core));
        let number = *free.ok_or(Failure::NoProcessor { all: self.count() })?;
        state.taken.insert(number);
        self.spread(&state);
        drop(state);
        Ok(Core { number, cores: self.clone() })
    }

    fn shared(&self, state: &State) -> Vec<usize> {
        self.all.iter().copied().filter(|core| !state.taken.contains(core)).collect()
    }

    /// Lets the sharers run on what is shared.
    fn spread(&self, state: &State) {
        let shared = self.shared(state);
        state.sharers.values().for_each(|keep| keep(&shared));
    }
}

impl Core {
    /// The processor's number, as the system counts.
    pub(crate) fn number(&self) -> usize {
        self.number
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        let mut state = self.cores.state();
        state.taken.remove(&self.number);
        self.cores.spread(&state);
    }
}

impl Sharer {
    /// Has it keep away from processors that were taken before it could.
    pub(crate) fn begin(&self) {
        let state = self.cores.state();
        if let Some(keep) = state.sharers.get(&self.number).filter(|_| !state.taken.is_empty()) {
            keep(&self.cores.shared(&state));
        }
    }
}

impl Drop for Sharer {
    fn drop(&mut self) {
        self.cores.state().sharers.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the calling thread may run.
    fn allowed() -> Vec<usize> {
        let set = sched_getaffinity(None).unwrap();
        (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
    }

    #[test]
    fn a_processor_of_ones_own_is_nobody_elses() {
        let cores = Arc::new(Cores::new());
        let all = cores.all.clone();
        if all.len() < 2 {
            eprintln!("SKIPPED: there is one processor only, and boxes can't have it");
            assert!(matches!(cores.take(), Err(Failure::NoProcessor { all: 1 })));
            return;
        }
        let thread = std::thread::spawn(move || {
            let sharer = cores.share_thread();
            assert_eq!(allowed(), all);
            let core = cores.take().unwrap();
            assert_eq!((core.number(), allowed()), (all[all.len() - 1], all[..all.len() - 1].to_vec()));
            // One is left for the others.
            let more: Vec<Core> = std::iter::from_fn(|| cores.take().ok()).collect();
            assert_eq!((more.len(), allowed()), (all.len() - 2, vec![all[0]]));
            assert!(matches!(cores.take(), Err(Failure::NoProcessor { .. })));
            drop(core);
            assert_eq!(allowed(), [all[0], all[all.len() - 1]]);
            drop(more);
            assert_eq!(allowed(), all);
            // Who comes later keeps away, too, and who has left is not called any more.
            let core = cores.take().unwrap();
            let (tell, told) = std::sync::mpsc::channel();
            let late = cores.share(move |shared| tell.send(shared.to_vec()).unwrap());
            late.begin();
            assert_eq!(told.try_recv().unwrap(), all[..all.len() - 1]);
            drop((late, sharer, core));
            assert!(told.recv().is_err());
            assert_eq!(allowed(), all[..all.len() - 1]);
        });
        thread.join().unwrap();
    }
}
