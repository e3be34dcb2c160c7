//! Helpers shared by the drivers of kernel devices.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Converts a network device's name for the kernel: at most 15 bytes, no slash, no space, not `.` or `..`.
pub(crate) fn name(name: &str) -> io::Result<[libc::c_char; libc::IFNAMSIZ]> {
    let bytes = name.as_bytes();
    let forbidden = |byte: &u8| *byte <= b' ' || *byte == b'/' || *byte == b':' || *byte >= 0x7f;
    let valid = (1..libc::IFNAMSIZ).contains(&bytes.len()) && !bytes.iter().any(forbidden);
    if !valid || name == "." || name == ".." {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not the name of a network device"));
    }
    let mut result = [0; libc::IFNAMSIZ];
    for (to, from) in result.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    Ok(result)
}

/// The result of a system call, or its error.
pub(crate) fn check(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Whether the call would have blocked.
pub(crate) fn not_now(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS))
}

/// Lets calls on the descriptor fail where they would block.
pub(crate) fn set_nonblocking(descriptor: &OwnedFd) -> io::Result<()> {
    // SAFETY: these calls read and write flags of the descriptor.
    unsafe {
        let flags = check(libc::fcntl(descriptor.as_raw_fd(), libc::F_GETFL) as isize)? as libc::c_int;
        check(libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) as isize)?;
    }
    Ok(())
}

/// Whether the descriptor is readable.
pub(crate) fn readable(descriptor: &impl AsRawFd) -> bool {
    let mut poll = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one live entry; the call doesn't block.
    unsafe { libc::poll(&mut poll, 1, 0) > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        for (text, valid) in [
            ("tap0", true),
            ("a-device.of_15ch", false),
            ("a-device.of_15c", true),
            ("", false),
            ("..", false),
            ("a/b", false),
            ("a b", false),
            ("a\0", false),
            ("ä", false),
        ] {
            assert_eq!(name(text).is_ok(), valid, "{text}");
        }
    }
}
