//! The steps in which the creation of a process can fail.

/// A step. Its number crosses from the helper to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Step {
    ReceiveDescriptors,
    CreateProcess,
    SendProcess,
    UnblockSignals,
    MoveDescriptor,
    PassDescriptor,
    CloseDescriptors,
    SetLimits,
    NoNewPrivileges,
    FollowSpawner,
    Reap,
    Execute,
}

impl Step {
    const ALL: [Self; 12] = [
        Self::ReceiveDescriptors,
        Self::CreateProcess,
        Self::SendProcess,
        Self::UnblockSignals,
        Self::MoveDescriptor,
        Self::PassDescriptor,
        Self::CloseDescriptors,
        Self::SetLimits,
        Self::NoNewPrivileges,
        Self::FollowSpawner,
        Self::Reap,
        Self::Execute,
    ];

    /// The step with this number.
    pub(super) fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|step| *step as u64 == number)
    }

    /// The step in words, as in "can't ...".
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Reap => "be waited for",
            Self::ReceiveDescriptors => "receive its descriptors",
            Self::CreateProcess => "be created",
            Self::SendProcess => "be handed to its host",
            Self::UnblockSignals => "unblock signals",
            Self::MoveDescriptor => "move a descriptor",
            Self::PassDescriptor => "pass a descriptor",
            Self::CloseDescriptors => "close its descriptors",
            Self::SetLimits => "set its limits",
            Self::NoNewPrivileges => "give up new privileges",
            Self::FollowSpawner => "be bound to the life of its spawner",
            Self::Execute => "run the box image",
        }
    }
}
