//! Errors before a box runs.

use boundary::{BootError, LayoutError, NoteError, RingError};
use std::fmt;

/// A system call that failed.
#[derive(Debug)]
pub struct SystemError {
    /// The failed action, as in "can't ...".
    pub action: &'static str,
    /// The system's error.
    pub cause: std::io::Error,
}

impl SystemError {
    pub(crate) fn last(action: &'static str) -> Self {
        Self { action, cause: std::io::Error::last_os_error() }
    }

    /// Converts errors of the KVM crates, which carry an error number.
    pub(crate) fn kvm(action: &'static str) -> impl Fn(kvm_ioctls::Error) -> Self {
        move |error| Self { action, cause: std::io::Error::from_raw_os_error(error.errno()) }
    }
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "can't {}", self.action)
    }
}

impl std::error::Error for SystemError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// Why an image cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// Not a 64-bit x86 ELF program.
    NotElf,
    /// A header or segment lies outside the file.
    Truncated,
    /// A segment has an invalid address, or there are no segments.
    Layout(u64),
    /// Several segments have the same bytes of the file, each of which needs a copy.
    Overlap,
    /// Its version note is missing or of another version.
    Note(NoteError),
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotElf => write!(f, "the image is not a 64-bit x86 ELF program"),
            Self::Truncated => write!(f, "the image ends too early"),
            Self::Layout(address) => write!(f, "the image has a segment at the invalid address {address:#x}"),
            Self::Overlap => write!(f, "segments of the image overlap in the file"),
            Self::Note(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ImageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::Note(error) => error.source(),
            Self::NotElf | Self::Truncated | Self::Layout(_) | Self::Overlap => None,
        }
    }
}

/// Minimum private memory of a box: stack, variables, and a heap for a small configuration.
pub(crate) const MIN_MEMORY: usize = 512 << 10;

/// Maximum private memory of a box. Limits the page tables, which the host writes before the box starts, to 32 KB per
/// gigabyte.
pub(crate) const MAX_MEMORY: usize = 64 << 30;

/// Invalid settings of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsError {
    /// The private memory is out of range.
    Memory(usize),
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(bytes) => {
                let (least, most) = (MIN_MEMORY >> 10, MAX_MEMORY >> 30);
                write!(f, "{bytes} bytes of memory: it must be from {least}K to {most}G")
            }
        }
    }
}

impl std::error::Error for SettingsError {}

/// Why a box's process could not be created.
#[derive(Debug)]
pub enum SetupError {
    /// The system call filter could not be compiled.
    Filter(seccompiler::BackendError),
    /// The spawner's system call filter could not be compiled.
    SpawnerFilter(seccomp::FilterError),
    /// The system call filter has this many instructions, more than fit into the shared region.
    FilterLength(usize),
    /// The kernel refused a new process.
    Clone(std::io::Error),
    /// The child failed before it executed the image.
    Child {
        /// The failed step.
        step: &'static str,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The spawner could not be started, or a message to it failed.
    Spawner(std::io::Error),
    /// The spawner has ended, and its boxes with it. The next box gets another one.
    Gone,
    /// The spawner did not reply in time. The next box gets another one.
    NoReply,
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filter(_) => write!(f, "can't create a box's system call filter"),
            Self::SpawnerFilter(error) => error.fmt(f),
            Self::FilterLength(count) => write!(
                f,
                "a box's system call filter has {count} instructions; the limit is {}",
                boundary::control::FILTER_LENGTH
            ),
            Self::Clone(_) => write!(f, "can't create a box's process"),
            Self::Child { step, .. } => write!(f, "a box's process can't {step}"),
            Self::Spawner(_) => write!(f, "can't use the process spawner"),
            Self::Gone => write!(f, "the process spawner has ended, and its boxes with it; try again"),
            Self::NoReply => write!(f, "the process spawner does not reply; try again"),
        }
    }
}

impl std::error::Error for SetupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Filter(error) => Some(error),
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::SpawnerFilter(error) => error.source(),
            Self::Clone(cause) | Self::Child { cause, .. } | Self::Spawner(cause) => Some(cause),
            Self::FilterLength(_) | Self::Gone | Self::NoReply => None,
        }
    }
}

/// Why a host cannot be created.
#[derive(Debug)]
pub enum HostError {
    /// The image is invalid.
    Image(ImageError),
    /// A system call failed.
    System(SystemError),
    /// The process that boxes need could not be prepared.
    Process(SetupError),
    /// The processor lacks a feature that the image is compiled for.
    Processor(&'static str),
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image(error) => error.fmt(f),
            Self::System(error) => error.fmt(f),
            Self::Process(error) => error.fmt(f),
            Self::Processor(feature) => {
                write!(f, "this processor has no {feature}, which the box image needs")
            }
        }
    }
}

impl std::error::Error for HostError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::Image(error) => error.source(),
            Self::System(error) => error.source(),
            Self::Process(error) => error.source(),
            Self::Processor(_) => None,
        }
    }
}

/// Why a box cannot be created.
#[derive(Debug)]
pub enum CreateError {
    /// The settings are invalid.
    Settings(SettingsError),
    /// The ports do not fit the shared region.
    Layout(LayoutError),
    /// The rings are invalid.
    Ring(RingError),
    /// The boot info is invalid.
    Boot(BootError),
    /// A system call failed.
    System(SystemError),
    /// The image has more variables and stack than the box has memory.
    SmallMemory {
        /// Bytes that the image needs.
        needed: u64,
    },
    /// All memory that is reserved for boxes is in use.
    NoMemory,
    /// There is no usable `/dev/kvm`.
    NoKvm,
    /// All buffers of a shared packet pool are in use.
    PoolFull,
    /// A snapshot of a virtual machine was given to a process, or the reverse.
    SnapshotTarget,
    /// The box's process could not be set up.
    Process(SetupError),
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(error) => error.fmt(f),
            Self::Layout(error) => error.fmt(f),
            Self::Ring(error) => error.fmt(f),
            Self::Boot(error) => error.fmt(f),
            Self::System(error) => error.fmt(f),
            Self::SmallMemory { needed } => {
                write!(f, "the image needs at least {}K of memory: give the box more", needed.div_ceil(1024))
            }
            Self::NoMemory => write!(f, "all memory reserved for boxes is in use"),
            Self::PoolFull => write!(
                f,
                "all buffers of the packet pool are in use: give its boxes shorter rings, or let fewer share it"
            ),
            Self::SnapshotTarget => {
                write!(
                    f,
                    "a snapshot must be restored in the kind of sandbox it was taken from: virtual machine or process"
                )
            }
            Self::NoKvm => write!(f, "there is no usable /dev/kvm"),
            Self::Process(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CreateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::Settings(error) => error.source(),
            Self::Layout(error) => error.source(),
            Self::Ring(error) => error.source(),
            Self::Boot(error) => error.source(),
            Self::System(error) => error.source(),
            Self::Process(error) => error.source(),
            Self::SmallMemory { .. }
            | Self::NoMemory
            | Self::NoKvm
            | Self::PoolFull
            | Self::SnapshotTarget => None,
        }
    }
}

macro_rules! from {
    ($whole:ty: $($variant:ident($error:ty)),* $(,)?) => {
        $(impl From<$error> for $whole {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        })*
    };
}

from!(HostError: Image(ImageError), System(SystemError), Process(SetupError));
from!(
    CreateError:
    Settings(SettingsError),
    Layout(LayoutError),
    Ring(RingError),
    Boot(BootError),
    System(SystemError),
    Process(SetupError),
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallError, SnapshotError};
    use boundary::{ChannelError, CorruptIndex};
    use std::error::Error;

    /// Every cause stands once in the chain, whether an error wraps its cause or prints it as its own message.
    #[test]
    fn each_cause_is_printed_once() {
        let cause = || std::io::Error::from_raw_os_error(libc::ENOENT);
        let system = || SystemError { action: "open it", cause: cause() };
        let child = || SetupError::Child { step: "run it", cause: cause() };
        let corrupt = CorruptIndex { found: 9, least: 1, span: 2 };
        let cases: [(Box<dyn Error>, &str); 9] = [
            (Box::new(system()), "can't open it: {cause}"),
            (Box::new(HostError::from(system())), "can't open it: {cause}"),
            (Box::new(HostError::from(child())), "a box's process can't run it: {cause}"),
            (Box::new(CreateError::from(system())), "can't open it: {cause}"),
            (Box::new(CreateError::from(child())), "a box's process can't run it: {cause}"),
            (
                Box::new(CreateError::from(SetupError::Clone(cause()))),
                "can't create a box's process: {cause}",
            ),
            (Box::new(SnapshotError::from(system())), "can't open it: {cause}"),
            (
                Box::new(HostError::from(ImageError::Note(NoteError::Damaged))),
                "the image's version note is damaged",
            ),
            (
                Box::new(CallError::from(ChannelError::from(corrupt))),
                "the box violated the mailbox protocol: ring index 9 is not within 2 of 1",
            ),
        ];
        for (error, expected) in cases {
            let (mut text, mut next) = (error.to_string(), error.source());
            while let Some(error) = next {
                text = format!("{text}: {error}");
                next = error.source();
            }
            assert_eq!(text, expected.replace("{cause}", &cause().to_string()));
        }
    }
}
