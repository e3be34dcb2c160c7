//! Settings of a box.

use crate::error::{MAX_MEMORY, MIN_MEMORY, SettingsError};
use crate::event_fd::EventFd;
use crate::loaded_image::LoadedImage;
use crate::pool::PacketPool;
use boundary::Slots;
use std::sync::Arc;

/// Settings of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSettings {
    /// The number of slots of each of its two rings.
    pub slots: Slots,
    /// Its MAC address.
    pub mac: [u8; 6],
    /// The longest packet in bytes, without its Ethernet header.
    pub mtu: u16,
}

/// Settings of a box.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The image that it runs. `None`: that of its host. A box in a thread has none.
    pub image: Option<Arc<LoadedImage>>,
    /// Private memory in bytes: variables, heap and stack. Only touched memory is allocated.
    pub memory: usize,
    /// Its ports.
    pub ports: Vec<PortSettings>,
    /// Ring pairs of each port: one for each thread of the host that handles its packets.
    pub pairs: usize,
    /// Packets after which the box ends its turn; 0: when it is idle.
    pub quantum: u32,
    /// Whether it polls for work without ever sleeping, which takes a whole processor.
    pub polls: bool,
    /// The packet pool that it shares with other boxes of its owner. `None`: it has its own buffers. A box in a thread
    /// always has its own.
    pub pool: Option<Arc<PacketPool>>,
    /// Rung by the box to wake a host that sleeps while waiting for packets.
    pub wake_event: Option<Arc<EventFd>>,
    /// Rung, in addition to `wake_event`, when a box without a process ends: for a thread that watches many boxes but not
    /// their packets.
    pub exit_event: Option<Arc<EventFd>>,
}

impl Settings {
    /// A box with `memory` bytes, no ports, and no quantum.
    pub fn new(memory: usize) -> Self {
        Self {
            image: None,
            memory,
            ports: Vec::new(),
            pairs: 1,
            quantum: 0,
            polls: false,
            pool: None,
            wake_event: None,
            exit_event: None,
        }
    }

    /// Checks the memory size. The type of `slots` checks the slots, the region's layout the number of ports.
    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        match (MIN_MEMORY..=MAX_MEMORY).contains(&self.memory) {
            true => Ok(()),
            false => Err(SettingsError::Memory(self.memory)),
        }
    }
}
