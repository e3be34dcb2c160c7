//! Checks the write-ahead log before SQLite opens it.

use super::damage::Damage;
use super::error::StoreError;
use rustix::process::{Flock, FlockOffsetType, FlockType, fcntl_getlk};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Length of the header: magic number, format version, page size, checkpoint number, two salts and two sums, each a
/// 32-bit word in network byte order. See "The WAL File Format" in SQLite's documentation.
const HEADER: usize = 32;

/// The magic number. Its last bit is the byte order of the words that the sums are made of: 1 is big-endian.
const MAGIC: u32 = 0x377f_0682;

/// The only version of the format.
const VERSION: u32 = 3_007_000;

/// The bytes of the store's file on which SQLite holds its locks.
const LOCKED: (u64, u64) = (0x4000_0000, 512);

/// Renames a write-ahead log without a valid header. SQLite would ignore such a log, and overwrite it, without an error.
pub(super) fn check_log(store: &Path) -> Result<Option<Damage>, StoreError> {
    let log = with_suffix(store, "-wal");
    match has_valid_header(&log) {
        Ok(true) => return Ok(None),
        Ok(false) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::Log(log, error)),
    }
    // The log of another daemon must stay where it is.
    if is_locked(store).map_err(|error| StoreError::Log(log.clone(), error))? {
        return Err(StoreError::InUse);
    }
    let free =
        (1..).map(|number| with_suffix(&log, &format!(".damaged{number}"))).find(|path| !path.exists());
    let Some(aside) = free else { return Ok(None) };
    std::fs::rename(&log, &aside).map_err(|error| StoreError::Log(log, error))?;
    Ok(Some(Damage::Log(aside)))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Whether a log is empty or begins with a header whose sums are right.
fn has_valid_header(log: &Path) -> io::Result<bool> {
    let mut bytes = Vec::new();
    File::open(log)?.take(HEADER as u64).read_to_end(&mut bytes)?;
    Ok(bytes.is_empty() || is_header(&bytes))
}

fn is_header(bytes: &[u8]) -> bool {
    let Ok(header) = <[u8; HEADER]>::try_from(bytes) else { return false };
    let (words, _) = header.as_chunks::<4>();
    let word = |index: usize| u32::from_be_bytes(words[index]);
    let is_big = word(0) & 1 == 1;
    if word(0) & !1 != MAGIC || word(1) != VERSION {
        return false;
    }
    let (mut first, mut second) = (0u32, 0u32);
    let (summed, _) = words[..6].as_chunks::<2>();
    for pair in summed {
        let [x, y] =
            pair.map(|word| if is_big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) });
        first = first.wrapping_add(x).wrapping_add(second);
        second = second.wrapping_add(y).wrapping_add(first);
    }
    (word(6), word(7)) == (first, second)
}

/// Whether another process has the store open.
fn is_locked(store: &Path) -> io::Result<bool> {
    let file = match OpenOptions::new().read(true).write(true).open(store) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        file => file?,
    };
    let (start, length) = LOCKED;
    let wanted =
        Flock { start, length, pid: None, typ: FlockType::WriteLock, offset_type: FlockOffsetType::Set };
    Ok(fcntl_getlk(&file, &wanted)?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn a_damaged_log_is_kept_and_reported() {
        let folder = std::env::temp_dir().join(format!("clickbox-store-log-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("store");
        let log = folder.join("store-wal");
        let mut store = Store::open(Some(&path), None).unwrap();
        store.set_counter("events", 7).unwrap();
        // A killed daemon leaves a valid log.
        let valid = std::fs::read(&log).unwrap();
        assert!(has_valid_header(&log).unwrap() && valid.len() > HEADER);
        for byte in 0..HEADER {
            let mut damaged = valid[..HEADER].to_vec();
            damaged[byte] ^= 1;
            assert!(!is_header(&damaged), "byte {byte}");
        }
        store.close().unwrap();
        drop(store);
        for (number, bytes) in
            [vec![0x5a; 4096], vec![0; 64], valid[..HEADER - 1].to_vec()].into_iter().enumerate()
        {
            std::fs::write(&log, &bytes).unwrap();
            let mut store = Store::open(Some(&path), None).unwrap();
            assert_eq!(store.counter("events").unwrap(), 7);
            let found = store.take_damage();
            let aside = folder.join(format!("store-wal.damaged{}", number + 1));
            assert!(matches!(&found[..], [Damage::Log(path)] if *path == aside), "{found:?}");
            assert!(found[0].to_string().contains("store-wal.damaged"), "{}", found[0]);
            assert_eq!(std::fs::read(&aside).unwrap(), bytes);
        }
        // An empty log, and none, are no damage.
        std::fs::write(&log, b"").unwrap();
        assert!(Store::open(Some(&path), None).unwrap().take_damage().is_empty());
        assert!(Store::open(Some(&path), None).unwrap().take_damage().is_empty());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
