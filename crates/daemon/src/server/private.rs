//! Files with secrets, which no other user may read or change.

use rustix::process::geteuid;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The permissions of other users than a file's owner.
const OTHERS: u32 = 0o077;

/// The permissions that a file of root, such as a credential of the service manager, must not give: root may let the group
/// of a service read a file.
const OTHERS_OF_ROOT: u32 = 0o027;

/// Why a file with secrets can't be used.
#[derive(Debug)]
pub enum SecretError {
    /// It can't be opened.
    File(PathBuf, io::Error),
    /// Other users of the host can read or change it.
    Shared(PathBuf),
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, _) => write!(f, "can't use {}", path.display()),
            Self::Shared(path) => write!(
                f,
                "other users of this host can use {0}: run `chmod 600 {0}`, and replace its secrets if they were seen",
                path.display()
            ),
        }
    }
}

impl std::error::Error for SecretError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(_, error) => Some(error),
            Self::Shared(_) => None,
        }
    }
}

/// Opens a file with secrets.
///
/// # Errors
///
/// The file can't be opened, or other users than its owner can use it. Root may let the group of a service read a file: that
/// is how a service manager passes credentials.
pub fn open_secret(path: &Path) -> Result<File, SecretError> {
    let failed = |error| SecretError::File(path.into(), error);
    let file = File::open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    match is_shared(found.uid(), found.mode(), geteuid().as_raw()) {
        true => Err(SecretError::Shared(path.into())),
        false => Ok(file),
    }
}

/// Whether others than the owner of a file can use it.
fn is_shared(owner: u32, mode: u32, user: u32) -> bool {
    const ROOT: u32 = 0;
    let refused = if owner == ROOT && user != ROOT { OTHERS_OF_ROOT } else { OTHERS };
    mode & refused != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_for_its_owner_and_a_group_that_root_chose() {
        for (owner, user) in [(1000, 1000), (0, 0), (1000, 0), (1001, 1000)] {
            for mode in [0o600, 0o400, 0o700] {
                assert!(!is_shared(owner, 0o100_000 | mode, user), "{owner} {mode:o} {user}");
            }
            for mode in [0o640, 0o604, 0o660, 0o644, 0o440, 0o610] {
                assert!(is_shared(owner, 0o100_000 | mode, user), "{owner} {mode:o} {user}");
            }
        }
        // What systemd's LoadCredential gives a service with `User=`.
        assert!(!is_shared(0, 0o100_440, 999) && !is_shared(0, 0o100_400, 999));
        for mode in [0o444, 0o460, 0o644, 0o442] {
            assert!(is_shared(0, 0o100_000 | mode, 999), "{mode:o}");
        }
    }
}
