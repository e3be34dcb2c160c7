//! Events of the daemon.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::Owner;
use crate::time::Time;

/// An event in the daemon's journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// The number of the event. Numbers increase by one; after an unexpected end of the daemon they continue with a gap.
    pub sequence: u64,
    /// When the event happened.
    pub time: Time,
    /// The kind of the event.
    pub kind: EventKind,
    /// What the event is about: `box/NAME`, `switch/NAME`, `switch/NAME/PORT`, `stack/NAME`, `service/NAME`,
    /// `chain/SWITCH/NAME` or `daemon`.
    pub subject: String,
    /// The owner of the object. Absent for the daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// A description in one sentence. Texts from boxes are escaped.
    pub message: String,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A box was created.
    BoxCreated,
    /// A box started: for the first time, after a stop, or after a crash.
    BoxStarted,
    /// A box was stopped, or ended without an error.
    BoxStopped,
    /// A box crashed, or was killed.
    BoxCrashed,
    /// A box crashed too often and will not restart.
    BoxGivenUp,
    /// A box was suspended.
    BoxSuspended,
    /// A box was resumed.
    BoxResumed,
    /// A box was removed.
    BoxRemoved,
    /// A configuration was installed or replaced.
    ConfigurationInstalled,
    /// A configuration was rejected.
    ConfigurationRefused,
    /// A configuration was removed.
    ConfigurationRemoved,
    /// A restart or a new configuration lost writes to handlers that had changed the configuration.
    WritesLost,
    /// An element of a box wrote a handler, such as a `Script` does, and so changed the box's configuration. Reported once for
    /// each handler and start.
    OwnWrites,
    /// Writes to handlers were made the definition of a box.
    WritesSaved,
    /// A switch was created.
    SwitchCreated,
    /// A switch was shared with another owner, or was withdrawn from one.
    SwitchShared,
    /// A switch was removed.
    SwitchRemoved,
    /// A port was added.
    PortAdded,
    /// A port stopped working.
    PortFailed,
    /// A port works again.
    PortRecovered,
    /// A port uses another driver than its definition says, because that one cannot be used.
    PortFellBack,
    /// A port was removed.
    PortRemoved,
    /// An OpenFlow controller of a switch was connected.
    ControllerConnected,
    /// An OpenFlow controller of a switch is not connected any more.
    ControllerLost,
    /// A stored flow of a switch could not be restored.
    FlowLost,
    /// A flow of a switch ended by a timeout. Of many that end together, the number.
    FlowEnded,
    /// A service was created.
    ServiceCreated,
    /// The number of instances of a service was changed.
    ServiceScaled,
    /// A service could not be scaled by its load.
    ScalingFailed,
    /// An instance of a service took none of the packets that waited for it for the time after which it counts as dead.
    InstanceSilent,
    /// The state of the flows of a drained instance was handed over to others.
    StateHandedOver,
    /// The state of flows was not handed over, or lost.
    StateKept,
    /// The configuration of all instances of a service was replaced.
    ServiceReloaded,
    /// An instance of a service had no flows left and was removed.
    ServiceDrained,
    /// The time to drain an instance of a service has passed; it was removed with the flows that it had left.
    DrainTimeout,
    /// A service was removed.
    ServiceRemoved,
    /// A function in a process or container attached itself to a service.
    FunctionAttached,
    /// Such a function left its service, or was taken out of it.
    FunctionDetached,
    /// A chain of services was created.
    ChainCreated,
    /// A chain of services was changed.
    ChainChanged,
    /// A chain of services was removed.
    ChainRemoved,
    /// The services and chains of a switch could not be restored.
    SteeringLost,
    /// A stack was applied.
    StackApplied,
    /// A stack was confirmed.
    StackConfirmed,
    /// A stack could not be applied or was not confirmed; the previous state is restored.
    StackRolledBack,
    /// A stack was removed.
    StackRemoved,
    /// The daemon started and restored its definitions.
    DaemonStarted,
    /// The daemon has replaced another one, while boxes went on.
    DaemonReplaced,
    /// The program that was to replace the daemon did not become ready, so the daemon goes on.
    UpgradeFailed,
    /// The fabric, which runs the boxes, has ended, or can't be restarted.
    FabricLost,
    /// The fabric takes no new boxes and starts none, or takes and starts them again.
    FabricDraining,
    /// The fabric was restarted with all boxes.
    FabricRestarted,
    /// The launcher, which starts fabrics and opens their devices, has ended. Boxes go on.
    LauncherLost,
    /// Another launcher runs, and has adopted the fabrics of the one before.
    LauncherRestarted,
    /// The store is damaged: the file, its log, or an entry, which was set aside.
    StoreDamaged,
    /// The end of the previous daemon interrupted an operation, which had no effect.
    OperationInterrupted,
    /// The daemon is shutting down.
    DaemonStopping,
    /// A client over TCP presented too many wrong tokens and must wait. Reported at most once a minute.
    WrongTokens,
    /// The file of tokens was read again, or can't be used any more.
    TokensChanged,
    /// Entries of the audit log can't be written to its file. Reported when it begins.
    AuditFailed,
    /// The daemon has no free descriptor for a new connection. It closes connections without requests. Reported at most once a
    /// minute.
    DescriptorsExhausted,
    /// Earlier events are no longer kept.
    EventsLost,
    /// A kind that this version of the client does not know.
    #[serde(other)]
    Unknown,
}

/// Which events to return.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventQuery {
    /// Whether to wait for new events.
    #[serde(default)]
    pub follow: bool,
    /// The number of the last event that the client already has. Absent: return all events that are kept, or with
    /// `follow` only new ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
}
