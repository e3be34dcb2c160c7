//! What the drivers of the kernel's devices share.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// A network device's name as the kernel takes it: at most 15 bytes, no slash, no space, not a folder's
/// name.
pub(crate) fn name(name: &str) -> io::Result<[libc::c_char; libc::IFNAMSIZ]> {
    let bytes = name.as_bytes();
    let forbidden = |byte: &u8| *byte <= b' ' || *byte == b'/' || *byte == b':' || *byte >= 0x7f;
    let valid = (1..libc::IFNAMSIZ).contains(&bytes.len()) && !bytes.iter().any(forbidden);
    if !valid || name == "." || name == ".." {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is no name of a network device"));
    }
    let mut result = [0; libc::IFNAMSIZ];
    for (to, from) in result.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    Ok(result)
}

/// What a call returned, or the error that it left.
pub(crate) fn check(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Whether a call only says "not now".
pub(crate) fn not_now(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS))
}

/// Whether something can be read.
pub(crate) fn readable(descriptor: &OwnedFd) -> bool {
    let mut poll = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one live entry; it doesn't wait.
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
