//! The folder for the files that boxes write, which belongs to the fabrics.

use crate::child;
use protocol::launcher::{Refusal, Step};
use rustix::fs::{Mode, OFlags, fchown, fstat, mkdir, open};
use rustix::io::Errno;
use rustix::process::{Gid, Uid, geteuid};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Opens the folder, and makes it for the fabrics' user if it does not exist. The owner of a folder that exists is not
/// changed: a client could otherwise give away any folder.
pub(crate) fn open_output_folder(path: &Path, user: Option<u32>) -> Result<OwnedFd, Refusal> {
    if !path.is_absolute() {
        return Err(Refusal::RelativePath);
    }
    let failed = |errno: Errno| Refusal::Failed(child::failed(Step::OpenFolder, &errno.into()));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let existing = open(path, flags, Mode::empty());
    let owner = user.unwrap_or_else(|| geteuid().as_raw());
    if let Ok(folder) = existing {
        if fstat(&folder).map_err(failed)?.st_uid == owner {
            return Ok(folder);
        }
        // Fabrics had another user before. Their files have no names, so the folder is empty, or not ours to remove.
        let _ = fs::remove_dir(path);
    }
    let made = mkdir(path, Mode::RWXU);
    let folder = open(path, flags, Mode::empty()).map_err(failed)?;
    if let (Ok(()), Some(user)) = (made, user) {
        fchown(&folder, Some(Uid::from_raw(user)), Some(Gid::from_raw(user))).map_err(failed)?;
    }
    Ok(folder)
}
