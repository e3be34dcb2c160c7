//! A fabric that is started before it is needed, so that the one which it follows is replaced sooner. It is a fabric like
//! any other: it serves the launcher's store, has given up all privileges, and waits for its first daemon. It gets the
//! socket for the next launcher when it is used; until then it ends with its launcher.

use crate::fabric::Fabric;
use crate::settings::Settings;
use protocol::StoreIdentity;
use protocol::launcher::{Ending, Shortfall};
use std::fs;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time between the start of a fabric and that of the spare which may follow it. The fabric's own start comes first.
pub(crate) const DELAY: Duration = Duration::from_millis(500);

/// The longest time between the end of a spare that was not used and the next one. It begins with twice [`DELAY`] and doubles, because
/// what ended one, such as a lack of memory, may end the next.
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(60);

/// The file that a process executes: its device, its number and the nanoseconds of its last change.
type ProgramFile = (u64, u64, i64, i64);

/// A fabric that waits for its first daemon.
#[derive(Debug)]
pub(crate) struct Spare {
    fabric: Fabric,
    file: ProgramFile,
}

impl Spare {
    /// Starts a spare for the fabric with this number and user. `None` if that is not possible.
    pub(crate) fn start(
        settings: &Settings,
        number: u32,
        user: Option<u32>,
        shortfalls: &[Shortfall],
    ) -> Option<Self> {
        // Read first: if the file is replaced in between, the spare is not used.
        let file = program_file(&settings.program)?;
        let fabric = Fabric::start(settings, number, user, None, shortfalls).ok()?;
        Some(Self { fabric, file })
    }

    /// Makes it a fabric of this store.
    pub(crate) fn identify(&mut self, user: Option<u32>, store: StoreIdentity) -> Result<(), Shortfall> {
        self.fabric.identify(user, store, None)
    }

    /// Whether it has this number, still runs, and executes the present file of the program.
    pub(crate) fn is_for(&mut self, settings: &Settings, number: u32) -> bool {
        self.fabric.state.number == number
            && program_file(&settings.program) == Some(self.file)
            && self.reap().is_none()
    }

    /// The number of the fabric that it follows.
    pub(crate) fn number(&self) -> u32 {
        self.fabric.state.number
    }

    /// The fabric, which takes the place of the one that it follows.
    pub(crate) fn into_fabric(self) -> Fabric {
        self.fabric
    }

    /// Readable when it has ended.
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.fabric.pidfd()
    }

    /// How it ended, if it has.
    pub(crate) fn reap(&mut self) -> Option<Ending> {
        self.fabric.reap()
    }

    /// Ends it. Returns its groups.
    pub(crate) fn end(mut self) -> Vec<PathBuf> {
        self.fabric.kill_now();
        self.fabric.state.cgroups
    }
}

/// The file at a path. A program that is looked up in `PATH` has none.
fn program_file(path: &Path) -> Option<ProgramFile> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino(), found.mtime(), found.mtime_nsec()))
}
