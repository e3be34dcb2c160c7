//! What a router knows about one of its elements.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::{Cell, Ref, RefCell};

use reason::Reason;

use crate::class_info::ClassInfo;
use crate::drops::DropCounters;
use crate::fate::Fate;
use crate::fate_counters::FateCounters;
use crate::random::RandomSequence;
use crate::text;

/// What a router knows about one of its elements, beside the element itself and its connections.
#[derive(Debug)]
pub struct ElementState {
    /// The element's index.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Its class.
    pub class: &'static ClassInfo,
    /// The numbers of connected inputs and outputs.
    pub ports: (usize, usize),
    /// The order group of each output port; ports beyond its length are in group 0.
    pub groups: Vec<u16>,
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
}

impl ElementState {
    /// An element with a configuration text, two port counts, and the order groups of its outputs. `seed` is that of
    /// the router.
    pub fn new(
        index: usize,
        (name, class, config): (&str, &'static ClassInfo, &str),
        ports: (usize, usize),
        groups: Vec<u16>,
        seed: u64,
    ) -> ElementState {
        ElementState {
            index,
            name: name.to_string(),
            class,
            ports,
            groups,
            random: RandomSequence::new(seed, index),
            drops: DropCounters::default(),
            fates: FateCounters::default(),
            taken_over: Cell::new(0),
            handed_over: Cell::new(0),
            thread: Cell::new(0),
            config: RefCell::new(config.to_string()),
            recordings: Cell::new(0),
        }
    }

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
        *self.config.borrow_mut() = config.to_string();
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

    /// Counts packets that the element dropped, under a reason.
    #[inline]
    pub fn count_drops(&self, reason: Reason, count: u64) {
        self.drops.add(self.class, reason, count);
    }

    /// Counts packets under a fate.
    #[inline]
    pub fn count_fate(&self, fate: Fate, count: u64) {
        self.fates.add(self.class, fate, count);
    }
}
