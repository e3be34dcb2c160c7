//! What a box is made of.

use crate::error::{MAX_MEMORY, MIN_MEMORY, SettingsError};
use crate::event_fd::EventFd;
use crate::pool::PacketPool;
use boundary::Slots;
use std::sync::Arc;

/// A port of a box to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSettings {
    /// Slots of each of its two rings.
    pub slots: Slots,
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// Longest packet without its Ethernet header, bytes.
    pub mtu: u16,
}

/// A box to be.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Private memory in bytes: variables, heap and stack. Only what the box touches is really taken.
    pub memory: usize,
    /// Its ports.
    pub ports: Vec<PortSettings>,
    /// Packets after which the box gives its turn back; 0: when it has nothing to do.
    pub quantum: u32,
    /// Whether it looks for work without ever resting, which takes a processor of its own.
    pub polls: bool,
    /// The pool that its packets lie in, shared with others of the same owner; else it has buffers of its own. Boxes in
    /// threads always have.
    pub pool: Option<Arc<PacketPool>>,
    /// What the box rings when the host sleeps beside its packets.
    pub bell: Option<Arc<EventFd>>,
    /// What rings when the box ends and has no process of its own, beside the bell above: for whoever
    /// looks after many boxes, and not after their packets.
    pub end_bell: Option<Arc<EventFd>>,
}

impl Settings {
    /// A box with so much memory, no ports, and no quantum.
    pub fn new(memory: usize) -> Self {
        Self { memory, ports: Vec::new(), quantum: 0, polls: false, pool: None, bell: None, end_bell: None }
    }

    /// Checks the memory. Slots are checked by their type, the number of ports by the area's layout.
    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        match (MIN_MEMORY..=MAX_MEMORY).contains(&self.memory) {
            true => Ok(()),
            false => Err(SettingsError::Memory(self.memory)),
        }
    }
}
