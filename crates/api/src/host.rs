//! The machine that the daemon runs on, and what it can do there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::boxes::Sandbox;
use crate::size::Size;
use crate::time::Time;

/// What the daemon is, and what its host offers it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostStatus {
    /// Version of the daemon.
    pub version: String,
    /// What identifies the image that boxes run.
    pub image: String,
    /// When the daemon started.
    pub started: Time,
    /// Its process.
    pub pid: u32,
    /// What boxes can run in here; the first is what `auto` means.
    pub sandboxes: Vec<Sandbox>,
    /// Virtual machines.
    pub kvm: Kvm,
    /// How memory and processor time of boxes are limited.
    pub cgroup: CgroupVersion,
    /// Processors that the daemon may use.
    pub cores: u32,
    /// Workers among which boxes without a processor of their own are divided.
    pub workers: u32,
    /// Memory of the machine.
    pub memory: Size,
    /// Memory of it that is free, or could be made so.
    pub memory_available: Size,
    /// How much there is of everything.
    pub counts: Counts,
    /// What the daemon would like to have and has not, in sentences that say how to get it.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// Whether virtual machines can be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kvm {
    /// Whether they can.
    pub usable: bool,
    /// Why not.
    #[serde(default)]
    pub reason: Option<String>,
}

/// Which control groups the daemon may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CgroupVersion {
    /// None: weights hold, limits of processor time only on workers.
    None,
    /// The first version.
    V1,
    /// The second version.
    V2,
}

/// How much there is of everything.
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
