//! `tap`: a kernel network device whose other end is the switch.

use super::contract::{Driver, DriverError, Received, Sent};
use super::kernel::{check, name, not_now, readable, set_nonblocking};
use crate::batch::{Batch, MAX_FRAME};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;

/// `TUNSETIFF`
const SET_DEVICE: libc::c_ulong = 0x4004_54ca;
/// `TUNGETIFF`
const GET_DEVICE: libc::c_ulong = 0x8004_54d2;
/// How the device passes frames: Ethernet, without additional headers.
const FLAGS: libc::c_int = libc::IFF_TAP | libc::IFF_NO_PI;

/// A TAP device.
#[derive(Debug)]
pub struct Tap(OwnedFd);

impl Tap {
    /// Opens a TAP device. It is created if it does not exist, and removed on drop unless it is persistent.
    pub fn open(device: &str) -> io::Result<Self> {
        Self::from_descriptor(Self::open_descriptor(device)?)
    }

    /// The part of [`open`](Self::open) that needs privileges. The device exists as long as a duplicate of the
    /// descriptor is open. One that is created here is brought up, if that is permitted; one that was there stays as it is.
    pub fn open_descriptor(device: &str) -> io::Result<OwnedFd> {
        let is_new = !exists(device)?;
        let file =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        // SAFETY: an all-zero request is valid; the call reads its name and flags.
        unsafe {
            let mut request: libc::ifreq = std::mem::zeroed();
            request.ifr_name = name(device)?;
            request.ifr_ifru.ifru_flags = FLAGS as libc::c_short;
            check(libc::ioctl(file.as_raw_fd(), SET_DEVICE, &request) as isize)?;
        }
        if is_new {
            // Without the permission it is down until somebody brings it up, and frames for it are counted as `down`.
            let _ = bring_up(device);
        }
        Ok(file.into())
    }

    /// The other part, without privileges: uses a descriptor that another process opened. Refuses what is no TAP
    /// device, or one with additional headers before its frames.
    pub fn from_descriptor(descriptor: OwnedFd) -> io::Result<Self> {
        let (_, flags) = described(&descriptor)?;
        if flags & FLAGS != FLAGS || flags & libc::IFF_VNET_HDR != 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not a plain TAP device"));
        }
        set_nonblocking(&descriptor)?;
        Ok(Self(descriptor))
    }

    /// Whether a descriptor is that of the TAP device with this name.
    pub fn is_descriptor_of(descriptor: &OwnedFd, device: &str) -> bool {
        let wanted = name(device).ok();
        described(descriptor).is_ok_and(|(found, flags)| Some(found) == wanted && flags & FLAGS == FLAGS)
    }
}

/// A request that names a network device.
fn request(device: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero bytes are a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name = name(device)?;
    Ok(request)
}

/// Whether there is a network device with this name.
fn exists(device: &str) -> io::Result<bool> {
    let request = request(device)?;
    // SAFETY: the name ends with a zero byte.
    Ok(unsafe { libc::if_nametoindex(request.ifr_name.as_ptr()) } != 0)
}

/// Brings a network device up.
fn bring_up(device: &str) -> io::Result<()> {
    let mut request = request(device)?;
    // Requests about devices work on sockets of all kinds.
    let socket = UnixDatagram::unbound()?;
    // SAFETY: both calls read and write the request only, whose flags are valid after the first one.
    unsafe {
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &mut request) as isize)?;
        request.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short;
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &request) as isize)?;
    }
    Ok(())
}

/// The name and the flags of the device behind a descriptor.
fn described(descriptor: &OwnedFd) -> io::Result<([libc::c_char; libc::IFNAMSIZ], libc::c_int)> {
    // SAFETY: an all-zero request is valid; the call fills in its name and flags. On a descriptor of another kind, it
    // fails.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        check(libc::ioctl(descriptor.as_raw_fd(), GET_DEVICE, &mut request) as isize)?;
        Ok((request.ifr_name, libc::c_int::from(request.ifr_ifru.ifru_flags)))
    }
}

impl Driver for Tap {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let mut received = Received::default();
        // One byte more than the longest frame, to detect frames that are too long.
        let mut buffer = [0u8; MAX_FRAME + 1];
        // Unusable frames count too, so that a flood of them cannot make a visit endless.
        for _ in 0..batch.room() {
            // SAFETY: the kernel writes at most the buffer's length.
            let read = unsafe { libc::read(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
            match check(read) {
                Ok(length) if length > MAX_FRAME => received.long += 1,
                Ok(length) => drop(batch.push(&buffer[..length])),
                Err(error) if not_now(&error) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(received)
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        let mut sent = Sent::default();
        for frame in frames.iter().filter_map(|number| batch.frame(*number as usize)) {
            // SAFETY: the kernel reads the frame's bytes.
            let written = unsafe { libc::write(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len()) };
            match check(written) {
                Ok(_) => {}
                Err(error) if not_now(&error) => break,
                // A device that is down accepts nothing; it may come up again.
                Err(error) if error.raw_os_error() == Some(libc::EIO) => {
                    sent.down = true;
                    break;
                }
                Err(error) => return Err(error.into()),
            }
            sent.frames += 1;
            sent.bytes += frame.len() as u64;
        }
        Ok(sent)
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        Ok(!readable(&self.0))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }

    fn device(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
}
