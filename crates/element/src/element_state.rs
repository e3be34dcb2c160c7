//! What a router knows about one of its elements.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::{Cell, Ref, RefCell};
use core::ops::Deref;

use packet::MAX_SCATTER;
use reason::Reason;

use crate::class_info::ClassInfo;
use crate::counting::CountingElements;
use crate::drops::DropCounters;
use crate::fate::Fate;
use crate::fate_counters::FateCounters;
use crate::gathered::{Gathering, Split};
use crate::random::RandomSequence;
use crate::text;

/// What a router knows about one of its elements, beside the element itself and its connections.
///
/// It holds what an emission reads. Everything else is behind a pointer, so that the states of many elements stay in the cache.
#[derive(Debug)]
pub struct ElementState {
    /// The order group of each output; outputs beyond its length are in group 0.
    groups: Box<[u16]>,
    /// The router's number of the connection of output 0. Those of the other outputs follow.
    first_connection: u32,
    /// Where each output gathers packets; empty if none does.
    gatherings: Box<[Option<Gathering>]>,
    split: Option<Split>,
    /// The number of connected outputs.
    outputs: u32,
    /// Whether each output fills batches of its own, so that a batch can be scattered over all of them at once.
    scatters: bool,
    /// Whether it is in `counting`.
    counts: Cell<bool>,
    /// The element's index.
    pub index: usize,
    details: Box<ElementDetails>,
}

/// The part of an element's state that moving packets does not read.
#[derive(Debug)]
pub struct ElementDetails {
    /// Its class.
    pub class: &'static ClassInfo,
    /// Its name.
    pub name: String,
    /// The numbers of connected inputs and outputs.
    pub ports: (usize, usize),
    /// The random sequence of its own.
    pub random: RandomSequence,
    /// Dropped packets.
    pub drops: DropCounters,
    /// Packets by fate.
    pub fates: FateCounters,
    /// Packets that it took over outside its inputs: from another element, or from one of the configuration before.
    pub taken_over: Cell<u64>,
    /// Packets that it handed over to another element outside its outputs.
    pub handed_over: Cell<u64>,
    /// The thread that the element is assigned to, which the handler `home_thread` shows.
    pub thread: Cell<usize>,
    config: RefCell<String>,
    recordings: Cell<u32>,
    /// The elements of the router that count packets.
    counting: Rc<CountingElements>,
}

impl ElementState {
    /// An element with a configuration text, two port counts, and the first connection and the order groups of its
    /// outputs, and where these gather packets. `seed` and `counting` are those of the router.
    pub fn new(
        index: usize,
        (name, class, config): (&str, &'static ClassInfo, &str),
        ports: (usize, usize),
        (first_connection, groups, gatherings, split): (
            usize,
            Vec<u16>,
            Vec<Option<Gathering>>,
            Option<Split>,
        ),
        seed: u64,
        counting: &Rc<CountingElements>,
    ) -> ElementState {
        let details = ElementDetails {
            class,
            name: name.to_string(),
            ports,
            random: RandomSequence::new(seed, index),
            drops: DropCounters::default(),
            fates: FateCounters::default(),
            taken_over: Cell::new(0),
            handed_over: Cell::new(0),
            thread: Cell::new(0),
            config: RefCell::new(config.to_string()),
            recordings: Cell::new(0),
            counting: counting.clone(),
        };
        let group = |port: usize| groups.get(port).copied().unwrap_or(0);
        let gathers_apart = |port: usize| {
            gatherings
                .get(port)
                .and_then(Option::as_ref)
                .is_some_and(|gathering: &Gathering| gathering.split.is_none())
        };
        let scatters = ports.1 < MAX_SCATTER
            && (0..ports.1)
                .all(|port| !gathers_apart(port) && (0..port).all(|other| group(other) != group(port)));
        ElementState {
            split,
            scatters,
            counts: Cell::new(false),
            groups: groups.into(),
            gatherings: gatherings.into(),
            first_connection: first_connection as u32,
            outputs: ports.1 as u32,
            index,
            details: Box::new(details),
        }
    }

    /// The router's number of the connection of output `port`; `None` if the output does not exist.
    #[inline]
    pub fn connection(&self, port: usize) -> Option<u32> {
        (port < self.outputs()).then_some(self.first_connection + port as u32)
    }

    /// Where output `port` gathers packets, if it does.
    #[inline]
    pub fn gathering(&self, port: usize) -> Option<&Gathering> {
        self.gatherings.get(port)?.as_ref()
    }

    /// What the element is as a split, if it splits batches among outputs that gather.
    pub fn split(&self) -> Option<Split> {
        self.split
    }

    /// The order group of output `port`.
    #[inline]
    pub fn group(&self, port: usize) -> u32 {
        self.groups.get(port).copied().unwrap_or(0).into()
    }

    /// Whether each output fills batches of its own, and there are fewer than [`MAX_SCATTER`].
    #[inline]
    pub fn scatters(&self) -> bool {
        self.scatters
    }

    /// Counts packets that the element dropped, under a reason.
    #[inline]
    pub fn count_drops(&self, reason: Reason, count: u64) {
        self.note_counts();
        self.drops.add(self.class, reason, count);
    }

    /// Counts packets under a fate.
    #[inline]
    pub fn count_fate(&self, fate: Fate, count: u64) {
        self.note_counts();
        self.fates.add(self.class, fate, count);
    }

    #[inline]
    fn note_counts(&self) {
        if !self.counts.replace(true) {
            self.counting.add(self.index);
        }
    }

    /// The number of connected outputs.
    #[inline]
    pub fn outputs(&self) -> usize {
        self.outputs as usize
    }
}

impl Deref for ElementState {
    type Target = ElementDetails;

    #[inline]
    fn deref(&self) -> &ElementDetails {
        &self.details
    }
}

impl ElementDetails {
    /// The name of its class.
    pub fn class_name(&self) -> &'static str {
        self.class.name
    }

    /// The text of its configuration.
    pub fn config(&self) -> Ref<'_, String> {
        self.config.borrow()
    }

    /// How often a new configuration was recorded.
    pub fn recordings(&self) -> u32 {
        self.recordings.get()
    }

    /// Records a new configuration, without side effects.
    pub fn record_config(&self, config: &str) {
        self.record_owned_config(config.to_string());
    }

    /// Records a new configuration without copying it, without side effects.
    pub fn record_owned_config(&self, config: String) {
        *self.config.borrow_mut() = config;
        self.recordings.set(self.recordings.get().wrapping_add(1));
    }

    /// Records a new value of an argument in the configuration, at its position or after its keyword, without side
    /// effects. A purely positional argument has no keyword.
    pub fn record_argument(&self, position: Option<usize>, keyword: &str, value: &str) {
        let mut arguments = text::split_arguments(&self.config());
        let words = text::words;
        let is_named =
            |text: &str| words(text).first().is_some_and(|first| first == keyword && first != text);
        arguments.retain(|text| !is_named(text));
        // Text that starts with a word and continues may be another argument with its keyword.
        let is_bare = |text: &str| {
            let spaced = text.starts_with(|first: char| first.is_ascii_alphabetic()) && words(text).len() > 1;
            keyword.is_empty() || !spaced
        };
        match position.and_then(|position| arguments.get_mut(position)).filter(|text| is_bare(text)) {
            Some(argument) => *argument = value.to_string(),
            None => arguments.push([keyword, value].join(" ")),
        }
        self.record_config(&arguments.join(", "));
    }
}
