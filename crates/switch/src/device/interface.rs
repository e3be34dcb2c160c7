//! A network interface, by a packet socket with rings in shared memory.

use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::arrival::Arrival;
use super::offload::HEADER;
use super::ring::{Layout, Mapping, Ring};
use crate::driver::device::{check, name, not_now};

/// Bytes of an Ethernet header with a VLAN tag, which an interface's largest packet does not count.
const LINK_HEADER: usize = 18;
/// Where in a slot a frame to send begins, and in front of it what is left to do on it: nothing.
const FRAME: usize = HEADER_PLACE + HEADER;
const HEADER_PLACE: usize = libc::TPACKET2_HDRLEN - size_of::<libc::sockaddr_ll>();
/// Bytes of an Ethernet header, of one with a VLAN tag, and what announces the tag.
const ETHERNET: usize = 14;
const TAGGED: [u8; 2] = [0x81, 0x00];
/// Bytes of the longest frame that the kernel joins out of others.
const JOINED: usize = ETHERNET + (1 << 16);
/// Bytes of joined frames that may wait beside the ring.
const JOINED_MEMORY: i32 = 1 << 22;

/// How an interface is used.
#[derive(Clone, Copy, Debug, Default)]
pub struct InterfaceSettings {
    /// Whether frames for others are wanted too.
    pub promiscuous: bool,
    /// Whether frames that this host sends are wanted too.
    pub outbound: bool,
    /// Bytes of a frame to keep, without its VLAN tag.
    pub snap: usize,
    /// Bytes of memory in which frames wait to be received; 0: it is not read.
    pub receive: usize,
    /// Bytes of memory in which frames wait to be sent; 0: it is not written.
    pub send: usize,
    /// Whether frames that the kernel has joined out of several are wanted whole, although a slot has no room for them.
    pub joined: bool,
}

/// A packet socket bound to an interface.
#[derive(Debug)]
pub struct Interface {
    socket: Arc<OwnedFd>,
    mapping: Option<Mapping>,
    receive: Option<Ring>,
    send: Option<Ring>,
    outbound: bool,
    snap: usize,
    /// Where a joined frame is read; empty: they are cut.
    joined: Vec<u8>,
    link: [u8; 6],
    /// Bytes of the longest frame to send that has no tag.
    longest: usize,
}

/// What became of frames to send.
#[derive(Debug, Default)]
pub struct Sending {
    /// How many went: the first of those that were given.
    pub frames: usize,
    /// Why the one after them can't be sent; none: there is no room now.
    pub error: Option<io::Error>,
}

impl Interface {
    /// Binds to the interface called `device`.
    pub fn open(device: &str, settings: InterfaceSettings) -> io::Result<Interface> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: a new descriptor becomes this value's own.
        let socket = unsafe {
            // With protocol 0 nothing is received before the socket is bound.
            OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, kind, 0) as isize)? as i32)
        };
        let (index, link, mtu) = facts(&socket, device)?;
        set(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as i32))?;
        if !settings.outbound {
            set(&socket, libc::PACKET_IGNORE_OUTGOING, &1i32)?;
        }
        if settings.promiscuous {
            // SAFETY: an all-zero request is valid.
            let mut everything: libc::packet_mreq = unsafe { zeroed() };
            everything.mr_ifindex = index;
            everything.mr_type = libc::PACKET_MR_PROMISC as u16;
            set(&socket, libc::PACKET_ADD_MEMBERSHIP, &everything)?;
        }
        set(&socket, libc::PACKET_VNET_HDR, &1i32)?;
        if settings.joined {
            set(&socket, libc::PACKET_COPY_THRESH, &1i32)?;
            more_memory(&socket);
        }
        let receive = match settings.receive {
            0 => None,
            memory => Some(reserve(&socket, libc::PACKET_RX_RING, Layout::new(settings.snap, memory))?),
        };
        let send = match settings.send {
            0 => None,
            memory => Some(reserve(&socket, libc::PACKET_TX_RING, Layout::new(mtu + LINK_HEADER, memory))?),
        };
        // The ring to receive comes first in the mapping, whichever was asked for first.
        let [first, second] = [receive, send].map(|layout| layout.map_or(0, |layout| layout.bytes()));
        let mapping = match first + second {
            0 => None,
            length => Some(Mapping::new(socket.as_fd(), length)?),
        };
        // SAFETY: an all-zero address is valid; the kernel reads it.
        unsafe {
            let mut address: libc::sockaddr_ll = zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = if receive.is_some() { (libc::ETH_P_ALL as u16).to_be() } else { 0 };
            address.sll_ifindex = index;
            let size = size_of_val(&address) as libc::socklen_t;
            check(libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) as isize)?;
        }
        Ok(Interface {
            socket: Arc::new(socket),
            mapping,
            receive: receive.map(|layout| Ring::new(layout, 0)),
            send: send.map(|layout| Ring::new(layout, first)),
            outbound: settings.outbound,
            snap: settings.snap,
            joined: if settings.joined { vec![0; HEADER + JOINED] } else { Vec::new() },
            link,
            longest: ETHERNET + mtu,
        })
    }

    /// Hands at most `most` frames that have arrived to `take`; how many. A joined one that is wanted whole is the last
    /// of them, so that its packets keep their place among the others; only for those is there a system call.
    pub fn receive(&mut self, most: usize, mut take: impl FnMut(Arrival<'_>)) -> usize {
        let Self { mapping: Some(mapping), receive: Some(ring), joined, socket, .. } = self else { return 0 };
        let (mut taken, mut most, wants_joined) = (0, most, !joined.is_empty());
        while taken < most {
            let slot = ring.slot(mapping, 0);
            let status = slot.status().load(Ordering::Acquire);
            if status & libc::TP_STATUS_USER == 0 {
                break;
            }
            // SAFETY: the status says that the kernel has filled the slot and leaves it alone until it is given back,
            // which happens after the last use; a slot is as large as the ring says.
            let mut arrival = unsafe { Arrival::in_slot(&slot, ring.size(), self.snap) };
            if status & libc::TP_STATUS_COPY != 0 {
                // The kernel has put the whole frame beside the ring, in the same order.
                arrival = read_whole(socket, joined).map_or(arrival, |frame| arrival.whole(frame));
            }
            if wants_joined && arrival.is_joined() {
                most = 0;
            }
            if arrival.kind != libc::PACKET_OUTGOING || self.outbound {
                take(arrival);
                taken += 1;
            }
            slot.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
            ring.advance(1);
        }
        taken
    }

    /// Whether a frame has arrived.
    pub fn has_arrived(&self) -> bool {
        let (Some(mapping), Some(ring)) = (&self.mapping, &self.receive) else { return false };
        ring.slot(mapping, 0).status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Sends frames in order, as far as there is room, with one system call.
    pub fn send<'f>(&mut self, frames: impl IntoIterator<Item = &'f [u8]>) -> Sending {
        let longest = self.longest;
        let (Some(mapping), Some(ring)) = (&self.mapping, &mut self.send) else { return Sending::default() };
        let (mut filled, mut long) = (0, false);
        for frame in frames {
            let slot = ring.slot(mapping, filled);
            if filled == ring.len() || slot.status().load(Ordering::Acquire) != libc::TP_STATUS_AVAILABLE {
                break;
            }
            let tag = if frame.get(12..14) == Some(&TAGGED) { LINK_HEADER - ETHERNET } else { 0 };
            if FRAME + frame.len() > ring.size() || frame.len() > longest + tag {
                long = true;
                break;
            }
            // SAFETY: the slot is this process's, as its status says, and the frame fits into it.
            unsafe {
                let header = slot.start().cast::<libc::tpacket2_hdr>();
                (&raw mut (*header).tp_len).write((HEADER + frame.len()) as u32);
                slot.start().add(HEADER_PLACE).cast::<[u8; HEADER]>().write([0; HEADER]);
                slot.start().add(FRAME).copy_from_nonoverlapping(frame.as_ptr(), frame.len());
            }
            slot.status().store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
            filled += 1;
        }
        let mut error = None;
        if filled > 0 {
            let (nothing, flags) = (std::ptr::null(), libc::MSG_DONTWAIT);
            // SAFETY: without bytes and address the kernel looks at the ring only.
            let result =
                unsafe { libc::sendto(self.socket.as_raw_fd(), nothing, 0, flags, std::ptr::null(), 0) };
            error = check(result).err().filter(|error| !not_now(error));
        }
        let mut sent = 0;
        let left = libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_WRONG_FORMAT;
        while sent < filled && ring.slot(mapping, sent).status().load(Ordering::Acquire) & left == 0 {
            sent += 1;
        }
        // The kernel looks at the ring in that call only: what it has left is this process's again.
        for ahead in sent..filled {
            ring.slot(mapping, ahead).status().store(libc::TP_STATUS_AVAILABLE, Ordering::Release);
        }
        ring.advance(sent);
        if sent == filled {
            error = long.then(|| io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        Sending { frames: sent, error }
    }

    /// Frames lost since the last call, because nobody took them in time.
    pub fn take_lost(&self) -> u64 {
        // SAFETY: an all-zero structure is valid; the kernel writes at most its size. Reading sets the counts to zero.
        unsafe {
            let mut told: libc::tpacket_stats = zeroed();
            let mut size = size_of_val(&told) as libc::socklen_t;
            let place = (&raw mut told).cast();
            let descriptor = self.socket.as_raw_fd();
            libc::getsockopt(descriptor, libc::SOL_PACKET, libc::PACKET_STATISTICS, place, &mut size);
            told.tp_drops.into()
        }
    }

    /// What went wrong with the interface since the last call, once: that it is down. Until then its descriptor is ready.
    pub fn take_error(&self) -> Option<io::Error> {
        let mut error = 0i32;
        let mut size = size_of_val(&error) as libc::socklen_t;
        let place = (&raw mut error).cast();
        // SAFETY: the kernel writes one integer.
        unsafe {
            libc::getsockopt(self.socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ERROR, place, &mut size);
        }
        (error != 0).then(|| io::Error::from_raw_os_error(error))
    }

    /// Its Ethernet address.
    pub fn link(&self) -> [u8; 6] {
        self.link
    }

    /// The socket, to be watched: it can be read when a frame has arrived, and written when there is room for one.
    pub fn socket(&self) -> Arc<OwnedFd> {
        self.socket.clone()
    }
}

impl AsFd for Interface {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The number of an interface, its Ethernet address and its largest packet.
fn facts(socket: &OwnedFd, device: &str) -> io::Result<(i32, [u8; 6], usize)> {
    let descriptor = socket.as_raw_fd();
    // SAFETY: an all-zero request is valid, its name is terminated; each call reads the name and fills in the field that
    // is looked at after it.
    unsafe {
        let mut request: libc::ifreq = zeroed();
        request.ifr_name = name(device)?;
        check(libc::ioctl(descriptor, libc::SIOCGIFINDEX, &mut request) as isize)?;
        let index = request.ifr_ifru.ifru_ifindex;
        check(libc::ioctl(descriptor, libc::SIOCGIFHWADDR, &mut request) as isize)?;
        let mut link = [0; 6];
        for (to, from) in link.iter_mut().zip(request.ifr_ifru.ifru_hwaddr.sa_data) {
            *to = from as u8;
        }
        check(libc::ioctl(descriptor, libc::SIOCGIFMTU, &mut request) as isize)?;
        Ok((index, link, usize::try_from(request.ifr_ifru.ifru_mtu).unwrap_or(0)))
    }
}

fn set<T>(socket: &OwnedFd, option: i32, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads one value of the option's type.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, (&raw const *value).cast(), size)
    };
    check(result as isize).map(drop)
}

/// Asks for memory for joined frames that wait; without the privilege it is what the system's limit says.
fn more_memory(socket: &OwnedFd) {
    let memory = JOINED_MEMORY;
    for option in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
        let (place, size) = ((&raw const memory).cast(), size_of_val(&memory) as libc::socklen_t);
        // SAFETY: the kernel reads one integer.
        if unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, place, size) } == 0 {
            return;
        }
    }
}

/// Reads a frame that the kernel has put beside the ring.
fn read_whole<'b>(socket: &OwnedFd, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let place = buffer.as_mut_ptr().cast();
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: the kernel writes at most the buffer's length.
    let read = unsafe { libc::recv(socket.as_raw_fd(), place, buffer.len(), flags) };
    // One that was cut has a length beyond the buffer's.
    buffer.get(HEADER..check(read).ok()?)
}

/// Has the kernel make a ring; where memory is short, a smaller one.
fn reserve(socket: &OwnedFd, option: i32, mut layout: Layout) -> io::Result<Layout> {
    loop {
        match (set(socket, option, &layout.request()), layout.half()) {
            (Err(error), Some(half)) if error.raw_os_error() == Some(libc::ENOMEM) => layout = half,
            (result, _) => return result.map(|()| layout),
        }
    }
}
