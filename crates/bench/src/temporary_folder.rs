//! A folder for captures, configurations and sockets of a measurement.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder in the system's temporary folder, removed on drop.
#[derive(Debug)]
pub struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Creates a folder.
    ///
    /// # Errors
    ///
    /// The folder can't be created.
    pub fn new() -> std::io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("clickbox-bench-{}-{number}", std::process::id()));
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // A leftover stays in the system's temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_distinct_and_removed() {
        let (one, other) =
            (TemporaryFolder::new().expect("a folder"), TemporaryFolder::new().expect("a folder"));
        assert_ne!(one.path(), other.path());
        let path = one.path().to_path_buf();
        std::fs::write(path.join("file"), "text").expect("a file");
        drop(one);
        assert!(!path.exists() && other.path().exists());
    }
}
