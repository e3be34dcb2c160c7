//! The router's state of one element.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use click_lang::Location;
use element::{Class, DynElement, Reason, SignalCell};
use reason::FRAMEWORK;

use crate::hookup::{PortLinks, PortRef};

/// One element and its state in the router.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) class: &'static Class,
    pub(crate) config: RefCell<String>,
    pub(crate) location: Location,
    /// `None` until the element is created; borrowed during its calls.
    pub(crate) object: RefCell<Option<Box<dyn DynElement>>>,
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    pub(crate) groups: Vec<u16>,
    pub(crate) serial: bool,
    /// Dropped packets by reason, in the order in which the reasons first occurred.
    pub(crate) drops: RefCell<Vec<(Reason, u64)>>,
    /// The drop reasons that the element declared for users' functions.
    pub(crate) user_reasons: RefCell<Vec<Reason>>,
    pub(crate) random: Cell<u64>,
    pub(crate) empty: Notifier,
    pub(crate) full: Notifier,
    /// Nanoseconds and calls of the task, for the `cycles` handler.
    pub(crate) work: Cell<(u64, u64)>,
    /// The thread that the element is assigned to.
    pub(crate) thread: Cell<usize>,
}

/// A port while the router runs.
pub(crate) struct Port {
    pub(crate) links: PortLinks,
    /// The connected port of a push output or a pull input.
    pub(crate) peer: Option<PortRef>,
    /// The input to which pulls at this output are forwarded, bypassing the element; and whether a forwarded pull is in
    /// progress.
    pub(crate) forwards_to: Cell<Option<usize>>,
    pub(crate) forwarding: Cell<bool>,
    pub(crate) count: Cell<u64>,
}

/// A signal of an element, and its listeners.
pub(crate) struct Notifier {
    pub(crate) cell: SignalCell,
    pub(crate) listeners: RefCell<Vec<usize>>,
}

impl Notifier {
    /// An active notifier.
    pub(crate) fn active() -> Notifier {
        Notifier { cell: SignalCell::new(true), listeners: RefCell::default() }
    }
}

impl Port {
    pub(crate) fn new(links: PortLinks) -> Port {
        let peer = links.peers.first().copied();
        Port { links, peer, forwards_to: Cell::new(None), forwarding: Cell::new(false), count: Cell::new(0) }
    }

    #[inline]
    pub(crate) fn add(&self, count: usize) {
        self.count.set(self.count.get() + count as u64);
    }
}

impl Node {
    /// Counts dropped packets.
    #[inline]
    pub(crate) fn drop(&self, reason: Reason, count: u64) {
        let mut drops = self.drops.borrow_mut();
        match drops.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, sum)) => *sum += count,
            None => self.first_drop(&mut drops, reason, count),
        }
    }

    /// Adds a counter for a new reason; an undeclared reason is counted as such.
    #[cold]
    fn first_drop(&self, drops: &mut Vec<(Reason, u64)>, reason: Reason, count: u64) {
        let is_declared = self.may_drop(reason);
        debug_assert!(is_declared, "{} drops packets as {}: undeclared", self.class.info.name, reason.name());
        let reason = if is_declared { reason } else { Reason::UNDECLARED };
        match drops.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, sum)) => *sum += count,
            None => drops.push((reason, count)),
        }
    }

    /// Whether the class, the element or the framework declares the reason.
    fn may_drop(&self, reason: Reason) -> bool {
        self.class.info.drops.contains(&reason)
            || FRAMEWORK.contains(&reason)
            || self.user_reasons.borrow().contains(&reason)
    }
}
