//! An image that was loaded: verified once, and shared by all boxes that run it.

use crate::error::HostError;
use crate::image::Image;
use crate::process;
use crate::vm::SharedImage;
use std::fmt;
use std::os::fd::OwnedFd;

/// A verified image, prepared to be run many times. Boxes of one host share its code and its constants.
pub struct LoadedImage {
    pub(crate) parsed: Image,
    /// The file, to be executed as a process. It is sealed.
    pub(crate) file: OwnedFd,
    /// What virtual machines map. `None` without KVM.
    pub(crate) machines: Option<SharedImage>,
    /// Whether it is not the host's own image: then nothing relies on its first steps, in which a process confines itself.
    pub(crate) is_foreign: bool,
}

impl LoadedImage {
    /// Verifies and prepares an image.
    pub(crate) fn new(file: &[u8], has_machines: bool, is_foreign: bool) -> Result<Self, HostError> {
        let parsed = Image::parse(file)?;
        Ok(Self {
            file: process::image_file(file)?,
            machines: if has_machines { Some(SharedImage::new(&parsed)?) } else { None },
            parsed,
            is_foreign,
        })
    }
}

impl fmt::Debug for LoadedImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedImage").field("entry", &self.parsed.entry).finish_non_exhaustive()
    }
}
