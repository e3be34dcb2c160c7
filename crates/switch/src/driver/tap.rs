//! `tap`: a kernel network device whose other end is the switch.
//!
//! If the device was opened with offload headers, the kernel passes GSO frames in both directions: on entry they are
//! segmented and checksums are filled in, on exit segments are coalesced. A device without them works frame by frame.
//!
//! A device may have several queues. The kernel notes by which queue a flow last came from the switch, and passes the frames of
//! the other direction by the same.

use super::contract::{Driver, DriverError, LinkState, Received, Sent};
use super::kernel::{Interface, check, is_down, name, not_now, readable, ready_events, set_nonblocking};
use crate::batch::{Batch, MAX_FRAME};
use crate::device::{Coalescer, MAX_MESSAGE, MAX_PARTS, OFFLOAD_HEADER, RxFrame, SET_OFFLOADS, Segmenter};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;

/// `TUNSETIFF`
const SET_DEVICE: libc::c_ulong = 0x4004_54ca;
/// `TUNGETIFF`
const GET_DEVICE: libc::c_ulong = 0x8004_54d2;
/// `TUNGETVNETHDRSZ`
const GET_HEADER_LENGTH: libc::c_ulong = 0x8004_54d7;
/// `TUNSETVNETHDRSZ`
const SET_HEADER_LENGTH: libc::c_ulong = 0x4004_54d8;
/// How the device passes frames: Ethernet, without information on the packet.
const FLAGS: libc::c_int = libc::IFF_TAP | libc::IFF_NO_PI;
/// What the kernel may leave to the switch: checksums, and segmentation of TCP (over IPv4, over IPv6, and with congestion
/// notification).
const OFFLOADS: libc::c_uint = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
/// Segmentation of UDP, since Linux 6.2 (`TUN_F_USO4`, `TUN_F_USO6`).
const UDP_OFFLOADS: libc::c_uint = 0x60;

/// Why a device can't be used any more.
const WAS_REMOVED: &str = "the device was removed";

/// A TAP device.
#[derive(Debug)]
pub struct Tap {
    file: File,
    /// The name of the device when it was opened.
    name: [libc::c_char; libc::IFNAMSIZ],
    /// Frames have an offload header.
    has_headers: bool,
    /// Room for what one call reads.
    buffer: Vec<u8>,
    /// Splits the current GSO frame.
    segmenter: Segmenter,
    coalescer: Coalescer,
}

impl Tap {
    /// Opens a TAP device. It is created if it does not exist, and removed on drop unless it is persistent.
    pub fn open(device: &str) -> io::Result<Self> {
        Self::from_descriptor(Self::open_descriptor(device)?)
    }

    /// The part of [`open`](Self::open) that needs privileges. The device exists as long as a duplicate of the
    /// descriptor is open. One that is created here is brought up, if that is permitted; one that was there stays as it is, and is
    /// refused with `EMSGSIZE` if its MTU is above 2,034: buffers have no room for its frames.
    pub fn open_descriptor(device: &str) -> io::Result<OwnedFd> {
        Self::open_with(device, 0)
    }

    /// The same for the first queue of a device that may have several. One that was there may be for one queue.
    pub fn open_first_queue(device: &str) -> io::Result<OwnedFd> {
        Self::open_with(device, libc::IFF_MULTI_QUEUE)
    }

    /// Adds queues to the device behind a descriptor, until there are as many here. Returns their descriptors, that one first.
    pub fn add_queues(first: OwnedFd, device: &str, queues: usize) -> io::Result<Vec<OwnedFd>> {
        let can_have_more = described(&first)?.1 & libc::IFF_MULTI_QUEUE != 0;
        let mut all = vec![first];
        while can_have_more && all.len() < queues {
            all.push(attach(device, libc::IFF_MULTI_QUEUE)?.into());
        }
        Ok(all)
    }

    /// Opens a device, which is created with these flags if it does not exist.
    fn open_with(device: &str, wanted: libc::c_int) -> io::Result<OwnedFd> {
        let is_new = !exists(device)?;
        if !is_new {
            // Requests about devices work on sockets of all kinds.
            Interface::named(&UnixDatagram::unbound()?, name(device)?)?.check_mtu()?;
        }
        let file = match attach(device, wanted) {
            // A device that was there may be for several queues, or for one.
            Err(error) if !is_new && error.raw_os_error() == Some(libc::EINVAL) => {
                attach(device, wanted ^ libc::IFF_MULTI_QUEUE)?
            }
            result => result?,
        };
        // A device that was there may have headers of another length, and other offloads.
        let length = OFFLOAD_HEADER as libc::c_int;
        // SAFETY: the first call reads one integer, the others take one as their argument.
        unsafe {
            check(libc::ioctl(file.as_raw_fd(), SET_HEADER_LENGTH, &length) as isize)?;
            // Without offloads, the kernel does the work before it passes frames on.
            let _ = libc::ioctl(file.as_raw_fd(), SET_OFFLOADS, OFFLOADS | UDP_OFFLOADS) == 0
                || libc::ioctl(file.as_raw_fd(), SET_OFFLOADS, OFFLOADS) == 0;
        }
        if is_new {
            // Without the permission it is down until somebody brings it up, and frames for it are counted as `down`.
            let _ = bring_up(device);
        }
        Ok(file.into())
    }

    /// The other part, without privileges: uses a descriptor that another process opened, with offload headers or without.
    /// Refuses what is no TAP device.
    pub fn from_descriptor(descriptor: OwnedFd) -> io::Result<Self> {
        let (name, flags) = described(&descriptor)?;
        let has_headers = flags & libc::IFF_VNET_HDR != 0;
        if flags & FLAGS != FLAGS
            || (has_headers && header_length(&descriptor)? != OFFLOAD_HEADER as libc::c_int)
        {
            let text = "this is not a TAP device, or has other headers before its frames";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        set_nonblocking(&descriptor)?;
        // One byte more than the longest frame, to detect frames that are too long.
        let length = if has_headers { MAX_MESSAGE } else { MAX_FRAME + 1 };
        let (segmenter, coalescer) = (Segmenter::default(), Coalescer::default());
        let buffer = vec![0; length];
        Ok(Self { file: descriptor.into(), name, has_headers, buffer, segmenter, coalescer })
    }

    /// Whether a descriptor is that of the TAP device with this name.
    pub fn is_descriptor_of(descriptor: &OwnedFd, device: &str) -> bool {
        let wanted = name(device).ok();
        described(descriptor).is_ok_and(|(found, flags)| Some(found) == wanted && flags & FLAGS == FLAGS)
    }
}

/// Opens a queue of a device.
fn attach(device: &str, flags: libc::c_int) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    let mut request = request(device)?;
    request.ifr_ifru.ifru_flags = (FLAGS | libc::IFF_VNET_HDR | flags) as libc::c_short;
    // SAFETY: the call reads the name and the flags of the request.
    check(unsafe { libc::ioctl(file.as_raw_fd(), SET_DEVICE, &request) } as isize)?;
    Ok(file)
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
fn described(descriptor: &impl AsRawFd) -> io::Result<([libc::c_char; libc::IFNAMSIZ], libc::c_int)> {
    // SAFETY: an all-zero request is valid; the call fills in its name and flags. On a descriptor of another kind, it
    // fails.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        check(libc::ioctl(descriptor.as_raw_fd(), GET_DEVICE, &mut request) as isize)?;
        Ok((request.ifr_name, libc::c_int::from(request.ifr_ifru.ifru_flags)))
    }
}

/// The length of the headers before frames.
fn header_length(descriptor: &OwnedFd) -> io::Result<libc::c_int> {
    let mut length = 0;
    // SAFETY: the call writes one integer.
    check(unsafe { libc::ioctl(descriptor.as_raw_fd(), GET_HEADER_LENGTH, &mut length) } as isize)?;
    Ok(length)
}

impl Driver for Tap {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let mut received = Received::default();
        let Self { file, has_headers, buffer, segmenter, .. } = self;
        // Unusable frames count too, so that a flood of them cannot make a visit endless.
        for _ in 0..=batch.room() {
            while !segmenter.is_empty() {
                let Some(length) = batch.space().and_then(|space| segmenter.take(space)) else {
                    return Ok(received);
                };
                batch.commit(length);
            }
            if batch.room() == 0 {
                break;
            }
            let length = match file.read(buffer) {
                Ok(length) => length,
                Err(error) if not_now(&error) => break,
                Err(error) if error.raw_os_error() == Some(libc::EBADFD) => {
                    return Err(io::Error::new(io::ErrorKind::NotFound, WAS_REMOVED).into());
                }
                Err(error) => return Err(error.into()),
            };
            let Some(frame) = RxFrame::from_tap(buffer.get(..length).unwrap_or_default(), *has_headers)
            else {
                received.faulty += 1;
                continue;
            };
            if frame.is_gso() {
                let frame = frame.large();
                received.long += u64::from(!segmenter.load_message(buffer, frame, MAX_FRAME));
            } else if batch.space().is_some_and(|space| frame.copy_to(space)) {
                batch.commit(frame.length());
            } else {
                received.long += 1;
            }
        }
        Ok(received)
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        let mut sent = Sent::default();
        let Self { file, has_headers, coalescer, .. } = self;
        match *has_headers && Coalescer::is_worthwhile(batch, frames) {
            // The kernel takes frames of any length from this side.
            true => coalescer.join(batch, frames, usize::MAX),
            false => coalescer.separate(batch, frames),
        }
        let mut next = 0;
        while let Some(group) = coalescer.groups().get(next) {
            let (mut parts, mut count) = ([IoSlice::new(&[]); MAX_PARTS], 0);
            let message = coalescer.message(group, batch, frames).skip(usize::from(!*has_headers));
            for (to, part) in parts.iter_mut().zip(message) {
                *to = IoSlice::new(part);
                count += 1;
            }
            match file.write_vectored(parts.get(..count).unwrap_or_default()) {
                Ok(_) => {}
                Err(error) if not_now(&error) => break,
                // A device that is down accepts nothing; it may come up again.
                Err(error) if error.raw_os_error() == Some(libc::EIO) => {
                    sent.down = true;
                    break;
                }
                // Each frame of a group is tried by itself.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) && group.frames > 1 => {
                    coalescer.split_refused(next);
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            let (count, bytes) = coalescer.size(group, batch, frames);
            sent.frames += count;
            sent.bytes += bytes;
            next += 1;
        }
        coalescer.skip(next, usize::MAX, frames);
        Ok(sent)
    }

    fn skipped(&self) -> Vec<u32> {
        self.coalescer.skipped()
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        Ok(self.segmenter.is_empty() && !readable(&self.file))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }

    fn device(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }

    fn queues(&self) -> u32 {
        1
    }

    /// A device that is up can be written to, and always has a carrier while a descriptor is open.
    fn link_state(&self) -> Option<LinkState> {
        // Its name, which may have changed, would have to be asked for under the lock that the kernel has for all devices.
        let events = ready_events(&self.file, libc::POLLOUT);
        Some(match (events & libc::POLLERR != 0, events & libc::POLLOUT != 0) {
            (true, _) => LinkState::Gone(WAS_REMOVED.into()),
            (false, true) => LinkState::Up,
            (false, false) => is_down(&self.name),
        })
    }
}
