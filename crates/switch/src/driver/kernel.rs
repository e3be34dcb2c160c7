//! Helpers shared by the drivers of kernel devices.

use super::contract::LinkState;
use crate::batch::MAX_FRAME;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// What the kernel says about a network device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interface {
    name: [libc::c_char; libc::IFNAMSIZ],
    flags: libc::c_int,
    /// The longest IP packet that it takes, in bytes.
    pub(crate) mtu: usize,
}

impl Interface {
    /// Asks for the device with this name, by a socket of any kind.
    pub(crate) fn named(socket: &impl AsRawFd, name: [libc::c_char; libc::IFNAMSIZ]) -> io::Result<Self> {
        // SAFETY: an all-zero request is valid. Each call reads the name, and fills in the field that is read after it.
        let (flags, mtu) = unsafe {
            let mut request: libc::ifreq = std::mem::zeroed();
            request.ifr_name = name;
            check(libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &mut request) as isize)?;
            let flags = libc::c_int::from(request.ifr_ifru.ifru_flags);
            check(libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU, &mut request) as isize)?;
            (flags, request.ifr_ifru.ifru_mtu)
        };
        Ok(Self { name, flags, mtu: usize::try_from(mtu).unwrap_or(0) })
    }

    /// Asks for the device with this number, by a socket of any kind.
    pub(crate) fn numbered(socket: &impl AsRawFd, number: libc::c_int) -> io::Result<Self> {
        Self::named(socket, name_of(socket, number)?)
    }

    /// Whether the device with this number has a carrier; `None` if it is down. Takes less time than [`numbered`](Self::numbered).
    pub(crate) fn carrier(socket: &impl AsRawFd, number: libc::c_int) -> io::Result<Option<bool>> {
        // SAFETY: an all-zero request is valid. The call reads the name, and fills in the flags.
        let flags = unsafe {
            let mut request: libc::ifreq = std::mem::zeroed();
            request.ifr_name = name_of(socket, number)?;
            check(libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &mut request) as isize)?;
            libc::c_int::from(request.ifr_ifru.ifru_flags)
        };
        Ok((flags & libc::IFF_UP != 0).then_some(flags & libc::IFF_RUNNING != 0))
    }

    /// Whether it passes frames of more than `longest` bytes. Those of the loopback device hardly ever are as long as it allows.
    fn passes_more_than(&self, longest: usize) -> bool {
        self.mtu > longest - ETHERNET && self.flags & libc::IFF_LOOPBACK == 0
    }

    /// Refuses a device that passes frames for which buffers have no room.
    pub(crate) fn check_mtu(&self) -> io::Result<()> {
        match self.passes_more_than(MAX_FRAME) {
            true => Err(io::Error::from_raw_os_error(libc::EMSGSIZE)),
            false => Ok(()),
        }
    }

    /// Whether it is up and has a carrier, and passes no frames of more than `longest` bytes, which its driver drops.
    pub(crate) fn link_state(&self, longest: usize) -> LinkState {
        let (name, mtu) = (text(&self.name), self.mtu);
        if self.flags & libc::IFF_UP == 0 {
            return is_down(&self.name);
        }
        if self.flags & libc::IFF_RUNNING == 0 {
            return LinkState::Waiting(format!(
                "{name} has no carrier: its cable or its other end is disconnected or down"
            ));
        }
        match self.passes_more_than(longest) {
            true => LinkState::Limited(format!(
                "{name} has an MTU of {mtu}, and longer frames than {longest} bytes are dropped: ip link set {name} mtu 1500"
            )),
            false => LinkState::Up,
        }
    }
}

/// The name of the device with this number.
fn name_of(socket: &impl AsRawFd, number: libc::c_int) -> io::Result<[libc::c_char; libc::IFNAMSIZ]> {
    // SAFETY: an all-zero request is valid. The call reads the number, and fills in the name.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_ifru.ifru_ifindex = number;
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFNAME, &mut request) as isize)?;
        Ok(request.ifr_name)
    }
}

/// The state of a device that is down.
pub(crate) fn is_down(name: &[libc::c_char; libc::IFNAMSIZ]) -> LinkState {
    let name = text(name);
    LinkState::Waiting(format!("{name} is down: ip link set {name} up"))
}

/// A device's name as text.
fn text(name: &[libc::c_char; libc::IFNAMSIZ]) -> String {
    let bytes: Vec<u8> = name.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

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

/// Whether the descriptor is readable, or has an error.
pub(crate) fn readable(descriptor: &impl AsRawFd) -> bool {
    ready_events(descriptor, libc::POLLIN) != 0
}

/// Those of these events that there are at a descriptor, and errors.
pub(crate) fn ready_events(descriptor: &impl AsRawFd, events: libc::c_short) -> libc::c_short {
    let mut poll = libc::pollfd { fd: descriptor.as_raw_fd(), events, revents: 0 };
    // SAFETY: one live entry; the call doesn't block.
    let found = unsafe { libc::poll(&mut poll, 1, 0) };
    if found > 0 { poll.revents } else { 0 }
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
