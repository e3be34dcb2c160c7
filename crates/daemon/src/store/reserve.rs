//! Room on the disk that is kept for a checkpoint.
//!
//! A checkpoint moves changes from the write-ahead log into the store's file, which may have to grow for it. On a full
//! disk it could not, the log could not be reused, and not even a removal could be stored. Therefore a file beside the
//! store takes up room, which is given to the checkpoint and taken back after it: the log has become shorter by at least
//! as much as the store's file has grown.

use rustix::fs::{FallocateFlags, fallocate};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The size of the reserve: a checkpoint is due when the log has half of it.
const RESERVE_BYTES: u64 = 1 << 20;

/// The file that takes up room.
#[derive(Debug)]
pub(super) struct Reserve(PathBuf);

impl Reserve {
    /// The reserve of a store. It takes up room if there is any.
    pub(super) fn new(store: &Path) -> Self {
        let mut name = store.as_os_str().to_owned();
        name.push("-reserve");
        let reserve = Self(name.into());
        reserve.take();
        reserve
    }

    /// Takes up room. On a full disk, or a file system that cannot allocate, there is no reserve.
    fn take(&self) {
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&self.0);
        let allocated =
            file.is_ok_and(|file| fallocate(&file, FallocateFlags::empty(), 0, RESERVE_BYTES).is_ok());
        if !allocated {
            self.give();
        }
    }

    fn give(&self) {
        // It may not exist.
        let _ = std::fs::remove_file(&self.0);
    }

    /// Does something that needs the room for a moment.
    pub(super) fn lend(&self, act: impl FnOnce()) {
        self.give();
        act();
        self.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_reserve_takes_up_room_except_while_it_is_lent() {
        let folder = std::env::temp_dir().join(format!("clickbox-store-reserve-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("store-reserve");
        let reserve = Reserve::new(&folder.join("store"));
        let blocks = || std::fs::metadata(&path).map(|file| file.blocks() * 512);
        assert!(blocks().unwrap() >= RESERVE_BYTES);
        reserve.lend(|| assert!(blocks().is_err()));
        assert!(blocks().unwrap() >= RESERVE_BYTES);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
