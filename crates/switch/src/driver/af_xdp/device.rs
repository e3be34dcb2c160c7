//! What is asked of a network device before it is opened: its number, MTU and queues.

use super::error::XdpError;
use super::limits::{MAX_MTU, MAX_QUEUES};
use crate::driver::kernel::{check, name};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// `ETHTOOL_GCHANNELS`
const READ_CHANNELS: u32 = 0x3c;
/// `SIOCETHTOOL`
const ETHTOOL: libc::c_ulong = 0x8946;

/// `struct ethtool_channels`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Channels {
    command: u32,
    most: [u32; 4],
    receive: u32,
    send: u32,
    other: u32,
    combined: u32,
}

/// A network device that XDP sockets can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Device {
    /// Its number.
    pub(super) index: u32,
    /// The number of its receive queues to use, from the first one on.
    pub(super) queues: u32,
    /// The number of its queues that frames can be sent through, from the first one on.
    pub(super) senders: u32,
}

impl Device {
    /// Looks at the device with this name. `queues`: how many receive queues to use; `None`: all.
    pub(super) fn find(socket: &OwnedFd, device: &str, queues: Option<u32>) -> Result<Self, XdpError> {
        let device = name(device).map_err(XdpError::Device)?;
        let request = || {
            // SAFETY: zeros are a valid request.
            let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
            request.ifr_name = device;
            request
        };
        let ask = |number, request: &mut libc::ifreq| {
            // SAFETY: the kernel reads the name and fills in the field that belongs to the number; what a pointer in the request
            // leads to is alive.
            check(unsafe { libc::ioctl(socket.as_raw_fd(), number, request) } as isize)
        };
        let (mut index, mut mtu, mut channels) = (request(), request(), request());
        ask(libc::SIOCGIFINDEX, &mut index).map_err(XdpError::Device)?;
        ask(libc::SIOCGIFMTU, &mut mtu).map_err(XdpError::Device)?;
        let mut answer = Channels { command: READ_CHANNELS, ..Channels::default() };
        channels.ifr_ifru.ifru_data = (&raw mut answer).cast();
        let found = match ask(ETHTOOL, &mut channels) {
            Ok(_) => {
                [answer.receive, answer.send].map(|queues| queues.saturating_add(answer.combined).max(1))
            }
            // A device that cannot say it has one.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => [1; 2],
            Err(error) => return Err(XdpError::Device(error)),
        };
        // SAFETY: the calls succeeded, so both fields are filled in.
        let (index, mtu) = unsafe { (index.ifr_ifru.ifru_ifindex, mtu.ifr_ifru.ifru_mtu) };
        let [found, senders] = found;
        Self { index: number(index)?, queues: 0, senders }.checked(number(mtu)?, found, queues)
    }

    /// The device, if XDP can be used with this MTU and as many queues.
    fn checked(self, mtu: u32, found: u32, queues: Option<u32>) -> Result<Self, XdpError> {
        if mtu > MAX_MTU {
            return Err(XdpError::Mtu(mtu));
        }
        let queues = queues.unwrap_or(found);
        match (1..=found.min(MAX_QUEUES)).contains(&queues) {
            true => Ok(Self { queues, ..self }),
            false => Err(XdpError::Queues(found)),
        }
    }
}

fn number(number: i32) -> Result<u32, XdpError> {
    u32::try_from(number).map_err(|_| XdpError::Device(io::ErrorKind::InvalidData.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_checked() {
        let device = Device { index: 3, queues: 0, senders: 1 };
        let queues = |mtu, found, wanted| device.checked(mtu, found, wanted).map(|device| device.queues);
        assert_eq!(queues(1500, 1, None).unwrap(), 1);
        assert_eq!(queues(MAX_MTU, 16, None).unwrap(), 16);
        assert_eq!(queues(1500, 63, Some(2)).unwrap(), 2);
        assert!(matches!(queues(MAX_MTU + 1, 1, None), Err(XdpError::Mtu(1775))));
        assert!(matches!(queues(1500, 17, None), Err(XdpError::Queues(17))));
        assert!(matches!(queues(1500, 2, Some(3)), Err(XdpError::Queues(2))));
        assert!(matches!(queues(1500, 2, Some(0)), Err(XdpError::Queues(2))));
    }
}
