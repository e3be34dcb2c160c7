//! Memory files whose length is sealed: the process that also has one cannot make an access to it raise a signal.

use super::kernel::check;
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// With these seals the file keeps its length. All who have it may write to it.
pub(super) const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// Creates a memory file of `size` bytes, all zeros and sealed.
pub(super) fn create(name: &CStr, size: usize) -> io::Result<OwnedFd> {
    // Kernels before 6.3 do not know MFD_NOEXEC_SEAL, and some hosts require it.
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    let open = |flags| {
        // SAFETY: the name is a string that ends with a zero byte.
        match unsafe { libc::memfd_create(name.as_ptr(), flags) } {
            descriptor if descriptor >= 0 => {
                // SAFETY: the call returned this descriptor, and nothing else owns it.
                Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
            }
            _ => Err(io::Error::last_os_error()),
        }
    };
    let file = match open(flags | libc::MFD_NOEXEC_SEAL) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => open(flags)?,
        other => other?,
    };
    // SAFETY: these calls change the length and the seals of the file.
    unsafe {
        check(libc::ftruncate(file.as_raw_fd(), size as libc::off_t) as isize)?;
        check(libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) as isize)?;
    }
    Ok(file)
}

/// A memory file with small pages.
pub(super) struct MemoryFile {
    pub(super) seals: libc::c_int,
    /// Its length in bytes.
    pub(super) length: u64,
    /// Its number, which no other memory file has.
    pub(super) number: u64,
}

impl MemoryFile {
    /// What a file of another process is. Returns `None` if it is no memory file, or one with huge pages: they can run out, which
    /// raises a signal at the access.
    pub(super) fn inspect(file: &OwnedFd) -> io::Result<Option<Self>> {
        // The seals come first. Other calls could wait for who serves the file, but only files in memory have seals.
        // SAFETY: the call reads the seals of the file.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        if seals < 0 {
            return Ok(None);
        }
        let (mut volume, mut status) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: the kernel fills the variables, each of the type of its call. They are read only if it has done so.
        let (volume, status): (libc::statfs, libc::stat) = unsafe {
            check(libc::fstatfs(file.as_raw_fd(), volume.as_mut_ptr()) as isize)?;
            check(libc::fstat(file.as_raw_fd(), status.as_mut_ptr()) as isize)?;
            (volume.assume_init(), status.assume_init())
        };
        let length = u64::try_from(status.st_size).unwrap_or(0);
        Ok((volume.f_type == libc::TMPFS_MAGIC).then_some(Self { seals, length, number: status.st_ino }))
    }
}
