//! What a launcher reports to its operator.

use crate::successor::AdoptError;
use protocol::launcher::{Ending, FabricState, Shortfall};
use std::fmt;

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    /// The socket exists. These measures are not permitted; all fabrics go without them.
    Ready(Vec<Shortfall>),
    /// A fabric was started.
    Started(FabricState),
    /// A fabric of an earlier launcher, which has ended, was adopted.
    Adopted(FabricState),
    /// A fabric of an earlier launcher runs and was not adopted. It serves its daemon, and ends some time after it.
    NotAdopted {
        /// Its number.
        number: u32,
        /// Why it was not adopted.
        error: AdoptError,
    },
    /// A fabric ended.
    Ended {
        /// Its number.
        number: u32,
        /// Its process.
        pid: u32,
        /// How it ended.
        ending: Ending,
        /// Whether it was told to end.
        is_expected: bool,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(shortfalls) => {
                f.write_str("ready")?;
                list(f, shortfalls)
            }
            Self::Started(FabricState { number, pid, shortfalls, .. }) => {
                write!(f, "started fabric {number} as process {pid}")?;
                list(f, shortfalls)
            }
            Self::Adopted(FabricState { number, pid, .. }) => {
                write!(f, "adopted fabric {number}, process {pid}, of a launcher that has ended")
            }
            Self::NotAdopted { number, error } => {
                write!(f, "fabric {number} of a launcher that has ended can't be adopted: {error}")
            }
            Self::Ended { number, pid, ending, .. } => write!(f, "fabric {number} (process {pid}) {ending}"),
        }
    }
}

/// Appends what is not permitted.
fn list(f: &mut fmt::Formatter<'_>, shortfalls: &[Shortfall]) -> fmt::Result {
    shortfalls.iter().try_for_each(|shortfall| write!(f, "; {shortfall}"))
}
