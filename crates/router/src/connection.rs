//! Connections of push outputs.

use core::cell::Cell;

use crate::hookup::PortLinks;

/// Where packets go that an element emits to one of its outputs.
pub(crate) struct Connection {
    /// The index of the element that they are pushed to. If the output does not push, of the one that emitted them.
    pub(crate) element: u32,
    /// The input that they are pushed to.
    pub(crate) input: u16,
    pub(crate) arrival: Arrival,
    /// Whether packets are stamped, because the element splits them among outputs that gather.
    pub(crate) stamps: bool,
    /// Whether the packets arrive by several inputs, which their stamps name.
    pub(crate) is_mixed: bool,
    /// Packets pushed so far.
    pub(crate) packets: Cell<u64>,
}

/// How packets arrive at the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    InBatches,
    OneByOne,
    /// They don't: the output does not push.
    Never,
}

impl Connection {
    /// The connection of an output of `element`. `serial` says which elements get packets one by one.
    pub(crate) fn new(element: usize, output: &PortLinks, serial: &[bool], stamps: bool) -> Connection {
        let peer = output.peers.first().filter(|_| output.push);
        let peer = peer.and_then(|(to, input)| Some((*to, u16::try_from(*input).ok()?)));
        let (element, input, arrival) = match peer {
            Some((to, input)) if serial.get(to) == Some(&false) => (to, input, Arrival::InBatches),
            Some((to, input)) => (to, input, Arrival::OneByOne),
            None => (element, 0, Arrival::Never),
        };
        let (element, packets) = (element as u32, Cell::new(0));
        Connection { element, input, arrival, stamps, is_mixed: false, packets }
    }

    /// The connection through which gathered packets leave their place. They are counted where they were gathered.
    pub(crate) fn of_place(
        (element, input): (usize, usize),
        is_serial: bool,
        stamps: bool,
        is_mixed: bool,
    ) -> Connection {
        let (element, input, packets) = (element as u32, input as u16, Cell::new(0));
        let arrival = if is_serial { Arrival::OneByOne } else { Arrival::InBatches };
        Connection { element, input, arrival, stamps, is_mixed, packets }
    }

    /// Takes back the count of packets that will be pushed again.
    pub(crate) fn take_back(&self, count: usize) {
        self.packets.set(self.packets.get() - count as u64);
    }

    /// Counts packets.
    #[inline]
    pub(crate) fn add(&self, count: usize) {
        self.packets.set(self.packets.get() + count as u64);
    }
}
