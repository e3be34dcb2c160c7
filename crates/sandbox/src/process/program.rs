//! The image as an executable file, and shared regions as files that can be passed on.

use crate::error::{CreateError, HostError, SystemError};
use crate::image::Image;
use crate::process::filter;
use crate::process::spawner::{Forker, Spawner};
use seccompiler::BpfProgram;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

/// An image that can be executed many times.
pub(crate) struct Program {
    pub(crate) image: Arc<Image>,
    pub(crate) filter: BpfProgram,
    pub(crate) spawner: Spawner,
}

impl Program {
    pub(crate) fn new(image: &Arc<Image>, forker: Option<Forker>) -> Result<Self, HostError> {
        let file = Self::file(image)?;
        let spawner = Spawner::start(&file, forker)?;
        Ok(Self { image: image.clone(), filter: filter::program()?, spawner })
    }

    /// The image as a file. Its pages are shared by all processes that run it.
    fn file(image: &Image) -> Result<OwnedFd, SystemError> {
        let file = memory_file(c"box-image")?;
        let mut file = File::from(file);
        file.write_all(&image.file).map_err(|cause| SystemError { action: "store the box image", cause })?;
        let file = OwnedFd::from(file);
        seal(&file, libc::F_SEAL_WRITE | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW)?;
        Ok(file)
    }

    /// A program whose boxes and spawner may make all system calls.
    #[cfg(test)]
    pub(crate) fn without_filter(image: &Arc<Image>) -> Result<Self, HostError> {
        let spawner = Spawner::with_filter(&Self::file(image)?, None, None)?;
        Ok(Self { image: image.clone(), filter: filter::permit_all(), spawner })
    }
}

/// A zeroed memory file for a shared region. Its size is sealed: if the file shrank, accesses of the host would fault.
pub(crate) fn region_file(size: usize) -> Result<OwnedFd, CreateError> {
    let file = File::from(memory_file(c"box-region")?);
    file.set_len(size as u64)
        .map_err(|cause| SystemError { action: "set the size of shared memory", cause })?;
    let file = OwnedFd::from(file);
    seal(&file, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW)?;
    Ok(file)
}

pub(super) fn memory_file(name: &std::ffi::CStr) -> Result<OwnedFd, SystemError> {
    // SAFETY: the name is a C string; a returned descriptor is owned by the caller.
    unsafe {
        match libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) {
            descriptor if descriptor >= 0 => Ok(OwnedFd::from_raw_fd(descriptor)),
            _ => Err(SystemError::last("create a file in memory")),
        }
    }
}

fn seal(file: &OwnedFd, seals: i32) -> Result<(), SystemError> {
    // SAFETY: the descriptor is open; the call touches no memory.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals | libc::F_SEAL_SEAL) } {
        0 => Ok(()),
        _ => Err(SystemError::last("seal a file in memory")),
    }
}
