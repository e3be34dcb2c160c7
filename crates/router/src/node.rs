//! The router's state of one element.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use click_lang::Location;
use element::{Class, DynElement, ElementState, SignalCell};

use crate::hookup::{PortLinks, PortRef};

/// One element and its state in the router.
pub(crate) struct Node {
    pub(crate) element: ElementState,
    pub(crate) class: &'static Class,
    pub(crate) location: Location,
    /// `None` until the element is created; borrowed during its calls.
    pub(crate) object: RefCell<Option<Box<dyn DynElement>>>,
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    /// Whether packets reach the element one by one.
    pub(crate) serial: bool,
    pub(crate) empty: Notifier,
    pub(crate) full: Notifier,
    /// Nanoseconds and calls of the task, for the `cycles` handler.
    pub(crate) work: Cell<(u64, u64)>,
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
