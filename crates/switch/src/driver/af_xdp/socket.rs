//! The XDP socket of a receive queue. One process makes and binds it, with privileges; another one maps its rings.

use super::error::XdpError;
use super::mapping::Mapping;
use super::ring::{Layout, Ring, SIZE};
use super::umem::Umem;
use crate::driver::kernel::check;
use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Option of a socket: how many frames the kernel sends in one call. Known since Linux 6.17; before, it sends 32.
const MAX_TX_SKB_BUDGET: i32 = 9;

/// Memory for frames that the kernel sends: more than all buffers need, with the kernel's overhead.
const SEND_MEMORY: i32 = 1 << 24;

/// Makes a socket for a queue of a device, with its rings, and binds it: without copies if the driver of the device can do
/// that.
pub(super) fn open(device: u32, queue: u32, umem: &Umem) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: the new descriptor is owned by this value alone.
    let socket = unsafe { OwnedFd::from_raw_fd(check(libc::socket(libc::AF_XDP, kind, 0) as isize)? as i32) };
    set(&socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &umem.registration())?;
    let sends = umem.send_buffers().next().is_some();
    for ring in [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_RX_RING] {
        set(&socket, libc::SOL_XDP, ring, &SIZE)?;
    }
    if sends {
        set(&socket, libc::SOL_XDP, libc::XDP_TX_RING, &SIZE)?;
        // Without the privilege, the system's limit applies.
        let _ = set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_MEMORY)
            .or_else(|_| set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &SEND_MEMORY));
        // An earlier kernel takes more calls.
        let _ = set(&socket, libc::SOL_XDP, MAX_TX_SKB_BUDGET, &SIZE);
    }
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_USE_NEED_WAKEUP,
        sxdp_ifindex: device,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    // SAFETY: the kernel reads a live address of this size.
    let bound = unsafe {
        let size = size_of_val(&address) as libc::socklen_t;
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size)
    };
    check(bound as isize)?;
    Ok(socket)
}

/// The rings of a socket.
#[derive(Debug)]
pub(super) struct Rings {
    /// Empty buffers, to the kernel.
    pub(super) fill: Ring<1>,
    /// Received frames.
    pub(super) received: Ring<2>,
    /// Buffers that were sent, from the kernel.
    pub(super) completion: Ring<1>,
    /// Frames to send, if the queue sends.
    pub(super) send: Option<Ring<2>>,
}

impl Rings {
    /// Maps the rings. Refuses what is no XDP socket with rings of the right size.
    pub(super) fn map(socket: &OwnedFd, sends: bool) -> Result<Self, XdpError> {
        // SAFETY: zeros are valid offsets, which the kernel replaces.
        let mut offsets: libc::xdp_mmap_offsets = unsafe { zeroed() };
        let size =
            get(socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, &mut offsets).map_err(XdpError::Socket)?;
        if size != size_of_val(&offsets) {
            return Err(XdpError::Descriptors);
        }
        Ok(Self {
            fill: map(socket, libc::XDP_UMEM_PGOFF_FILL_RING as i64, offsets.fr)?,
            received: map(socket, libc::XDP_PGOFF_RX_RING, offsets.rx)?,
            completion: map(socket, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64, offsets.cr)?,
            send: sends.then(|| map(socket, libc::XDP_PGOFF_TX_RING, offsets.tx)).transpose()?,
        })
    }
}

fn map<const WORDS: usize>(
    socket: &OwnedFd,
    offset: i64,
    parts: libc::xdp_ring_offset,
) -> Result<Ring<WORDS>, XdpError> {
    let place = |offset: u64| usize::try_from(offset).map_err(|_| XdpError::Descriptors);
    let layout = Layout {
        producer: place(parts.producer)?,
        consumer: place(parts.consumer)?,
        flags: place(parts.flags)?,
        entries: place(parts.desc)?,
    };
    // The kernel refuses to map more than the ring has.
    let mapping =
        Mapping::new(Some(socket.as_fd()), offset, layout.bytes(WORDS)).map_err(XdpError::Memory)?;
    Ring::new(mapping, layout)
}

/// Has the kernel send the frames in the send ring: all of them, or up to 32 if it is earlier than Linux 6.17.
pub(super) fn wake_sender(socket: &OwnedFd) -> io::Result<()> {
    // SAFETY: there are no bytes and no address to read.
    let sent = unsafe {
        libc::sendto(socket.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0)
    };
    check(sent).map(drop)
}

/// Has the driver of the device look for empty buffers.
pub(super) fn wake_receiver(socket: &OwnedFd) {
    // SAFETY: there is no room for bytes or an address.
    unsafe {
        let (bytes, address) = (std::ptr::null_mut(), std::ptr::null_mut());
        libc::recvfrom(socket.as_raw_fd(), bytes, 0, libc::MSG_DONTWAIT, address, std::ptr::null_mut());
    }
}

/// Frames that the kernel lost since the socket was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// Frames for which there was no empty buffer, no room in the ring, or that were longer than a buffer.
    pub(super) missed: u64,
    /// Frames to send that the kernel refused.
    pub(super) refused: u64,
}

/// Reads what the kernel lost.
pub(super) fn losses(socket: &OwnedFd) -> Losses {
    // SAFETY: zeros are a valid value, which the kernel replaces.
    let mut statistics: libc::xdp_statistics = unsafe { zeroed() };
    match get(socket, libc::SOL_XDP, libc::XDP_STATISTICS, &mut statistics) {
        // A frame without a buffer is in `rx_dropped`, too.
        Ok(_) => Losses {
            missed: statistics.rx_dropped.saturating_add(statistics.rx_ring_full),
            refused: statistics.tx_invalid_descs,
        },
        Err(_) => Losses::default(),
    }
}

/// Whether the device's driver reads and writes the buffers itself.
pub(super) fn is_zero_copy(socket: &OwnedFd) -> bool {
    let mut options = libc::xdp_options { flags: 0 };
    let result = get(socket, libc::SOL_XDP, libc::XDP_OPTIONS, &mut options);
    result.is_ok() && options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0
}

fn set<T>(socket: &OwnedFd, level: i32, option: i32, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads one value of the option's type. Memory that it registers is a live mapping.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const *value).cast(), size) };
    check(result as isize).map(drop)
}

/// Reads an option into a value of its type, which consists of integers. Returns the bytes that were filled in.
fn get<T>(socket: &OwnedFd, level: i32, option: i32, value: &mut T) -> io::Result<usize> {
    let mut size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most the value's size.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut *value).cast(), &mut size) };
    check(result as isize).map(|_| size as usize)
}
