//! An image that is given as a file, or by its digest.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use api::{ImageDigest, ImageSource, MAX_IMAGE_BYTES};

use super::uploads::Uploads;
use crate::error::{CommandError, FileError};

/// An image that a box is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Image {
    /// One that the daemon has.
    Stored(ImageDigest),
    /// The contents of a file.
    File(Vec<u8>),
}

impl Image {
    /// Reads a path, relative to a folder, or a digest.
    pub(crate) fn read(text: &str, folder: &Path) -> Result<Image, FileError> {
        if let Ok(digest) = text.parse() {
            return Ok(Image::Stored(digest));
        }
        let path = folder.join(text);
        let contents = read(&path).map_err(|error| FileError::new(&PathBuf::from(text), error))?;
        Ok(Image::File(contents))
    }

    /// Whether a file is an image, and no configuration: it begins as a program does (ELF).
    pub(crate) fn is_at(path: &Path) -> bool {
        let mut start = [0; 4];
        // Other errors are those of reading it as a configuration.
        let opened =
            std::fs::File::open(path).ok().filter(|file| file.metadata().is_ok_and(|found| found.is_file()));
        opened.is_some_and(|mut file| file.read_exact(&mut start).is_ok()) && start == *b"\x7fELF"
    }

    /// Its digest, which tells whether the daemon has it.
    pub(crate) fn digest(&self) -> ImageDigest {
        match self {
            Image::Stored(digest) => *digest,
            Image::File(contents) => {
                let mut digest = ImageDigest([0; 32]);
                let hash = ring::digest::digest(&ring::digest::SHA256, contents);
                digest.0.iter_mut().zip(hash.as_ref()).for_each(|(to, from)| *to = *from);
                digest
            }
        }
    }

    /// Uploads it if it is a file.
    pub(crate) fn upload(self, uploads: &mut Uploads) -> Result<ImageSource, CommandError> {
        match self {
            Image::Stored(digest) => Ok(ImageSource::Digest(digest)),
            Image::File(contents) => uploads.add_image(contents),
        }
    }
}

/// Reads a file that is no longer than an image may be.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut contents = Vec::new();
    std::fs::File::open(path)?.take(MAX_IMAGE_BYTES as u64 + 1).read_to_end(&mut contents)?;
    match contents.len() > MAX_IMAGE_BYTES {
        true => {
            let message = format!("an image has at most {MAX_IMAGE_BYTES} bytes");
            Err(io::Error::new(io::ErrorKind::FileTooLarge, message))
        }
        false => Ok(contents),
    }
}
