//! A fabric that is started before it is needed. Its program is loaded and its process is in its control groups, which takes
//! most of the time of a start, so the fabric that it follows is replaced sooner. It waits for its first message: it serves
//! no store and has no device. Like every fabric it gives up the launcher's privileges after that message, and it reads
//! nothing before.

use crate::fabric::{Ended, Fabric};
use crate::settings::Settings;
use protocol::launcher::Shortfall;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time between the start of a fabric and that of the spare which may follow it. The fabric's own start comes first.
pub(crate) const DELAY: Duration = Duration::from_millis(500);

/// The file that a process executes: its device, its number and the nanoseconds of its last change.
type ProgramFile = (u64, u64, i64, i64);

/// A fabric that waits for its first message.
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

    /// Whether it has this number, still runs, and executes the present file of the program.
    pub(crate) fn is_for(&mut self, settings: &Settings, number: u32) -> bool {
        self.fabric.state.number == number
            && program_file(&settings.program) == Some(self.file)
            && self.reap().is_none()
    }

    /// The fabric, which is to be identified next.
    pub(crate) fn into_fabric(self) -> Fabric {
        self.fabric
    }

    /// How it ended, if it has.
    pub(crate) fn reap(&mut self) -> Option<Ended> {
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
