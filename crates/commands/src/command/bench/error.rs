//! The error of `clickbox bench`.

use std::error::Error;
use std::fmt;
use std::io;

use bench::MeasureError;
use bench::engine::ComparisonError;
use bench::kills::KillsError;
use bench::lookups::LookupsError;

use crate::error::FileError;

/// Why a benchmark failed.
#[derive(Debug)]
pub(crate) enum BenchError {
    /// Something that was acknowledged is lost, or it can't be found out.
    Kills(KillsError),
    /// Boxes can't be measured.
    Measure(MeasureError),
    /// A configuration can't be measured.
    Compare {
        /// Its name.
        name: String,
        /// Why.
        cause: ComparisonError,
    },
    /// A configuration can't be measured in several shards.
    Shards {
        /// Its name.
        name: String,
        /// The number of shards.
        shards: u32,
        /// Why.
        problem: String,
    },
    /// A class is not among those that are measured.
    UnmeasuredClass(String),
    /// Lookups in the flow table can't be measured.
    Lookups(LookupsError),
    /// The path of this program, which is started again, is unknown.
    Program(io::Error),
    /// The peer can't be started.
    Peer(FileError),
    /// A configuration can't be read.
    Read(FileError),
    /// The result can't be written.
    Write(FileError),
    /// The temporary folder can't be created.
    Folder(io::Error),
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kills(error) => error.fmt(f),
            Self::Measure(error) => error.fmt(f),
            Self::Compare { name, .. } => f.write_str(name),
            Self::Shards { name, shards, problem } => write!(f, "{name} in {shards} shards: {problem}"),
            Self::UnmeasuredClass(class) => write!(
                f,
                "no configuration measures a class `{class}`: `clickbox bench engine --classes` without names measures all that can be"
            ),
            Self::Lookups(error) => error.fmt(f),
            Self::Program(_) => f.write_str("the path of this program is unknown"),
            Self::Peer(error) => write!(f, "the peer {error} can't be started"),
            Self::Read(error) | Self::Write(error) => error.fmt(f),
            Self::Folder(_) => f.write_str("can't create a temporary folder"),
        }
    }
}

impl Error for BenchError {
    /// The cause. If the message is the cause's, the cause's own cause.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Kills(error) => error.source(),
            Self::Measure(error) => error.source(),
            Self::Compare { cause, .. } => Some(cause),
            Self::Shards { .. } | Self::UnmeasuredClass(_) => None,
            Self::Lookups(error) => error.source(),
            Self::Program(error) | Self::Folder(error) => Some(error),
            Self::Peer(error) | Self::Read(error) | Self::Write(error) => error.source(),
        }
    }
}

impl From<MeasureError> for BenchError {
    fn from(error: MeasureError) -> BenchError {
        BenchError::Measure(error)
    }
}
