//! A network interface, accessed by a packet socket. Frames are received from a ring in shared memory and sent in
//! batches with one system call. A transmit ring would be slower: the kernel reclaims its memory slot by slot.

use std::io;
use std::mem::{MaybeUninit, size_of, size_of_val, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::carrier::CarrierWatch;
use super::coalesce::MAX_PARTS;
use super::offload::{HEADER, MAX_MESSAGE};
use super::ring::{Mapping, Ring, RingLayout};
use super::rx_frame::RxFrame;
use crate::driver::kernel::{Interface, check, name, not_now, set_nonblocking};

/// Maximum frames sent by one system call.
const SEND_BATCH: usize = 64;
/// Room for the parts of these messages: two of each, and all of the last.
const SEND_PARTS: usize = 2 * SEND_BATCH + MAX_PARTS;
/// Size of the send buffer in bytes, including the kernel's overhead.
const SEND_MEMORY: i32 = 1 << 21;
/// Size in bytes of the receive buffer for GSO frames, which are queued outside the ring.
const GSO_MEMORY: i32 = 1 << 22;

/// A reserved protocol number, which no frame has. Sockets without a protocol are not informed about their interface.
const NO_PROTOCOL: u16 = 0xffff;

/// How a packet socket uses its interface.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketSocketSettings {
    /// Whether to receive frames that are addressed to others.
    pub promiscuous: bool,
    /// Whether to receive frames that this host sends.
    pub outbound: bool,
    /// Maximum bytes of a frame to keep, not counting its VLAN tag.
    pub snap: usize,
    /// Size of the receive ring in bytes; 0 disables receiving.
    pub receive: usize,
    /// Whether to receive GSO frames whole even if they exceed a slot.
    pub gso: bool,
    /// Whether to refuse an interface whose MTU allows frames for which the buffers of a switch have no room, with `EMSGSIZE`.
    pub fits: bool,
}

/// A packet socket bound to an interface.
#[derive(Debug)]
pub struct PacketSocket {
    socket: Arc<OwnedFd>,
    mapping: Option<Mapping>,
    receive: Option<Ring>,
    outbound: bool,
    snap: usize,
    /// Buffer for a GSO frame. If it is empty, GSO frames are truncated to a slot.
    gso: Vec<u8>,
    index: i32,
    mac: [u8; 6],
    carrier: Mutex<CarrierWatch>,
    /// When the socket was opened.
    start: Instant,
}

/// The result of sending frames.
#[derive(Debug, Default)]
pub struct SendOutcome {
    /// The number of frames sent: a prefix of the given frames.
    pub frames: usize,
    /// Why the next frame could not be sent. `None` if all were sent or the socket has no room now.
    pub error: Option<io::Error>,
}

impl PacketSocket {
    /// Opens a packet socket on the interface called `device`.
    pub fn open(device: &str, settings: PacketSocketSettings) -> io::Result<PacketSocket> {
        Self::from_descriptor(Self::open_descriptor(device, settings)?, settings)
    }

    /// The part of [`open`](Self::open) that needs privileges: a socket that is bound to the interface and receives
    /// nothing yet.
    pub fn open_descriptor(device: &str, settings: PacketSocketSettings) -> io::Result<OwnedFd> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: the new descriptor is owned by this value alone.
        let socket = unsafe {
            // With protocol 0 nothing is received.
            OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, kind, 0) as isize)? as i32)
        };
        let index = index(&socket, device)?;
        if settings.fits {
            Interface::numbered(&socket, index)?.check_mtu()?;
        }
        if settings.promiscuous {
            // SAFETY: an all-zero request is valid.
            let mut everything: libc::packet_mreq = unsafe { zeroed() };
            everything.mr_ifindex = index;
            everything.mr_type = libc::PACKET_MR_PROMISC as u16;
            set(&socket, libc::PACKET_ADD_MEMBERSHIP, &everything)?;
        }
        if settings.gso {
            raise_buffer_size(&socket, [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF], GSO_MEMORY);
        }
        raise_buffer_size(&socket, [libc::SO_SNDBUFFORCE, libc::SO_SNDBUF], SEND_MEMORY);
        bind(&socket, index, 0)?;
        Ok(socket)
    }

    /// The other part, without privileges: receives from a socket that another process opened with the same settings,
    /// and that no process has used yet. Refuses what is no such socket.
    pub fn from_descriptor(socket: OwnedFd, settings: PacketSocketSettings) -> io::Result<PacketSocket> {
        let (index, mac) = bound_to(&socket)?;
        set_nonblocking(&socket)?;
        set(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as i32))?;
        if !settings.outbound {
            set(&socket, libc::PACKET_IGNORE_OUTGOING, &1i32)?;
        }
        set(&socket, libc::PACKET_VNET_HDR, &1i32)?;
        if settings.gso {
            set(&socket, libc::PACKET_COPY_THRESH, &1i32)?;
        }
        let receive = match settings.receive {
            0 => None,
            memory => Some(create_ring(&socket, RingLayout::new(settings.snap, memory))?),
        };
        let mapping = receive.map(|layout| Mapping::new(socket.as_fd(), layout.bytes())).transpose()?;
        if receive.is_some() {
            bind(&socket, index, (libc::ETH_P_ALL as u16).to_be())?;
        }
        Ok(PacketSocket {
            socket: Arc::new(socket),
            mapping,
            receive: receive.map(Ring::new),
            outbound: settings.outbound,
            snap: settings.snap,
            gso: if settings.gso { vec![0; MAX_MESSAGE] } else { Vec::new() },
            index,
            mac,
            carrier: Mutex::default(),
            start: Instant::now(),
        })
    }

    /// Passes at most `most` received frames to `take`, and returns their number. If GSO frames are received whole, the
    /// batch ends at the first one, so that its packets keep their order among the others. Only frames that exceed a
    /// slot need a system call.
    pub fn receive(&mut self, most: usize, mut take: impl FnMut(RxFrame<'_>)) -> usize {
        let Self { mapping: Some(mapping), receive: Some(ring), gso, socket, .. } = self else { return 0 };
        let (mut taken, mut most, wants_gso) = (0, most, !gso.is_empty());
        while taken < most {
            let slot = ring.slot(mapping);
            let status = slot.status().load(Ordering::Acquire);
            if status & libc::TP_STATUS_USER == 0 {
                break;
            }
            // SAFETY: the status says that the kernel has filled the slot and does not touch it until it is returned,
            // which happens after the last use; a slot has the size that the ring states.
            let mut frame = unsafe { RxFrame::from_slot(&slot, ring.size(), self.snap) };
            let is_large = wants_gso && frame.is_gso();
            if is_large {
                most = 0;
            }
            if status & libc::TP_STATUS_COPY != 0 {
                // The kernel queued the whole frame outside the ring, in the same order.
                frame = match read_large_frame(socket, gso) {
                    Some(length) => frame.whole(gso.get(HEADER..length).unwrap_or_default()),
                    None => frame,
                };
            } else if is_large {
                frame = frame.moved(gso);
            }
            if frame.packet_type != libc::PACKET_OUTGOING || self.outbound {
                take(frame);
                taken += 1;
            }
            slot.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
            ring.advance();
        }
        taken
    }

    /// The buffer for a GSO frame: after [`receive`](Self::receive) has passed on one, it is there after its offload header.
    pub(crate) fn large_frame(&mut self) -> &mut Vec<u8> {
        &mut self.gso
    }

    /// Whether a frame is available.
    pub fn has_frame(&self) -> bool {
        let (Some(mapping), Some(ring)) = (&self.mapping, &self.receive) else { return false };
        ring.slot(mapping).status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Whether the interface can send now, as far as known. `false` if it is up and has no carrier.
    pub(crate) fn can_send(&self) -> bool {
        self.carrier().can_send(
            || Interface::carrier(&*self.socket, self.index).ok().flatten(),
            || self.start.elapsed(),
        )
    }

    /// Notes that the driver is about to sleep: the next [`can_send`](Self::can_send) may look at the interface.
    pub(crate) fn note_sleep(&self) {
        self.carrier().note_sleep(self.start.elapsed());
    }

    /// Notes that the interface was found to be down.
    pub(crate) fn note_down(&self) {
        self.carrier().note_down();
    }

    fn carrier(&self) -> MutexGuard<'_, CarrierWatch> {
        self.carrier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends frames in order, until the socket has no room. If the interface is down or has no carrier, the error is `ENETDOWN`.
    pub fn send<'f>(&self, frames: impl IntoIterator<Item = &'f [u8]>) -> SendOutcome {
        self.send_messages(frames.into_iter().map(|frame| [&[0; HEADER][..], frame]))
    }

    /// Sends messages in order, until the socket has no room. Each is an offload header and a frame, in at most
    /// [`MAX_PARTS`] parts.
    pub(crate) fn send_messages<'f, M: IntoIterator<Item = &'f [u8]>>(
        &self,
        messages: impl IntoIterator<Item = M>,
    ) -> SendOutcome {
        let (mut given, mut outcome) = (messages.into_iter(), SendOutcome::default());
        if !self.can_send() {
            outcome.error = Some(io::Error::from_raw_os_error(libc::ENETDOWN));
            return outcome;
        }
        loop {
            let mut parts = [const { MaybeUninit::<libc::iovec>::uninit() }; SEND_PARTS];
            let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; SEND_BATCH];
            let (mut room, mut count) = (&mut parts[..], 0);
            for header in &mut headers {
                if room.len() < MAX_PARTS {
                    break;
                }
                let Some(message) = given.next() else { break };
                let mut length = 0;
                for (to, part) in room.iter_mut().zip(message) {
                    to.write(part_of(part));
                    length += 1;
                }
                let (of_message, rest) = room.split_at_mut(length);
                header.write(message_of(of_message));
                (room, count) = (rest, count + 1);
            }
            if count == 0 {
                return outcome;
            }
            let (descriptor, headers) = (self.socket.as_raw_fd(), headers.as_mut_ptr().cast());
            // SAFETY: `count` messages were written. Each refers to its parts, which live until the call has returned
            // and which the kernel only reads.
            let sent = unsafe { libc::sendmmsg(descriptor, headers, count, libc::MSG_DONTWAIT) };
            match check(sent as isize) {
                Ok(sent) => outcome.frames += sent,
                Err(error) => {
                    if error.raw_os_error() == Some(libc::ENETDOWN) {
                        self.note_down();
                    }
                    outcome.error = Some(error).filter(|error| !not_now(error));
                }
            }
            if sent < count as i32 {
                return outcome;
            }
        }
    }

    /// The longest IP packet that the interface takes, in bytes; 0 if it is gone.
    pub(crate) fn mtu(&self) -> usize {
        self.interface().map_or(0, |interface| interface.mtu)
    }

    /// What the kernel says about the interface.
    pub(crate) fn interface(&self) -> io::Result<Interface> {
        Interface::numbered(&*self.socket, self.index)
    }

    /// The number of frames dropped since the last call because the ring was full.
    pub fn take_dropped(&self) -> u64 {
        // SAFETY: an all-zero structure is valid; the kernel writes at most its size. Reading resets the counts to
        // zero.
        unsafe {
            let mut statistics: libc::tpacket_stats = zeroed();
            let mut size = size_of_val(&statistics) as libc::socklen_t;
            let pointer = (&raw mut statistics).cast();
            let descriptor = self.socket.as_raw_fd();
            libc::getsockopt(descriptor, libc::SOL_PACKET, libc::PACKET_STATISTICS, pointer, &mut size);
            statistics.tp_drops.into()
        }
    }

    /// Takes the pending error of the socket, for example that the interface is down. While an error is pending, the
    /// descriptor polls as ready.
    pub fn take_error(&self) -> Option<io::Error> {
        let mut error = 0i32;
        let mut size = size_of_val(&error) as libc::socklen_t;
        let pointer = (&raw mut error).cast();
        // SAFETY: the kernel writes one integer.
        unsafe {
            libc::getsockopt(self.socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ERROR, pointer, &mut size);
        }
        if error == libc::ENETDOWN {
            self.note_down();
        }
        (error != 0).then(|| io::Error::from_raw_os_error(error))
    }

    /// Makes the descriptor of a socket that receives nothing report an error when the interface goes down or is removed.
    pub fn watch(&self) -> io::Result<()> {
        let (index, _) = bound_to(&self.socket)?;
        bind(&self.socket, index, NO_PROTOCOL)
    }

    /// Whether the interface was removed or moved to another network namespace. This socket never works again, even if
    /// a new interface gets the same name.
    pub fn is_gone(&self) -> bool {
        // SAFETY: an all-zero address is valid; the kernel writes at most its size.
        unsafe {
            let mut address: libc::sockaddr_ll = zeroed();
            let mut size = size_of_val(&address) as libc::socklen_t;
            let pointer = (&raw mut address).cast();
            libc::getsockname(self.socket.as_raw_fd(), pointer, &mut size) == 0 && address.sll_ifindex <= 0
        }
    }

    /// The interface's MAC address.
    pub fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// The socket, for polling: it is readable when a frame has arrived and writable when there is room to send one.
    pub fn socket(&self) -> Arc<OwnedFd> {
        self.socket.clone()
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// An I/O vector for these bytes.
fn part_of(bytes: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}

/// A message with these parts.
fn message_of(parts: &mut [MaybeUninit<libc::iovec>]) -> libc::mmsghdr {
    // SAFETY: an all-zero message is valid: it has no address and no parts.
    let mut message: libc::mmsghdr = unsafe { zeroed() };
    (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (parts.as_mut_ptr().cast(), parts.len());
    message
}

/// The index of an interface.
fn index(socket: &OwnedFd, device: &str) -> io::Result<i32> {
    // SAFETY: an all-zero request is valid, and its name is terminated. The call reads the name and fills in the field
    // that is read after it.
    unsafe {
        let mut request: libc::ifreq = zeroed();
        request.ifr_name = name(device)?;
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFINDEX, &mut request) as isize)?;
        Ok(request.ifr_ifru.ifru_ifindex)
    }
}

/// Binds a packet socket to the interface with this index, for a protocol in network byte order.
fn bind(socket: &OwnedFd, index: i32, protocol: u16) -> io::Result<()> {
    // SAFETY: an all-zero address is valid; the kernel reads it.
    unsafe {
        let mut address: libc::sockaddr_ll = zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        address.sll_ifindex = index;
        let size = size_of_val(&address) as libc::socklen_t;
        check(libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) as isize)?;
    }
    Ok(())
}

/// The index and the MAC address of the interface that a packet socket is bound to. Fails for any other descriptor, and
/// if the interface was removed.
fn bound_to(socket: &OwnedFd) -> io::Result<(i32, [u8; 6])> {
    let mut kind = 0i32;
    let mut size = size_of_val(&kind) as libc::socklen_t;
    let pointer = (&raw mut kind).cast();
    // SAFETY: the kernel writes one integer.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TYPE, pointer, &mut size) };
    check(result as isize)?;
    // SAFETY: an all-zero address is valid; the kernel writes at most its size.
    let address = unsafe {
        let mut address: libc::sockaddr_ll = zeroed();
        let mut size = size_of_val(&address) as libc::socklen_t;
        let pointer = (&raw mut address).cast();
        check(libc::getsockname(socket.as_raw_fd(), pointer, &mut size) as isize)?;
        address
    };
    if address.sll_family != libc::AF_PACKET as u16 || kind != libc::SOCK_RAW {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not a raw packet socket"));
    }
    if address.sll_ifindex <= 0 {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    let [m0, m1, m2, m3, m4, m5, ..] = address.sll_addr;
    Ok((address.sll_ifindex, [m0, m1, m2, m3, m4, m5]))
}

fn set<T>(socket: &OwnedFd, option: i32, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads one value of the option's type.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, (&raw const *value).cast(), size)
    };
    check(result as isize).map(drop)
}

/// Sets a socket buffer size with the first of the options that is permitted. Without the privilege, the system's limit
/// applies.
fn raise_buffer_size(socket: &OwnedFd, options: [i32; 2], memory: i32) {
    for option in options {
        let (pointer, size) = ((&raw const memory).cast(), size_of_val(&memory) as libc::socklen_t);
        // SAFETY: the kernel reads one integer.
        if unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, pointer, size) } == 0 {
            return;
        }
    }
}

/// Reads a frame that the kernel queued outside the ring. Returns the length of the message, if it fits the buffer.
fn read_large_frame(socket: &OwnedFd, buffer: &mut [u8]) -> Option<usize> {
    let pointer = buffer.as_mut_ptr().cast();
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: the kernel writes at most the buffer's length.
    let read = unsafe { libc::recv(socket.as_raw_fd(), pointer, buffer.len(), flags) };
    // A truncated frame reports a length greater than the buffer.
    check(read).ok().filter(|length| (HEADER..=buffer.len()).contains(length))
}

/// Creates the receive ring. If memory is short, tries smaller ones.
fn create_ring(socket: &OwnedFd, mut layout: RingLayout) -> io::Result<RingLayout> {
    loop {
        match (set(socket, libc::PACKET_RX_RING, &layout.request()), layout.halved()) {
            (Err(error), Some(half)) if error.raw_os_error() == Some(libc::ENOMEM) => layout = half,
            (result, _) => return result.map(|()| layout),
        }
    }
}
