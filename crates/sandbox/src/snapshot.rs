//! A box as it is at one moment, from which others are made.
//!
//! A box that has been installed and initialised once is copied many times, without parsing its
//! configuration again. The copies share nothing; each learns by its status page's generation that it is
//! one, and finds other seeds, the time, and the addresses of its ports in its boot page.

use crate::memory::{PAGE, Pages};
use crate::settings::Settings;
use kvm_bindings::{kvm_regs, kvm_xsave};
use std::fmt;
use std::os::fd::OwnedFd;

/// What a box had for itself.
pub(crate) enum PrivateState {
    /// A machine's registers and memory.
    Vm { registers: Box<kvm_regs>, vectors: Box<kvm_xsave>, dense: Pages, sparse: Pages },
    /// A process's memory, in a file as the image reads it; its registers are on its stack.
    Process { file: OwnedFd, size: usize },
}

/// A box as it was.
pub struct Snapshot {
    pub(crate) settings: Settings,
    pub(crate) private: PrivateState,
    pub(crate) shared: SharedState,
}

/// What a box shared with its host.
pub(crate) struct SharedState {
    pub(crate) area: Pages,
    /// Where the mailbox's channels stood: requests, replies, events.
    pub(crate) channels: [u32; 3],
    /// Where each port's rings stood: receive, transmit.
    pub(crate) ports: Vec<[u32; 2]>,
    pub(crate) generation: u32,
    pub(crate) clone_safe: Option<bool>,
}

impl Snapshot {
    /// Bytes of memory that it holds.
    pub fn size(&self) -> usize {
        let private = match &self.private {
            PrivateState::Vm { dense, sparse, .. } => (dense.len() + sparse.len()) * PAGE,
            PrivateState::Process { size, .. } => *size,
        };
        private + self.shared.area.len() * PAGE
    }

    /// Whether the box said that a copy of it is as good as a box that is installed anew: it has made nothing of its
    /// ports' addresses, which may be others for copies, has no seed of its own choice, and waits for no moment. `None`
    /// if it was taken while the box did not rest.
    pub fn is_clone_safe(&self) -> Option<bool> {
        self.shared.clone_safe
    }

    /// The settings of a copy: what the box is made of as it was, what it is told and how it is run as
    /// requested.
    pub(crate) fn merge(&self, requested: &Settings) -> Settings {
        let mut settings = self.settings.clone();
        settings.quantum = requested.quantum;
        settings.polls = requested.polls;
        settings.bell = requested.bell.clone();
        settings.end_bell = requested.end_bell.clone();
        for (port, requested) in settings.ports.iter_mut().zip(&requested.ports) {
            (port.mac, port.mtu) = (requested.mac, requested.mtu);
        }
        settings
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("size", &self.size()).finish_non_exhaustive()
    }
}

/// Why a box can't be copied.
#[derive(Debug)]
pub enum SnapshotError {
    /// It isn't running.
    NotRunning,
    /// Packets, requests or events are under way.
    Busy,
    /// Its packets lie in a pool that it shares with others.
    Pooled,
    /// It is a thread, which can't be copied.
    Thread,
    /// The system.
    System(crate::error::SystemError),
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRunning => write!(f, "the box is not running"),
            Self::Pooled => write!(f, "a box that shares its packet pool can't be copied"),
            Self::Thread => write!(f, "a box in a thread can't be copied"),
            Self::Busy => write!(f, "packets or messages of the box are under way"),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SnapshotError {}

impl From<crate::error::SystemError> for SnapshotError {
    fn from(error: crate::error::SystemError) -> Self {
        Self::System(error)
    }
}
