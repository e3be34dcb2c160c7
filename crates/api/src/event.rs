//! Events of the daemon.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Time;

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Its number. Numbers increase by one, and continue with a gap after a restart of the daemon.
    pub sequence: u64,
    /// When it happened.
    pub time: Time,
    /// What happened.
    pub kind: EventKind,
    /// Its subject: `box/NAME`, `switch/NAME`, `switch/NAME/PORT`, `stack/NAME`, `daemon`.
    pub subject: String,
    /// A sentence about it, escaped.
    pub message: String,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A box was created.
    BoxCreated,
    /// A box runs: for the first time, after a stop, or after a crash.
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
    /// A switch was created.
    SwitchCreated,
    /// A switch was removed.
    SwitchRemoved,
    /// A port was added.
    PortAdded,
    /// A port stopped working.
    PortFailed,
    /// A port works again.
    PortRecovered,
    /// A port was removed.
    PortRemoved,
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
    /// The daemon shuts down.
    DaemonStopping,
    /// Events between the previous one and this one are no longer kept.
    EventsLost,
    /// A kind that this version of the client does not know.
    #[serde(other)]
    Unknown,
}

/// The events to return.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventQuery {
    /// Whether to wait for new events.
    #[serde(default)]
    pub follow: bool,
    /// Only events after this number; absent: all that are kept, or with `follow` only new ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
}
