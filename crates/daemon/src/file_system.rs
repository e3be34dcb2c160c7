//! Names the file systems of files, for messages about full disks.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file system that has a file: displayed as "the file system at MOUNT, which has FILE,".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    mount: PathBuf,
    file: PathBuf,
}

impl FileSystem {
    /// The file system of a file, or of its folder if there is no such file.
    pub(crate) fn of(file: &Path) -> Self {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
        let device = |path: &Path| std::fs::metadata(path).ok().map(|found| found.dev());
        let mut existing = file.ancestors().skip_while(|path| device(path).is_none());
        let mut mount = existing.next().unwrap_or(Path::new("/"));
        let own = device(mount);
        // The topmost folder on the same device.
        while let Some(above) = mount.parent().filter(|above| device(above) == own) {
            mount = above;
        }
        Self { mount: mount.to_path_buf(), file: file.clone() }
    }
}

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the file system at {}", self.mount.display())?;
        match self.mount == self.file {
            true => Ok(()),
            false => write!(f, ", which has {},", self.file.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_is_named_by_its_mount_point() {
        // `/proc`, where it is mounted, is a separate file system.
        let found = FileSystem::of(Path::new("/proc/self/none/such"));
        assert_eq!(found.to_string(), "the file system at /proc, which has /proc/self/none/such,");
        let found = FileSystem::of(Path::new("/"));
        assert_eq!(found.to_string(), "the file system at /");
    }
}
