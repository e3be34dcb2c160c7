//! Spare sandboxes: started before a box needs them, without a configuration.
//!
//! There is at most one of each kind, with the shape that the last box of this kind had. It runs the built-in image and has
//! run no configuration of a user. A box takes it with its own seeds, time and addresses, as a copy does.

use super::pools::shares_packets;
use model::CreateBox;
use sandbox::SandboxKind;
use std::fs::File;
use std::io::{self, Read};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time that a box waits for a spare that is being made. Longer ones may never be ready.
const MAKING_TIMEOUT: Duration = Duration::from_millis(10);

/// The part of the memory that must be available for spares: others need it more.
const MEMORY_RESERVE: u64 = 16;

/// What a box and its spare have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpareShape {
    kind: SandboxKind,
    memory: u64,
    ring: u32,
    ports: usize,
}

impl SpareShape {
    /// The shape of a box. `None` if such boxes have no spares: those with an image of a user, a reserved processor, several
    /// cores, or packets in the pool of their owner.
    pub(crate) fn of(kind: SandboxKind, definition: &CreateBox) -> Option<Self> {
        let has_spares = definition.image.is_none()
            && !definition.dedicated
            && definition.cores.is_one()
            && !shares_packets(definition);
        has_spares.then(|| Self {
            kind,
            memory: definition.memory.0,
            ring: definition.ring.into(),
            ports: definition.ports.len(),
        })
    }
}

/// A spare of a kind.
#[derive(Debug)]
struct Spare<T> {
    shape: SpareShape,
    /// `None`: it is being made.
    made: Option<T>,
    /// When a box of this kind was last started.
    wanted: Instant,
}

/// The spares, at most one of each kind.
#[derive(Debug)]
pub(crate) struct Spares<T> {
    all: Mutex<Vec<Spare<T>>>,
    /// Notified when one was made, or can't be made.
    made: Condvar,
}

impl<T> Default for Spares<T> {
    fn default() -> Self {
        Self { all: Mutex::default(), made: Condvar::new() }
    }
}

impl<T> Spares<T> {
    fn all(&self) -> MutexGuard<'_, Vec<Spare<T>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The spare of this shape, which is then no spare any more. Waits for a moment if it is being made.
    pub(crate) fn take(&self, shape: &SpareShape) -> Option<T> {
        self.take_within(shape, MAKING_TIMEOUT)
    }

    fn take_within(&self, shape: &SpareShape, time: Duration) -> Option<T> {
        let is_making =
            |all: &mut Vec<Spare<T>>| all.iter().any(|spare| spare.shape == *shape && spare.made.is_none());
        let waited = self.made.wait_timeout_while(self.all(), time, is_making);
        let (mut all, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let index = all.iter().position(|spare| spare.shape == *shape && spare.made.is_some())?;
        all.swap_remove(index).made
    }

    /// A box of this shape was started. Returns whether the caller must make a spare, and pass it to [`keep`](Self::keep).
    pub(crate) fn begin(&self, shape: &SpareShape) -> bool {
        let mut all = self.all();
        let wanted = Instant::now();
        let before = all.iter().position(|spare| spare.shape.kind == shape.kind);
        if let Some(spare) = before.and_then(|index| all.get_mut(index))
            && (spare.shape == *shape || spare.made.is_none())
        {
            spare.wanted = wanted;
            return false;
        }
        let replaced = before.map(|index| all.swap_remove(index));
        all.push(Spare { shape: shape.clone(), made: None, wanted });
        drop(all);
        // The end of a sandbox takes its time.
        drop(replaced);
        true
    }

    /// Keeps the spare that was made, if it is still wanted. `None`: it could not be made.
    pub(crate) fn keep(&self, shape: &SpareShape, made: Option<T>) {
        let mut all = self.all();
        let index = all.iter().position(|spare| spare.shape == *shape && spare.made.is_none());
        let unwanted = match (index, made) {
            (Some(index), Some(made)) => all.get_mut(index).and_then(|spare| spare.made.replace(made)),
            (Some(index), None) => all.swap_remove(index).made,
            (None, made) => made,
        };
        drop(all);
        drop(unwanted);
        self.made.notify_all();
    }

    /// Gives up the spares of kinds of which no box was started for this time. Returns whether any had been made.
    pub(crate) fn give_up(&self, idle: Duration) -> bool {
        let gone: Vec<_> = self.all().extract_if(.., |spare| spare.wanted.elapsed() >= idle).collect();
        self.made.notify_all();
        gone.iter().any(|spare| spare.made.is_some())
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.all().is_empty()
    }
}

/// Whether the host has so little memory that there should be no spares.
pub(crate) fn is_memory_short() -> bool {
    memory_report().is_ok_and(|report| is_short(&report))
}

/// The first lines of the kernel's report, which have the figures, by a single read.
fn memory_report() -> io::Result<String> {
    let mut start = vec![0; 512];
    let count = File::open("/proc/meminfo")?.read(&mut start)?;
    start.truncate(count);
    Ok(String::from_utf8_lossy(&start).into_owned())
}

/// Whether the kernel's report says that there is little memory.
fn is_short(report: &str) -> bool {
    let field = |name: &str| -> Option<u64> {
        let figure = report.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        figure.split_ascii_whitespace().next()?.parse().ok()
    };
    match (field("MemTotal"), field("MemAvailable")) {
        (Some(total), Some(available)) => available < total / MEMORY_RESERVE,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{ImageDigest, ImageSource, PortRequest};
    use std::thread;

    fn shape(kind: SandboxKind, ports: usize) -> SpareShape {
        let ports = vec![PortRequest::default(); ports];
        let definition = CreateBox { ports, ..CreateBox::new("fw".parse().unwrap(), "") };
        SpareShape::of(kind, &definition).unwrap()
    }

    #[test]
    fn there_is_one_spare_of_each_kind() {
        let (one, two) = (shape(SandboxKind::Process, 1), shape(SandboxKind::Process, 2));
        let vm = shape(SandboxKind::Vm, 1);
        let spares = Spares::default();
        assert!(spares.is_empty() && spares.take(&one).is_none());
        assert!(spares.begin(&one) && spares.begin(&vm));
        // While it is being made, no other one is.
        assert!(!spares.begin(&one) && !spares.begin(&two));
        spares.keep(&one, Some(1));
        spares.keep(&vm, Some(2));
        assert!(!spares.begin(&one) && !spares.begin(&vm));
        assert_eq!((spares.take(&two), spares.take(&one), spares.take(&one)), (None, Some(1), None));
        // One of another shape takes its place.
        assert!(spares.begin(&one));
        spares.keep(&one, Some(3));
        assert!(spares.begin(&two));
        spares.keep(&two, Some(4));
        assert_eq!(
            (spares.take(&one), spares.take(&two), spares.take(&vm), spares.is_empty()),
            (None, Some(4), Some(2), true)
        );
    }

    #[test]
    fn a_spare_that_is_being_made_is_waited_for() {
        let (one, spares) = (shape(SandboxKind::Process, 1), Spares::default());
        assert!(spares.begin(&one));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| spares.take_within(&one, Duration::from_secs(60)));
            spares.keep(&one, Some(9));
            assert_eq!(waiting.join().unwrap(), Some(9));
        });
        assert!(spares.begin(&one));
        spares.keep(&one, None);
        assert_eq!(spares.take(&one), None, "it can't be made");
        assert!(spares.begin(&one));
        assert_eq!(spares.take(&one), None, "it takes too long");
        spares.keep(&one, Some(1));
        assert_eq!(spares.take(&one), Some(1));
    }

    #[test]
    fn idle_spares_are_given_up() {
        let (one, vm, spares) =
            (shape(SandboxKind::Process, 1), shape(SandboxKind::Vm, 1), Spares::default());
        assert!(spares.begin(&one) && spares.begin(&vm));
        spares.keep(&one, Some(1));
        assert!(!spares.give_up(Duration::MAX) && spares.give_up(Duration::ZERO) && spares.is_empty());
        assert!(!spares.give_up(Duration::ZERO));
        spares.keep(&vm, Some(2));
        assert_eq!((spares.take(&one), spares.take(&vm)), (None, None), "it was given up while it was made");
    }

    #[test]
    fn only_boxes_that_are_like_others_have_spares() {
        let plain = CreateBox::new("fw".parse().unwrap(), "");
        let pipe = PortRequest { attach: "pipe:p".parse().unwrap(), ..PortRequest::default() };
        let others = [
            CreateBox { dedicated: true, ..plain.clone() },
            CreateBox { share_packets: true, ..plain.clone() },
            CreateBox { cores: 2.try_into().unwrap(), ..plain.clone() },
            CreateBox { ports: vec![pipe], ..plain.clone() },
            CreateBox { image: Some(ImageSource::Digest(ImageDigest([7; 32]))), ..plain.clone() },
        ];
        let of = |definition: &CreateBox| SpareShape::of(SandboxKind::Process, definition);
        assert!(of(&plain).is_some());
        others.iter().for_each(|other| assert_eq!(of(other), None, "{other:?}"));
    }

    #[test]
    fn little_memory_is_noticed() {
        let report =
            |available| format!("MemTotal:  1600 kB\nMemFree: 1 kB\nMemAvailable:  {available} kB\n");
        assert_eq!([99, 100].map(|available| is_short(&report(available))), [true, false]);
        assert!(!is_short("") && !is_short("MemTotal: x\nMemAvailable: 1 kB"));
        assert!(memory_report().unwrap().contains("MemAvailable:"));
    }
}
