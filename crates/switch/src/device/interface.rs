//! A network interface, by a packet socket.

use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::driver::device::{check, name, not_now};

/// Bytes at the start of a buffer to receive into that a frame without a VLAN tag leaves alone.
pub const ROOM: usize = 4;
/// Bytes of both Ethernet addresses: where a VLAN tag belongs.
const ADDRESSES: usize = 12;
/// The tag's type when the kernel doesn't tell it.
const TAG_TYPE: u16 = 0x8100;
/// Bytes of memory in which frames wait to be received.
const ROOM_TO_WAIT: i32 = 1 << 23;
/// Bytes for what the kernel tells beside a frame.
const BESIDE: usize = 128;

/// How an interface is used.
#[derive(Clone, Copy, Debug, Default)]
pub struct InterfaceSettings {
    /// Whether frames for others are wanted too.
    pub promiscuous: bool,
    /// Whether frames that this host sends are wanted too.
    pub outbound: bool,
    /// Whether it is read at all.
    pub receive: bool,
}

/// A frame that has arrived in a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Where in the buffer it begins.
    pub start: usize,
    /// Where in the buffer it ends.
    pub end: usize,
    /// Bytes that found no room.
    pub cut: usize,
    /// Who it is for: 0 this host, 1 all, 2 a group, 3 another host, 4 sent by this host.
    pub kind: u8,
    /// When it came, by the wall clock: seconds and nanoseconds.
    pub time: Option<(i64, u32)>,
}

/// A packet socket bound to an interface.
#[derive(Debug)]
pub struct Interface {
    socket: OwnedFd,
    outbound: bool,
    link: [u8; 6],
}

impl Interface {
    /// Binds to the interface called `device`.
    pub fn open(device: &str, settings: InterfaceSettings) -> io::Result<Interface> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: a new descriptor becomes this value's own; the name is terminated; all-zero structures of these types
        // are valid, and they live through the calls.
        unsafe {
            // With protocol 0 nothing is received before the socket is bound.
            let descriptor = check(libc::socket(libc::AF_PACKET, kind, 0) as isize)? as i32;
            let mut interface = Interface {
                socket: OwnedFd::from_raw_fd(descriptor),
                outbound: settings.outbound,
                link: [0; 6],
            };
            let mut request: libc::ifreq = zeroed();
            request.ifr_name = name(device)?;
            check(libc::ioctl(descriptor, libc::SIOCGIFINDEX, &mut request) as isize)?;
            let index = request.ifr_ifru.ifru_ifindex;
            check(libc::ioctl(descriptor, libc::SIOCGIFHWADDR, &mut request) as isize)?;
            let address = request.ifr_ifru.ifru_hwaddr.sa_data;
            for (to, from) in interface.link.iter_mut().zip(address) {
                *to = from as u8;
            }
            interface.set(libc::SOL_PACKET, libc::PACKET_AUXDATA, &1i32)?;
            interface.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32)?;
            // More than the usual room needs a privilege; without it the usual has to do.
            let _ = interface.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &ROOM_TO_WAIT);
            if !settings.outbound {
                interface.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1i32)?;
            }
            if settings.promiscuous {
                let mut everything: libc::packet_mreq = zeroed();
                everything.mr_ifindex = index;
                everything.mr_type = libc::PACKET_MR_PROMISC as u16;
                interface.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &everything)?;
            }
            let mut address: libc::sockaddr_ll = zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = if settings.receive { (libc::ETH_P_ALL as u16).to_be() } else { 0 };
            address.sll_ifindex = index;
            let size = size_of_val(&address) as libc::socklen_t;
            check(libc::bind(descriptor, (&raw const address).cast(), size) as isize)?;
            Ok(interface)
        }
    }

    fn set<T>(&self, level: i32, option: i32, value: &T) -> io::Result<()> {
        let size = size_of::<T>() as libc::socklen_t;
        // SAFETY: the kernel reads one value of the option's type.
        let result = unsafe {
            libc::setsockopt(self.socket.as_raw_fd(), level, option, (&raw const *value).cast(), size)
        };
        check(result as isize).map(drop)
    }

    /// Receives a frame into `buffer`, behind its first [`ROOM`] bytes: a VLAN tag that the kernel has taken out is put
    /// back by moving the addresses into that room. `None` if there is no frame now.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Arrival>> {
        loop {
            let Some(place) = buffer.get_mut(ROOM..) else { return Ok(None) };
            let (mut arrival, tag) = match self.receive_into(place) {
                Ok(found) => found,
                Err(error) if not_now(&error) => return Ok(None),
                Err(error) => return Err(error),
            };
            if arrival.kind == libc::PACKET_OUTGOING && !self.outbound {
                continue;
            }
            if let Some(tag) = tag
                && arrival.end >= ADDRESSES
            {
                buffer.copy_within(ROOM..ROOM + ADDRESSES, 0);
                if let Some(place) = buffer.get_mut(ADDRESSES..ADDRESSES + ROOM) {
                    place.copy_from_slice(&tag);
                }
            } else {
                arrival.start = ROOM;
            }
            arrival.end += ROOM;
            return Ok(Some(arrival));
        }
    }

    fn receive_into(&self, buffer: &mut [u8]) -> io::Result<(Arrival, Option<[u8; ROOM]>)> {
        let mut beside = [0u64; BESIDE / 8];
        let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: an all-zero header and address are valid; the header's pointers lead to live memory of the lengths
        // told; what lies beside is walked by the system's own macros, and read as the type that its label names.
        unsafe {
            let mut from: libc::sockaddr_ll = zeroed();
            let mut message: libc::msghdr = zeroed();
            message.msg_name = (&raw mut from).cast();
            message.msg_namelen = size_of_val(&from) as libc::socklen_t;
            message.msg_iov = &mut piece;
            message.msg_iovlen = 1;
            message.msg_control = beside.as_mut_ptr().cast();
            message.msg_controllen = size_of_val(&beside);
            let whole = check(libc::recvmsg(self.socket.as_raw_fd(), &mut message, libc::MSG_TRUNC))?;
            let end = whole.min(buffer.len());
            let mut arrival = Arrival { start: 0, end, cut: whole - end, kind: from.sll_pkttype, time: None };
            let mut tag = None;
            let mut label = libc::CMSG_FIRSTHDR(&message);
            while !label.is_null() {
                match ((*label).cmsg_level, (*label).cmsg_type) {
                    (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                        let told = libc::CMSG_DATA(label).cast::<libc::tpacket_auxdata>().read_unaligned();
                        if told.tp_status & libc::TP_STATUS_VLAN_VALID != 0 {
                            let valid = told.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
                            let [t0, t1] = if valid { told.tp_vlan_tpid } else { TAG_TYPE }.to_be_bytes();
                            let [c0, c1] = told.tp_vlan_tci.to_be_bytes();
                            tag = Some([t0, t1, c0, c1]);
                        }
                    }
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                        let time = libc::CMSG_DATA(label).cast::<libc::timespec>().read_unaligned();
                        arrival.time = Some((time.tv_sec, u32::try_from(time.tv_nsec).unwrap_or(0)));
                    }
                    _ => {}
                }
                label = libc::CMSG_NXTHDR(&message, label);
            }
            Ok((arrival, tag))
        }
    }

    /// Sends a frame; false if there is no room now.
    pub fn send(&self, frame: &[u8]) -> io::Result<bool> {
        // SAFETY: the kernel reads the frame's bytes.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        match check(sent) {
            Ok(_) => Ok(true),
            Err(error) if not_now(&error) => Ok(false),
            Err(error) => Err(error),
        }
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

    /// Its Ethernet address.
    pub fn link(&self) -> [u8; 6] {
        self.link
    }
}

impl AsFd for Interface {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
