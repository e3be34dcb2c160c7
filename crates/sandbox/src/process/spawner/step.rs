//! The steps in which entering the isolation, or the creation of a process, can fail.

/// A step that failed, and the error number.
pub(super) type Failure = (Step, i32);

/// The error number of this thread.
pub(super) fn errno() -> i32 {
    // SAFETY: the location is valid as long as the thread lives.
    unsafe { *errno_location() }
}

/// Where this thread has its error number, beside its other variables.
pub(super) fn errno_location() -> *const i32 {
    // SAFETY: the call has no preconditions.
    unsafe { libc::__errno_location() }
}

/// A step. Its number crosses from the helper to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Step {
    SetOomScore,
    EnterNamespace,
    SeparateMounts,
    MountRoot,
    ChangeRoot,
    DetachRoot,
    ProtectRoot,
    SetHostName,
    DropBoundingSet,
    DropGroups,
    ChangeGroup,
    ChangeUser,
    DropCapabilities,
    ReceiveDescriptors,
    CreateProcess,
    SendProcess,
    UnblockSignals,
    MoveDescriptor,
    PassDescriptor,
    CloseDescriptors,
    SetLimits,
    NoNewPrivileges,
    FilterCalls,
    FollowSpawner,
    Reap,
    ReachOthers,
    CreateCgroup,
    Execute,
}

impl Step {
    const ALL: [Self; 28] = [
        Self::SetOomScore,
        Self::EnterNamespace,
        Self::SeparateMounts,
        Self::MountRoot,
        Self::ChangeRoot,
        Self::DetachRoot,
        Self::ProtectRoot,
        Self::SetHostName,
        Self::DropBoundingSet,
        Self::DropGroups,
        Self::ChangeGroup,
        Self::ChangeUser,
        Self::DropCapabilities,
        Self::ReceiveDescriptors,
        Self::CreateProcess,
        Self::SendProcess,
        Self::UnblockSignals,
        Self::MoveDescriptor,
        Self::PassDescriptor,
        Self::CloseDescriptors,
        Self::SetLimits,
        Self::NoNewPrivileges,
        Self::FilterCalls,
        Self::FollowSpawner,
        Self::Reap,
        Self::ReachOthers,
        Self::CreateCgroup,
        Self::Execute,
    ];

    /// The step with this number.
    pub(super) fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|step| *step as u64 == number)
    }

    /// The step with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.name() == name)
    }

    /// The result of a system call that is this step.
    pub(super) fn check(self, result: impl Into<i64>) -> Result<i32, Failure> {
        match result.into() {
            result @ 0.. => Ok(result as i32),
            _ => Err((self, errno())),
        }
    }

    /// The success of a system call that is this step.
    pub(super) fn done(self, result: impl Into<i64>) -> Result<(), Failure> {
        self.check(result).map(drop)
    }

    /// The step in words, as in "can't ...".
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SetOomScore => "set its out-of-memory score",
            Self::EnterNamespace => "enter a namespace",
            Self::SeparateMounts => "separate the mounts from the host's",
            Self::MountRoot => "mount an empty root",
            Self::ChangeRoot => "change the root",
            Self::DetachRoot => "detach the host's root",
            Self::ProtectRoot => "make the root read-only",
            Self::SetHostName => "set the host name",
            Self::DropBoundingSet => "drop the bounding set of capabilities",
            Self::DropGroups => "drop groups",
            Self::ChangeGroup => "change the group",
            Self::ChangeUser => "change the user",
            Self::DropCapabilities => "drop capabilities",
            Self::Reap => "be waited for",
            Self::ReceiveDescriptors => "receive its descriptors",
            Self::CreateProcess => "be created",
            Self::SendProcess => "be handed to its host",
            Self::UnblockSignals => "unblock signals",
            Self::MoveDescriptor => "move a descriptor",
            Self::PassDescriptor => "pass a descriptor",
            Self::CloseDescriptors => "close its descriptors",
            Self::SetLimits => "set its limits",
            Self::FilterCalls => "restrict its system calls",
            Self::NoNewPrivileges => "give up new privileges",
            Self::FollowSpawner => "be bound to the life of its spawner",
            Self::ReachOthers => "reach processes of another user",
            Self::CreateCgroup => "create it",
            Self::Execute => "run the box image",
        }
    }
}
