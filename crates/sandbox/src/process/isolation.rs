//! What isolates the processes of boxes from their host, besides their system call filter.

use std::fmt;
use std::io;

/// A layer that isolates boxes in processes from their host and from each other.
///
/// The spawner of a host enters most layers once, and its boxes inherit them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// The root folder of boxes is empty and cannot be read or changed.
    EmptyRoot,
    /// Boxes have a network namespace without interfaces.
    Network,
    /// Boxes have an IPC namespace of their own.
    Ipc,
    /// Boxes see a host name of their own.
    HostName,
    /// The user and group of boxes are not those of root.
    User,
    /// Boxes have no capabilities, and can't gain any.
    Capabilities,
    /// Programs that boxes execute gain no privileges.
    NoNewPrivileges,
    /// Each box has a PID namespace of its own.
    OwnPidNamespace,
    /// Each box has a user namespace of its own.
    OwnUserNamespace,
    /// The kernel kills all boxes when their spawner ends, because it is the first process of their PID namespace.
    SpawnerNamespace,
    /// All boxes of a host are in one cgroup.
    Cgroup,
    /// When memory is short, the kernel kills boxes before their host.
    OutOfMemory,
}

impl Layer {
    /// All layers.
    pub const ALL: &[Self] = &[
        Self::EmptyRoot,
        Self::Network,
        Self::Ipc,
        Self::HostName,
        Self::User,
        Self::Capabilities,
        Self::NoNewPrivileges,
        Self::OwnPidNamespace,
        Self::OwnUserNamespace,
        Self::SpawnerNamespace,
        Self::Cgroup,
        Self::OutOfMemory,
    ];

    /// The layer's name, in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EmptyRoot => "empty root folder",
            Self::Network => "network namespace",
            Self::Ipc => "IPC namespace",
            Self::HostName => "UTS namespace",
            Self::User => "unprivileged user",
            Self::Capabilities => "no capabilities",
            Self::NoNewPrivileges => "no new privileges",
            Self::OwnPidNamespace => "own PID namespace",
            Self::OwnUserNamespace => "own user namespace",
            Self::SpawnerNamespace => "PID namespace of the spawner",
            Self::Cgroup => "cgroup",
            Self::OutOfMemory => "out-of-memory score",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A layer that this host does not permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingLayer {
    /// The layer.
    pub layer: Layer,
    /// The step that failed, as in "can't ...".
    pub step: &'static str,
    /// The error number of that step.
    pub errno: i32,
}

impl MissingLayer {
    /// Why it is missing.
    pub fn reason(&self) -> String {
        format!("can't {}: {}", self.step, io::Error::from_raw_os_error(self.errno))
    }
}

impl fmt::Display for MissingLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.layer, self.reason())
    }
}

/// The layers that isolate the boxes of a host that run in processes. Boxes run without those that the host does not
/// permit; the system call filter always confines them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Isolation {
    missing: Vec<MissingLayer>,
}

impl Isolation {
    pub(super) fn new(missing: Vec<MissingLayer>) -> Self {
        Self { missing }
    }

    /// Whether boxes have this layer.
    pub fn holds(&self, layer: Layer) -> bool {
        self.missing.iter().all(|missing| missing.layer != layer)
    }

    /// The layers that boxes do not have, and why.
    pub fn missing(&self) -> &[MissingLayer] {
        &self.missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_layers_are_described() {
        let missing = MissingLayer { layer: Layer::Network, step: "enter it", errno: libc::EPERM };
        let isolation = Isolation::new(vec![missing]);
        assert!(Layer::ALL.iter().all(|layer| isolation.holds(*layer) == (*layer != Layer::Network)));
        let cause = io::Error::from_raw_os_error(libc::EPERM);
        assert_eq!(isolation.missing()[0].to_string(), format!("network namespace: can't enter it: {cause}"));
    }
}
