//! Why a daemon is not replaced.

use super::messages::HelperFailure;
use protocol::ChannelError;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a daemon is not replaced. It goes on.
#[derive(Debug)]
pub enum UpgradeError {
    /// The boxes would end with the daemon.
    EndsBoxes,
    /// The path is relative.
    RelativePath(PathBuf),
    /// The program cannot be read.
    File(PathBuf, io::Error),
    /// Others than the daemon's user and root could change the program.
    Unsafe(PathBuf),
    /// The helper has gone. Another daemon has another one.
    Helper(Option<ChannelError>),
    /// The program cannot be started, or is no such program.
    Program(PathBuf, HelperFailure),
    /// The new program cannot read the store: its format, and that of the store.
    Store(i64, i64),
    /// The new program cannot work with the fabric that runs: the versions of the protocol that they speak.
    Fabric(u16, u16),
    /// The new program cannot work with the launcher that runs: the versions of the protocol that they speak.
    Launcher(u16, u16),
}

impl fmt::Display for UpgradeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndsBoxes => {
                f.write_str("the daemon can't be replaced, because its boxes end with it: it needs a store")
            }
            Self::RelativePath(path) => write!(f, "{} is not an absolute path", path.display()),
            Self::File(path, _) => write!(f, "the program {} can't be read", path.display()),
            Self::Unsafe(path) => write!(
                f,
                "{} is not a program that only root and the daemon's user can change",
                path.display()
            ),
            Self::Helper(_) => f.write_str(
                "the daemon's helper for upgrades has gone: stop the daemon and start the new one",
            ),
            Self::Program(path, failure) => write!(f, "{} {failure}", path.display()),
            Self::Store(theirs, ours) => write!(
                f,
                "the new program reads stores up to format {theirs}, and the store has format {ours}: use a newer one"
            ),
            Self::Fabric(theirs, running) => write!(
                f,
                "the new program speaks version {theirs} of the fabric's protocol, and the fabric speaks version \
                 {running}: upgrade in smaller steps, and restart the fabric after each"
            ),
            Self::Launcher(theirs, running) => write!(
                f,
                "the new program speaks version {theirs} of the launcher's protocol, and the launcher speaks version \
                 {running}: stop everything, and start the new program"
            ),
        }
    }
}

impl Error for UpgradeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::File(_, error) => Some(error),
            Self::Helper(error) => error.as_ref().map(|error| error as _),
            _ => None,
        }
    }
}
