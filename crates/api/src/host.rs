//! The daemon and the capabilities of its host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::boxes::Sandbox;
use crate::size::Size;
use crate::time::Time;

/// The daemon and the capabilities of its host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostStatus {
    /// Version of the daemon.
    pub version: String,
    /// The name of the image that boxes run.
    pub image: String,
    /// When the daemon started.
    pub started: Time,
    /// Its process.
    pub pid: u32,
    /// The available sandboxes; `auto` means the first.
    pub sandboxes: Vec<Sandbox>,
    /// Virtual machines.
    pub kvm: Kvm,
    /// The version of control groups on the host. The daemon enforces limits without them.
    pub cgroup: CgroupVersion,
    /// Processors that the daemon may use.
    pub cores: u32,
    /// Workers, which share the virtual machines that have no CPU of their own.
    pub workers: u32,
    /// Memory of the machine.
    pub memory: Size,
    /// Memory that is free or can be reclaimed.
    pub memory_available: Size,
    /// The number of boxes, switches, ports and stacks.
    pub counts: Counts,
    /// Capabilities that the daemon lacks, each with a sentence on how to provide it.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// Whether boxes can run in virtual machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kvm {
    /// Whether KVM is usable.
    pub usable: bool,
    /// Why not.
    #[serde(default)]
    pub reason: Option<String>,
}

/// The version of control groups on the host. The daemon enforces limits without them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CgroupVersion {
    /// No control groups.
    None,
    /// The first version.
    V1,
    /// The second version.
    V2,
}

/// The number of boxes, switches, ports and stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Boxes that are defined.
    pub boxes: u32,
    /// Boxes of them that run.
    pub running: u32,
    /// Switches.
    pub switches: u32,
    /// Ports of all switches.
    pub ports: u32,
    /// Stacks.
    pub stacks: u32,
}
