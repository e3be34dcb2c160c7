//! The daemon and the capabilities of its host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::boxes::Sandbox;
use crate::name::{BoxName, Owner};
use crate::size::Size;
use crate::time::Time;

/// The status of the daemon and of its host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostStatus {
    /// The version of the daemon.
    pub version: String,
    /// The name of the image that boxes run.
    pub image: String,
    /// When the daemon started.
    pub started: Time,
    /// The process ID of the daemon.
    pub pid: u32,
    /// The available sandboxes. `auto` selects the first.
    pub sandboxes: Vec<Sandbox>,
    /// Whether boxes can run in virtual machines.
    pub kvm: Kvm,
    /// The version of control groups on the host. The daemon does not need them: it enforces limits itself.
    pub cgroup: CgroupVersion,
    /// Number of CPUs that the daemon may use.
    pub cores: u32,
    /// Number of workers, which run the virtual machines that have no CPU of their own.
    pub workers: u32,
    /// The processes that hold boxes and switches: one, or one for each owner that has any.
    #[serde(default)]
    pub fabrics: Vec<FabricStatus>,
    /// Total memory of the host.
    pub memory: Size,
    /// Memory that is free or can be reclaimed.
    pub memory_available: Size,
    /// The number of boxes, switches, ports and stacks.
    pub counts: Counts,
    /// What isolates boxes in processes from the host.
    #[serde(default)]
    pub isolation: Isolation,
    /// Privileges and features that the daemon lacks: for each a sentence with the remedy.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// A process that holds boxes and switches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FabricStatus {
    /// The owner whose boxes and switches it holds. Absent: it holds those of all owners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// Its process ID.
    pub pid: u32,
    /// The version of its program.
    pub version: String,
    /// When it started.
    pub started: Time,
}

/// What isolates boxes in processes from the host, besides their system call filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Isolation {
    /// The layers that boxes have.
    pub layers: Vec<String>,
    /// The layers that the host does not permit. Boxes run without them.
    pub missing: Vec<MissingLayer>,
}

/// A layer of isolation that the host does not permit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissingLayer {
    /// The layer.
    pub layer: String,
    /// Why boxes do not have it.
    pub reason: String,
}

/// What ends with the daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StopQuery {
    /// Whether to end the boxes, the fabric and the launcher too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// The program that is to replace the daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Upgrade {
    /// Its absolute path on the daemon's host. Absent: the file that is now at the path of the daemon's program. Only a
    /// client at the Unix socket may name another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

/// A daemon that is about to be replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UpgradeReply {
    /// The program that replaces it.
    pub program: String,
    /// The version of the daemon.
    pub previous: String,
    /// The version of the program that replaces it.
    pub version: String,
    /// The process ID of the daemon. That of the new daemon differs.
    pub pid: u32,
    /// The number of boxes that are not stopped. They go on.
    pub running: u32,
}

/// How the fabric is restarted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestartQuery {
    /// Whether to restart it even if boxes run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

/// A fabric that is drained, or is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DrainStatus {
    /// Whether new boxes and starts are refused.
    pub draining: bool,
    /// The boxes that are not stopped.
    pub running: Vec<BoxName>,
}

/// A fabric that was restarted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FabricRestart {
    /// The boxes that ran and run again.
    pub boxes: Vec<BoxName>,
    /// The boxes that ran and do not run again. Their events say why.
    pub missing: Vec<BoxName>,
    /// The time from the stop of the first box to the start of the last one, in milliseconds.
    pub away_ms: f64,
}

/// A daemon that is about to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopReply {
    /// The process ID of the daemon.
    pub pid: u32,
    /// The number of boxes that are not stopped.
    pub running: u32,
    /// Whether they end with the daemon: because the request says so, or because the daemon has no store.
    pub ends_boxes: bool,
}

/// Whether boxes can run in virtual machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kvm {
    /// Whether KVM is usable.
    pub usable: bool,
    /// Why KVM is not usable.
    #[serde(default)]
    pub reason: Option<String>,
}

/// The version of control groups on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CgroupVersion {
    /// The host has no control groups.
    None,
    /// Control groups, version 1.
    V1,
    /// Control groups, version 2.
    V2,
}

/// The number of boxes, switches, ports and stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Number of boxes.
    pub boxes: u32,
    /// Number of boxes that run.
    pub running: u32,
    /// Number of switches.
    pub switches: u32,
    /// Number of ports of all switches.
    pub ports: u32,
    /// Number of stacks.
    pub stacks: u32,
}
