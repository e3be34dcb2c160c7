//! Paths: the sequences of entries that packets match in the pipeline.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{ActionSet, Operation};

/// No entry.
pub(crate) const NO_ENTRY: u32 = u32::MAX;

/// The path of a packet. Valid until the next change of the pipeline, or the next batch of lookups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathId {
    pub(crate) slot: u32,
    /// A path that ends leaves its slot to another one, of another generation.
    pub(crate) generation: u32,
}

/// One table on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Step {
    pub(crate) table: u8,
    /// The slot of the entry that matched, or `NO_ENTRY`.
    pub(crate) entry: u32,
}

/// The entry whose operations are performed on a packet: controllers that get the packet are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Performer {
    /// Its table.
    pub table: u8,
    /// Its cookie.
    pub cookie: u64,
    /// Whether it is a table-miss entry: of priority zero, for all packets (OpenFlow 1.3.5, 5.4).
    pub is_table_miss: bool,
    /// The metadata of the packet at that moment.
    pub metadata: u64,
}

/// The operations of a path, divided by the entries that they belong to. The action set belongs to the entry that
/// wrote its output.
#[derive(Clone, Debug)]
pub struct Program {
    operations: Arc<[Operation]>,
    /// Where the operations of each entry end.
    ends: Arc<[(usize, Performer)]>,
}

impl Program {
    pub(crate) fn new(operations: Vec<Operation>, ends: Vec<(usize, Performer)>) -> Self {
        Self { operations: operations.into(), ends: ends.into() }
    }

    /// The operations of each entry, in the order in which they are performed.
    pub fn parts(&self) -> impl Iterator<Item = (&[Operation], Performer)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(end, _)| *end));
        starts.zip(self.ends.iter()).map(|(start, (end, performer))| {
            (self.operations.get(start..*end).unwrap_or_default(), *performer)
        })
    }
}

/// What happens to the packets that match one sequence of entries.
#[derive(Debug)]
pub struct Path {
    pub(crate) start: Option<PathId>,
    pub(crate) steps: Box<[Step]>,
    program: Program,
    resume: Option<Resume>,
}

impl Path {
    pub(crate) fn new(
        start: Option<PathId>,
        steps: Box<[Step]>,
        program: Program,
        resume: Option<Resume>,
    ) -> Self {
        Self { start, steps, program, resume }
    }

    /// The steps to perform on the packet, in this order. Without an output among them the packet is dropped.
    #[must_use]
    pub fn operations(&self) -> &[Operation] {
        &self.program.operations
    }

    /// The same operations by entry.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Set if the packet needs another lookup after the operations: they removed a header, and tables that follow match
    /// the headers inside.
    #[must_use]
    pub fn resume(&self) -> Option<&Resume> {
        self.resume.as_ref()
    }

    /// Whether the packet ended in a table without a matching entry (OpenFlow 1.3.5, 5.4).
    #[must_use]
    pub fn is_miss(&self) -> bool {
        self.steps.last().is_none_or(|step| step.entry == NO_ENTRY)
    }

    /// The tables that the packet visited.
    pub fn tables(&self) -> impl Iterator<Item = u8> {
        self.steps.iter().map(|step| step.table)
    }
}

/// Where the pipeline continues after a header was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    pub(crate) table: u8,
    pub(crate) metadata: u64,
    pub(crate) metadata_mask: u64,
    pub(crate) set: ActionSet,
    /// The entry that wrote the output of the set.
    pub(crate) writer: Option<Performer>,
}

/// The counters and the validity of a path. One cache line, read for each packet.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub(crate) struct Hot {
    pub(crate) generation: u32,
    pub(crate) is_alive: bool,
    /// Whether it was used since the last search for unused paths.
    pub(crate) is_used: bool,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// When it was last used, in nanoseconds.
    pub(crate) used: u64,
}

/// The start and steps of a path, which identify it.
type Identity = (Option<PathId>, Box<[Step]>);

/// All paths in use.
#[derive(Default)]
pub(crate) struct Paths {
    pub(crate) hot: Vec<Hot>,
    pub(crate) paths: Vec<Option<Path>>,
    free: Vec<u32>,
    slots: HashMap<Identity, u32>,
    /// Where the search for unused paths continues.
    hand: usize,
}

impl Paths {
    /// The path that starts at `start` and takes these steps.
    pub(crate) fn find(&self, identity: &Identity) -> Option<PathId> {
        let slot = *self.slots.get(identity)?;
        Some(PathId { slot, generation: self.hot.get(slot as usize)?.generation })
    }

    pub(crate) fn insert(&mut self, path: Path) -> PathId {
        let identity = (path.start, path.steps.clone());
        let slot = self.free.pop().unwrap_or_else(|| {
            self.hot.push(Hot::default());
            self.paths.push(None);
            (self.hot.len() - 1) as u32
        });
        self.slots.insert(identity, slot);
        let hot = &mut self.hot[slot as usize];
        *hot = Hot { generation: hot.generation, is_alive: true, is_used: true, ..Hot::default() };
        self.paths[slot as usize] = Some(path);
        PathId { slot, generation: hot.generation }
    }

    /// Whether the path still exists.
    #[inline(always)]
    pub(crate) fn is_alive(&self, id: PathId) -> bool {
        self.hot.get(id.slot as usize).is_some_and(|hot| hot.is_alive && hot.generation == id.generation)
    }

    pub(crate) fn get(&self, id: PathId) -> Option<&Path> {
        if self.is_alive(id) { self.paths.get(id.slot as usize)?.as_ref() } else { None }
    }

    /// Ends a path. Its counters must have been moved to its entries.
    pub(crate) fn remove(&mut self, slot: u32) {
        let Some(path) = self.paths.get_mut(slot as usize).and_then(Option::take) else { return };
        self.slots.remove(&(path.start, path.steps));
        let hot = &mut self.hot[slot as usize];
        hot.is_alive = false;
        hot.generation = hot.generation.wrapping_add(1);
        self.free.push(slot);
    }

    /// Number of paths in use.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The next path that was not used since the last search; after a full turn, any path.
    pub(crate) fn next_unused(&mut self) -> Option<u32> {
        for _ in 0..2 * self.hot.len() {
            let slot = self.hand;
            self.hand = (self.hand + 1) % self.hot.len();
            let hot = &mut self.hot[slot];
            if hot.is_alive && !std::mem::take(&mut hot.is_used) {
                return Some(slot as u32);
            }
        }
        None
    }
}
