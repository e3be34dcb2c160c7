//! Images as executable files, and shared regions as files that can be passed on.

use crate::error::{CreateError, HostError, SystemError};
use crate::process::filter;
use crate::process::spawner::{Forker, Spawner};
use seccompiler::BpfProgram;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// What all processes of a host share: their filter, and the spawner that creates them.
pub(crate) struct Program {
    pub(crate) filter: BpfProgram,
    pub(crate) spawner: Spawner,
}

impl Program {
    /// Starts the spawner, whose processes execute this image unless they are given another one.
    pub(crate) fn new(image: &OwnedFd, forker: Option<Forker>) -> Result<Self, HostError> {
        let spawner = Spawner::start(image, forker)?;
        Ok(Self { filter: filter::program()?, spawner })
    }

    /// A program whose boxes and spawner may make all system calls. Images of others have the filter that the spawner
    /// gives them.
    #[cfg(test)]
    pub(crate) fn without_filter(image: &OwnedFd) -> Result<Self, HostError> {
        Ok(Self { filter: filter::permit_all(), spawner: Spawner::with_filter(image, None, None)? })
    }
}

/// An image as a file. Its pages are shared by all processes that run it.
pub(crate) fn image_file(image: &[u8]) -> Result<OwnedFd, SystemError> {
    let mut file = File::from(memory_file(c"box-image")?);
    file.write_all(image).map_err(|cause| SystemError { action: "store the box image", cause })?;
    let file = OwnedFd::from(file);
    seal(&file, libc::F_SEAL_WRITE | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW)?;
    Ok(file)
}

/// A zeroed memory file for a shared region. Its size is sealed: if the file shrank, accesses of the host would fault.
pub(crate) fn region_file(size: usize) -> Result<OwnedFd, CreateError> {
    let file = File::from(memory_file(c"box-region")?);
    file.set_len(size as u64)
        .map_err(|cause| SystemError { action: "set the size of shared memory", cause })?;
    let file = OwnedFd::from(file);
    // Without the last one, a process that has the file could forbid others to map it.
    seal(&file, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL)?;
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

/// How often the kernel is asked to seal a file. While another part of it looks at a page, such as one that moves pages, it
/// answers, after some 0.1 s, that the file is in use.
const SEAL_ATTEMPTS: u32 = 20;

fn seal(file: &OwnedFd, seals: i32) -> Result<(), SystemError> {
    let mut attempt = 1;
    loop {
        // SAFETY: the descriptor is open; the call touches no memory.
        let sealed = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals | libc::F_SEAL_SEAL) };
        if sealed == 0 {
            return Ok(());
        }
        let error = SystemError::last("seal a file in memory");
        if error.cause.raw_os_error() != Some(libc::EBUSY) || attempt == SEAL_ATTEMPTS {
            return Err(error);
        }
        attempt += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    #[test]
    fn a_file_that_stays_in_use_is_an_error() {
        let file = region_file_without_seals();
        // SAFETY: a new mapping is made, and removed before anything uses it.
        unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let address = libc::mmap(null_mut(), 4096, access, libc::MAP_SHARED, file.as_raw_fd(), 0);
            assert_ne!(address, libc::MAP_FAILED);
            let refused = seal(&file, libc::F_SEAL_WRITE).unwrap_err();
            assert_eq!(refused.cause.raw_os_error(), Some(libc::EBUSY));
            assert_eq!(libc::munmap(address, 4096), 0);
        }
        seal(&file, libc::F_SEAL_WRITE).unwrap();
    }

    fn region_file_without_seals() -> OwnedFd {
        let file = File::from(memory_file(c"test").unwrap());
        file.set_len(4096).unwrap();
        file.into()
    }
}
