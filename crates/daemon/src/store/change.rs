//! Changes of entries, and the operations that make them.

use super::entries::{StoredBox, StoredConfiguration, StoredStack, StoredSwitch, StoredUnconfirmed};
use crate::audit::StoredChange;
use api::{
    BoxName, ConfigurationName, CreateBox, File, OpenFlowPort, RecordedWrite, StackName, Subject, SwitchName,
};
use std::fmt;

/// The number of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OperationId(pub(super) i64);

/// What an operation does to its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Creates it.
    Create,
    /// Changes it.
    Change,
    /// Starts it.
    Start,
    /// Removes it.
    Remove,
    /// Applies it: a stack.
    Apply,
    /// Restores its previous definition: a stack.
    RollBack,
}

impl Action {
    pub(super) const ALL: [Self; 6] =
        [Self::Create, Self::Change, Self::Start, Self::Remove, Self::Apply, Self::RollBack];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Start => "start",
            Self::Remove => "remove",
            Self::Apply => "apply",
            Self::RollBack => "roll_back",
        }
    }
}

/// An operation that had not ended when the previous daemon did. None of its changes took effect.
#[derive(Clone, Debug)]
pub(crate) struct Interrupted {
    pub(super) action: Option<Action>,
    /// Its object, in the form of an event's subject.
    pub(crate) subject: Subject,
    pub(super) began: String,
}

impl Interrupted {
    /// The box that was to be started.
    pub(crate) fn started_box(&self) -> Option<&BoxName> {
        match &self.subject {
            Subject::Box(name) if self.action == Some(Action::Start) => Some(name),
            _ => None,
        }
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.action {
            Some(Action::Create) => "the creation of",
            Some(Action::Change) | None => "a change of",
            Some(Action::Start) => "the start of",
            Some(Action::Remove) => "the removal of",
            Some(Action::Apply) => "the update of",
            Some(Action::RollBack) => "the rollback of",
        };
        let (kind, name) = (self.subject.kind(), self.subject.name());
        let effect = match self.started_box() {
            Some(_) => "; a box that was to run is started again",
            None => " and had no effect",
        };
        write!(
            f,
            "{what} {kind} {name}, begun {}, was interrupted by the end of the daemon{effect}",
            self.began
        )
    }
}

/// A change of one entry.
#[derive(Clone, Debug)]
pub(crate) enum StoreChange {
    /// Adds a box with its main configuration.
    AddBox(Box<StoredBox>, StoredConfiguration, Vec<File>),
    /// Adds a box that was [staged](super::Store::stage_box), with the id of its main configuration.
    AdmitBox(BoxName, i64),
    /// Changes the definition of a box.
    DefineBox(Box<CreateBox>),
    /// Changes whether a box should run.
    SetRunning(BoxName, bool),
    /// Removes a box with its configurations.
    RemoveBox(BoxName),
    /// Makes a configuration that was [staged](super::Store::stage) the active one.
    Activate(BoxName, ConfigurationName, i64),
    /// Records a write to a handler that changed a configuration of a box.
    RecordWrite(BoxName, RecordedWrite),
    /// Makes the recorded writes to a box, up to this number, these.
    ReplaceWrites(BoxName, Vec<RecordedWrite>, u64),
    /// Removes a configuration.
    RemoveConfiguration(BoxName, ConfigurationName),
    /// Adds or changes a switch.
    PutSwitch(StoredSwitch),
    /// Removes a switch.
    RemoveSwitch(SwitchName),
    /// Adds numbers by which controllers know what a switch has.
    PutPortNumbers(SwitchName, Vec<(OpenFlowPort, u16)>),
    /// Adds or changes a stack.
    PutStack(StoredStack),
    /// Removes a stack. Its boxes and switches stay.
    RemoveStack(StackName),
    /// Records that a stack awaits confirmation.
    PutUnconfirmed(StoredUnconfirmed),
    /// Records that a stack no longer awaits confirmation.
    RemoveUnconfirmed(StackName),
    /// Adds an entry of the audit log, and removes those that its file has.
    Audit(StoredChange),
}

/// The changes of one operation that has not ended.
#[derive(Debug, Default)]
pub(super) struct Staged {
    /// Its record, until it is written.
    pub(super) record: Option<OperationRecord>,
    pub(super) changes: Vec<StoreChange>,
}

/// That an operation has begun.
#[derive(Clone, Debug)]
pub(super) struct OperationRecord {
    pub(super) action: Action,
    pub(super) subject: String,
    pub(super) began: String,
}
