//! The sources that projects are built with. They are in a file beside the program, compressed by gzip: for each file the length
//! of its path and of its contents, 32 bits each, then both.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::path::{Component, Path};

use flate2::read::GzDecoder;

use super::error::FunctionError;
use crate::error::FileError;

/// The file that tells the sources of one program from those of another.
const VERSION_FILE: &str = "VERSION";

/// The file with the sources.
fn archive() -> Result<Vec<u8>, FunctionError> {
    let path = std::env::current_exe().map_err(FunctionError::Sources)?.with_extension("sources");
    fs::read(&path).map_err(|error| FunctionError::NoSources(FileError::new(&path, error)))
}

/// The sources in a line.
fn version(archive: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    archive.hash(&mut hasher);
    format!("{} {:016x}\n", env!("CARGO_PKG_VERSION"), hasher.finish())
}

/// Whether a folder has the sources of this program.
pub(super) fn is_current(folder: &Path) -> Result<bool, FunctionError> {
    let expected = version(&archive()?);
    Ok(fs::read_to_string(folder.join(VERSION_FILE)).is_ok_and(|found| found == expected))
}

/// Writes the sources whose paths are needed into a folder, in place of earlier ones. Files that are as they should be are not touched, so that
/// cargo builds only what has changed.
pub(super) fn unpack(folder: &Path, is_needed: impl Fn(&str) -> bool) -> Result<(), FunctionError> {
    let archive = archive()?;
    let files = read(&archive).map_err(FunctionError::Sources)?;
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |error| FunctionError::File(FileError::new(&path, error))
    };
    for (path, contents) in files.iter().filter(|(path, _)| is_needed(path)) {
        let path = folder.join(path);
        if fs::read(&path).is_ok_and(|found| found == *contents) {
            continue;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed(parent))?;
        }
        fs::write(&path, contents).map_err(failed(&path))?;
    }
    // Last, so that sources that are written in part are written again.
    let path = folder.join(VERSION_FILE);
    fs::write(&path, version(&archive)).map_err(failed(&path))
}

/// A source file of the projects: the lock file of the images, with which a project begins.
pub(super) fn lock_file() -> Result<Vec<u8>, FunctionError> {
    let files = read(&archive()?).map_err(FunctionError::Sources)?;
    let found = files.into_iter().find(|(path, _)| path == "guest/Cargo.lock");
    found
        .map(|(_, contents)| contents)
        .ok_or_else(|| FunctionError::Sources(io::Error::new(io::ErrorKind::NotFound, "guest/Cargo.lock")))
}

/// The files, by their paths.
fn read(archive: &[u8]) -> io::Result<Vec<(String, Vec<u8>)>> {
    let damaged = || io::Error::from(io::ErrorKind::InvalidData);
    let mut bytes = Vec::new();
    GzDecoder::new(archive).read_to_end(&mut bytes)?;
    let (mut rest, mut files) = (bytes.as_slice(), Vec::new());
    while !rest.is_empty() {
        let (head, after) = rest.split_first_chunk::<8>().ok_or_else(damaged)?;
        let [a, b, c, d, e, f, g, h] = *head;
        let [path, contents] = [[a, b, c, d], [e, f, g, h]].map(|bytes| u32::from_le_bytes(bytes) as usize);
        let (path, after) = after.split_at_checked(path).ok_or_else(damaged)?;
        let (contents, after) = after.split_at_checked(contents).ok_or_else(damaged)?;
        let path = std::str::from_utf8(path).map_err(|_| damaged())?;
        if !Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(damaged());
        }
        files.push((path.to_string(), contents.to_vec()));
        rest = after;
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn packed(files: &[(&str, &str)]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        for (path, contents) in files {
            for length in [path.len(), contents.len()] {
                encoder.write_all(&(length as u32).to_le_bytes()).expect("memory");
            }
            encoder.write_all(path.as_bytes()).expect("memory");
            encoder.write_all(contents.as_bytes()).expect("memory");
        }
        encoder.finish().expect("memory")
    }

    #[test]
    fn what_leads_elsewhere_or_is_cut_off_is_refused() {
        let good = packed(&[("a/b.rs", "text"), ("c", "")]);
        let files = read(&good).expect("two files");
        assert_eq!(files, [("a/b.rs".into(), b"text".to_vec()), ("c".into(), Vec::new())]);
        for path in ["/etc/x", "../x", "a/../../x"] {
            assert!(read(&packed(&[(path, "x")])).is_err(), "{path}");
        }
        for length in 1..good.len() {
            assert!(read(&good[..length]).is_err(), "{length}");
        }
    }
}
