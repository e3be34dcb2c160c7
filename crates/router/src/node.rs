//! The router's state of one element.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::ops::Deref;

use click_lang::Location;
use element::{Class, DynElement, ElementState, SignalCell};

use crate::hookup::{PortLinks, PortRef};

/// One element and its state in the router. It holds what a delivery reads. Everything else is behind a pointer, so that many
/// nodes stay in the cache.
pub(crate) struct Node {
    /// `None` until the element is created; borrowed during its calls.
    pub(crate) object: RefCell<Option<Box<dyn DynElement>>>,
    pub(crate) element: ElementState,
    pub(crate) details: Box<NodeDetails>,
}

/// The part of a node that a delivery does not read.
pub(crate) struct NodeDetails {
    pub(crate) class: &'static Class,
    pub(crate) location: Location,
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    pub(crate) empty: Notifier,
    pub(crate) full: Notifier,
    /// Nanoseconds and calls of the task, for the `cycles` handler.
    pub(crate) work: Cell<(u64, u64)>,
}

impl Deref for Node {
    type Target = NodeDetails;

    #[inline]
    fn deref(&self) -> &NodeDetails {
        &self.details
    }
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
    /// The number of the last search for notifiers that came here.
    pub(crate) searched: Cell<u64>,
    /// Whether all packets that the input pulls from queues arrive, once known.
    pub(crate) passes_whole: Cell<Option<bool>>,
    /// Packets pulled through the port. Those that are pushed are counted at their connection.
    pub(crate) pulled: Cell<u64>,
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
        Port {
            links,
            peer,
            forwards_to: Cell::new(None),
            forwarding: Cell::new(false),
            searched: Cell::new(0),
            passes_whole: Cell::new(None),
            pulled: Cell::new(0),
        }
    }

    #[inline]
    pub(crate) fn add(&self, count: usize) {
        self.pulled.set(self.pulled.get() + count as u64);
    }
}
