//! What happened, as a stream.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Its number: they count up by one over the life of a daemon, and go on after its restart.
    pub sequence: u64,
    /// When it happened.
    pub time: Time,
    /// What happened.
    pub kind: EventKind,
    /// What it happened to: `box/NAME`, `switch/NAME`, `switch/NAME/PORT`, `stack/NAME`, `daemon`.
    pub subject: String,
    /// The same in a sentence, escaped.
    pub message: String,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A box was made.
    BoxCreated,
    /// A box runs: for the first time, after a stop, or after a crash.
    BoxStarted,
    /// A box was told to stop, or it ended in order by itself.
    BoxStopped,
    /// A box crashed, or was killed.
    BoxCrashed,
    /// A box crashed too often, and is not made anew.
    BoxGivenUp,
    /// A box was made to stand still.
    BoxSuspended,
    /// A box goes on.
    BoxResumed,
    /// A box is gone.
    BoxRemoved,
    /// A configuration was installed or swapped.
    ConfigurationInstalled,
    /// A configuration was refused.
    ConfigurationRefused,
    /// A configuration is gone.
    ConfigurationRemoved,
    /// A switch was made.
    SwitchCreated,
    /// A switch is gone.
    SwitchRemoved,
    /// A port was added.
    PortAdded,
    /// A port stopped working.
    PortFailed,
    /// A port works again.
    PortRecovered,
    /// A port is gone.
    PortRemoved,
    /// A stack was applied.
    StackApplied,
    /// A stack was confirmed.
    StackConfirmed,
    /// A stack could not be applied or was not confirmed, and everything is as it was.
    StackRolledBack,
    /// A stack is gone.
    StackRemoved,
    /// The daemon started; what it had stored is back.
    DaemonStarted,
    /// The daemon ends.
    DaemonStopping,
    /// Events between the last one and this one were too many to be kept for this reader.
    EventsLost,
    /// Something that this version does not know.
    #[serde(other)]
    Unknown,
}

/// Which events are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventQuery {
    /// Whether those to come are wanted, too.
    #[serde(default)]
    pub follow: bool,
    /// Only those after the one with this number; without it all that are kept, or with `follow` only those to come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
}
