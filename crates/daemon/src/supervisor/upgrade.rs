//! Checks a program that is to replace the daemon, and reports what came of it.

use super::state::Supervisor;
use crate::error::OperationError;
use crate::store::SCHEMA_VERSION;
use crate::upgrade::{Origin, ProgramDescription, UpgradeError};
use api::{EventKind, Subject, UpgradeReply, with_causes};
use rustix::process::geteuid;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The permission of everybody to write.
const OTHERS_WRITE: u32 = 0o002;

impl Supervisor {
    /// Checks that a program can replace the daemon: none means the one at the path of the daemon's. Returns its path and
    /// what the client gets.
    pub(crate) fn check_upgrade(
        &self,
        program: Option<&Path>,
    ) -> Result<(PathBuf, UpgradeReply), OperationError> {
        let Some(helper) = self.0.upgrade_helper.as_ref().filter(|_| !self.0.ends_fabric) else {
            return Err(UpgradeError::EndsBoxes.into());
        };
        let program = program.unwrap_or(helper.program()).to_path_buf();
        check_file(&program)?;
        let description = helper.describe(&program)?;
        self.check_description(&description)?;
        let running = self.0.all().iter().filter(|managed| managed.inner().running).count();
        let reply = UpgradeReply {
            program: program.display().to_string(),
            previous: env!("CARGO_PKG_VERSION").into(),
            version: description.version,
            pid: std::process::id(),
            running: u32::try_from(running).unwrap_or(u32::MAX),
        };
        Ok((program, reply))
    }

    fn check_description(&self, new: &ProgramDescription) -> Result<(), UpgradeError> {
        if new.store_format < SCHEMA_VERSION {
            return Err(UpgradeError::Store(new.store_format, SCHEMA_VERSION));
        }
        let is_apart = |version: u16, running: u16| version.abs_diff(running) > 1;
        let running = self.0.fabrics.all().into_iter().filter_map(|link| link.peer_version());
        if let Some(running) = running.into_iter().find(|running| is_apart(new.fabric_protocol, *running)) {
            return Err(UpgradeError::Fabric(new.fabric_protocol, running));
        }
        match self.0.fabrics.connector().launcher_version() {
            Some(running) if is_apart(new.launcher_protocol, running) => {
                Err(UpgradeError::Launcher(new.launcher_protocol, running))
            }
            _ => Ok(()),
        }
    }

    /// Reports that this daemon has replaced another one, or that it could not be replaced.
    pub(crate) fn note_upgrade(&self, origin: Option<&Origin>, failure: Option<&UpgradeError>) {
        if let Some(origin) = origin {
            let message = format!(
                "the daemon {} (process {}) was replaced by {} (process {})",
                origin.version,
                origin.pid,
                env!("CARGO_PKG_VERSION"),
                std::process::id()
            );
            self.0.journal.note(EventKind::DaemonReplaced, Subject::Daemon, message);
        }
        if let Some(failure) = failure {
            let message = format!("the daemon was not replaced: {}", with_causes(failure));
            self.0.journal.note(EventKind::UpgradeFailed, Subject::Daemon, message);
        }
    }
}

/// Checks that nobody else can put another program in the place of the one that is checked.
fn check_file(program: &Path) -> Result<(), UpgradeError> {
    if program.is_relative() {
        return Err(UpgradeError::RelativePath(program.into()));
    }
    let found = fs::metadata(program).map_err(|error| UpgradeError::File(program.into(), error))?;
    let is_ours = found.uid() == 0 || found.uid() == geteuid().as_raw();
    match found.is_file() && is_ours && found.permissions().mode() & OTHERS_WRITE == 0 {
        true => Ok(()),
        false => Err(UpgradeError::Unsafe(program.into())),
    }
}
