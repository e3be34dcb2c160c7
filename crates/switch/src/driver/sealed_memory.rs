//! Memory files whose length is sealed: the process that also has one cannot make an access to it raise a signal.

use super::kernel::check;
use std::ffi::CStr;
use std::io;
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
