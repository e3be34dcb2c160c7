//! Snapshots: the state of a box at one moment, from which copies are created.
//!
//! A box that was installed and initialised once can be copied many times, without parsing its configuration again. The
//! copies share nothing. A copy recognises itself by the generation in its status page, and finds new seeds, the time,
//! and the addresses of its ports in its boot page.

use crate::memory::{PAGE, Pages};
use crate::settings::Settings;
use kvm_bindings::{kvm_regs, kvm_xsave};
use std::fmt;
use std::os::fd::OwnedFd;

/// The private state of a box.
pub(crate) enum PrivateState {
    /// The registers and the memory of a virtual machine.
    Vm { registers: Box<kvm_regs>, vectors: Box<kvm_xsave>, dense: Pages, sparse: Pages },
    /// The memory of a process, in a file in the format that the image reads. Its registers are on its stack.
    Process { file: OwnedFd, size: usize },
}

/// The state of a box.
pub struct Snapshot {
    pub(crate) settings: Settings,
    pub(crate) private: PrivateState,
    pub(crate) shared: SharedState,
}

/// The state that a box shares with its host.
pub(crate) struct SharedState {
    pub(crate) pages: Pages,
    /// Positions of the mailbox's channels: requests, replies, events.
    pub(crate) channels: [u32; 3],
    /// Positions of each port's rings: receive, transmit.
    pub(crate) ports: Vec<[u32; 2]>,
    pub(crate) generation: u32,
    pub(crate) clone_safe: Option<bool>,
}

impl Snapshot {
    /// The snapshot's size in bytes.
    pub fn size(&self) -> usize {
        let private = match &self.private {
            PrivateState::Vm { dense, sparse, .. } => (dense.len() + sparse.len()) * PAGE,
            PrivateState::Process { size, .. } => *size,
        };
        private + self.shared.pages.len() * PAGE
    }

    /// Whether the box reported that a copy is equivalent to a fresh installation: it has derived nothing from its
    /// ports' addresses, which may differ in copies, has no fixed seed, and waits for no point in time. `None` if the
    /// box was not idle.
    pub fn is_clone_safe(&self) -> Option<bool> {
        self.shared.clone_safe
    }

    /// The settings of a copy: the structure of the snapshotted box, with addresses and run-time settings as requested.
    pub(crate) fn merge(&self, requested: &Settings) -> Settings {
        let mut settings = self.settings.clone();
        settings.quantum = requested.quantum;
        settings.polls = requested.polls;
        settings.wake_event = requested.wake_event.clone();
        settings.exit_event = requested.exit_event.clone();
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

/// Why a box cannot be copied.
#[derive(Debug)]
pub enum SnapshotError {
    /// It is not running.
    NotRunning,
    /// It is not idle.
    NotIdle,
    /// Packets, requests, replies or events are in transit.
    Busy,
    /// Its packets are in a pool that it shares with other boxes.
    Pooled,
    /// It runs in a thread, which cannot be copied.
    Thread,
    /// A system call failed.
    System(crate::error::SystemError),
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRunning => write!(f, "the box is not running"),
            Self::NotIdle => write!(f, "the box is not idle"),
            Self::Pooled => write!(f, "a box that shares its packet pool can't be copied"),
            Self::Thread => write!(f, "a box in a thread can't be copied"),
            Self::Busy => write!(f, "the box has packets or messages in transit"),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SnapshotError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::System(error) => error.source(),
            Self::NotRunning | Self::NotIdle | Self::Busy | Self::Pooled | Self::Thread => None,
        }
    }
}

impl From<crate::error::SystemError> for SnapshotError {
    fn from(error: crate::error::SystemError) -> Self {
        Self::System(error)
    }
}
