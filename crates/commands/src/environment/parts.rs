//! What the shards of a configuration read and write, each a part.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use element::{IoError, Reader};

/// The files that shards write, each its part, until the parts are put together.
#[derive(Default)]
pub(crate) struct Outputs(Mutex<BTreeSet<String>>);

impl Outputs {
    /// The files, which are forgotten.
    pub(crate) fn take(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn add(&self, path: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path.into());
    }
}

/// Bytes that several threads may read as a file.
pub(crate) struct SharedMemory {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) position: usize,
}

impl Reader for SharedMemory {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, IoError> {
        let rest = self.bytes.get(self.position..).unwrap_or_default();
        let count = rest.len().min(into.len());
        if let (Some(into), Some(rest)) = (into.get_mut(..count), rest.get(..count)) {
            into.copy_from_slice(rest);
        }
        self.position += count;
        Ok(count)
    }
}

/// The file in which a shard writes its part of a file.
pub(crate) fn part(path: &str, shard: u32) -> String {
    // Beside what is not a file, such as standard output, there may be no room for files.
    let is_file = std::fs::metadata(path).map_or(path != "-", |metadata| metadata.is_file());
    if is_file {
        return format!("{path}.shard{shard}");
    }
    let name = format!("clickbox-{}-{}.shard{shard}", std::process::id(), path.replace('/', "-"));
    std::env::temp_dir().join(name).display().to_string()
}
