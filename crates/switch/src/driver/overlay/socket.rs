//! The raw socket of a tunnel. It is connected to the remote address, and receives the UDP datagrams from there that have
//! the tunnel's port and VNI: a filter selects them. Raw, because each flow has a source port of its own (RFC 7348, section
//! 5), and because tunnels with the same local address and port each get only what is theirs, even in different processes.
//!
//! Another socket, which nobody reads, reserves the UDP port: otherwise the kernel would tell the remote end that the port
//! is unreachable, and another program could use the port, too.

use super::error::OverlayError;
use super::format::{Encapsulation, HEADER, MAX_HEADER, UDP};
use crate::batch::MAX_FRAME;
use crate::device::attach_filter;
use crate::driver::kernel::{check, not_now, set_nonblocking};
use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Maximum messages of one system call.
pub(super) const BATCH: usize = 64;
/// Size in bytes of the buffers of a socket, with the kernel's overhead.
const MEMORY: i32 = 1 << 22;
/// Room for a packet with a frame of ordinary length: IPv4 header with options, UDP, options of GENEVE. A multiple of 64.
const ORDINARY: usize = (60 + UDP + MAX_HEADER + MAX_FRAME).next_multiple_of(64);
/// Room for the rest of a large packet, which the kernel has not yet cut into segments.
const REST: usize = 1 << 16;
/// Room for the traffic class of a message, with its header.
const CONTROL: usize = 32;
/// Calls that may fail in a row because of errors that ICMP may have reported.
pub(super) const MAX_REPORTED: usize = 3;
/// Hop limit of the packets that are sent.
const HOPS: i32 = 64;
/// The index of the dropped packets in the result of `SO_MEMINFO`, and the length of the result.
const DROPS: usize = 8;
const MEMORY_WORDS: usize = 9;

/// The addresses of a tunnel, both of the same family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverlayEnds {
    /// The address of this host.
    pub local: IpAddr,
    /// The address of the other one.
    pub remote: IpAddr,
}

/// A tunnel to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverlayTunnel {
    /// How frames are encapsulated.
    pub encapsulation: Encapsulation,
    /// The addresses.
    pub ends: OverlayEnds,
    /// The UDP port of both hosts.
    pub udp_port: u16,
    /// The virtual network: 24 bits.
    pub vni: u32,
}

impl OverlayTunnel {
    /// The local address for a remote one, by the host's routes.
    pub fn local_address(remote: IpAddr) -> io::Result<IpAddr> {
        let any: IpAddr = if remote.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
        let socket = UdpSocket::bind((any, 0))?;
        // Nothing is sent; the port does not matter.
        socket.connect((remote, Encapsulation::Vxlan.default_port()))?;
        Ok(socket.local_addr()?.ip())
    }

    /// Reserves a UDP port of a local address. Fails if any program uses it, and if the kernel has a tunnel there.
    pub fn reserve_port(local: IpAddr, udp_port: u16) -> io::Result<OwnedFd> {
        let socket = OwnedFd::from(UdpSocket::bind((local, udp_port))?);
        // What comes is dropped at once: the value of the filter is 0 bytes.
        attach_filter(&socket, [(RETURN, 0, 0, 0)])?;
        Ok(socket)
    }

    /// Whether a descriptor is a socket that reserves this port.
    pub fn reserves(socket: &OwnedFd, local: IpAddr, udp_port: u16) -> bool {
        let address = socket.try_clone().and_then(|socket| UdpSocket::from(socket).local_addr());
        address.is_ok_and(|address| (address.ip(), address.port()) == (local, udp_port))
    }

    /// Opens the socket of the tunnel: the part that needs privileges. Its filter cannot be removed.
    pub fn open_descriptor(&self) -> io::Result<OwnedFd> {
        let OverlayEnds { local, remote } = self.ends;
        if local.is_ipv4() != remote.is_ipv4() {
            return Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT));
        }
        let family = if remote.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: the new descriptor is owned by this value alone.
        let socket = unsafe {
            OwnedFd::from_raw_fd(check(libc::socket(family, kind, libc::IPPROTO_UDP) as isize)? as i32)
        };
        attach_filter(&socket, self.filter())?;
        set(&socket, libc::SOL_SOCKET, libc::SO_LOCK_FILTER, 1)?;
        let options = match remote {
            // Packets are not fragmented on their way.
            IpAddr::V4(_) => [
                (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
                (libc::IPPROTO_IP, libc::IP_TTL, HOPS),
            ],
            IpAddr::V6(_) => [
                (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO),
                (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, HOPS),
            ],
        };
        for (level, option, value) in options {
            set(&socket, level, option, value)?;
        }
        if remote.is_ipv6() {
            set(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)?;
        }
        // Without the privilege, the system's limits apply.
        for [forced, ordinary] in
            [[libc::SO_RCVBUFFORCE, libc::SO_RCVBUF], [libc::SO_SNDBUFFORCE, libc::SO_SNDBUF]]
        {
            let _ = set(&socket, libc::SOL_SOCKET, forced, MEMORY)
                .or_else(|_| set(&socket, libc::SOL_SOCKET, ordinary, MEMORY));
        }
        // Raw sockets have no ports, but one without the port of a peer would not have the peer's address either.
        let ((local, local_size), (remote, remote_size)) =
            (RawAddress::new(local, 0), RawAddress::new(remote, self.udp_port));
        // SAFETY: the kernel reads the addresses, which have the stated sizes.
        unsafe {
            let descriptor = socket.as_raw_fd();
            check(libc::bind(descriptor, (&raw const local).cast(), local_size) as isize)?;
            check(libc::connect(descriptor, (&raw const remote).cast(), remote_size) as isize)?;
        }
        Ok(socket)
    }

    /// The filter: UDP port and VNI, which is at the same place in both formats. A datagram that is too short for a VNI passes, so
    /// that it is counted: no other socket takes it. The program sees the IPv4 header first, or the UDP header if the tunnel uses
    /// IPv6.
    fn filter(&self) -> [(u16, u8, u8, u32); 13] {
        let start = match self.ends.remote {
            // The length of the IPv4 header.
            IpAddr::V4(_) => (LOAD_HEADER_LENGTH, 0, 0, 0),
            IpAddr::V6(_) => (LOAD_INDEX, 0, 0, 0),
        };
        let with_vni = (UDP + HEADER) as u32;
        [
            start,
            (LOAD_HALF_AT_INDEX, 0, 0, 2),
            (JUMP_IF_EQUAL, 0, 9, self.udp_port.into()),
            (LOAD_LENGTH, 0, 0, 0),
            (SUBTRACT_INDEX, 0, 0, 0),
            (JUMP_IF_AT_LEAST, 0, 5, with_vni),
            // The length of the datagram may be smaller than that of the packet.
            (LOAD_HALF_AT_INDEX, 0, 0, 4),
            (JUMP_IF_AT_LEAST, 0, 3, with_vni),
            (LOAD_WORD_AT_INDEX, 0, 0, UDP as u32 + 4),
            (SHIFT_RIGHT, 0, 0, 8),
            (JUMP_IF_EQUAL, 0, 1, self.vni),
            (RETURN, 0, 0, u32::MAX),
            (RETURN, 0, 0, 0),
        ]
    }
}

/// Instructions of classic BPF (`linux/filter.h`): `BPF_LDX|BPF_MSH|BPF_B`, `BPF_LDX|BPF_IMM`, `BPF_LD|BPF_LEN|BPF_W`,
/// `BPF_LD|BPF_IND|BPF_H`, `BPF_LD|BPF_IND|BPF_W`, `BPF_JMP|BPF_JEQ|BPF_K`, `BPF_JMP|BPF_JGE|BPF_K`, `BPF_ALU|BPF_SUB|BPF_X`,
/// `BPF_ALU|BPF_RSH|BPF_K`, `BPF_RET|BPF_K`.
const LOAD_HEADER_LENGTH: u16 = 0xb1;
const LOAD_INDEX: u16 = 0x01;
const LOAD_LENGTH: u16 = 0x80;
const LOAD_HALF_AT_INDEX: u16 = 0x48;
const LOAD_WORD_AT_INDEX: u16 = 0x40;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const SUBTRACT_INDEX: u16 = 0x1c;
const SHIFT_RIGHT: u16 = 0x74;
const RETURN: u16 = 0x06;

/// An address for the kernel.
#[repr(C)]
union RawAddress {
    ip4: libc::sockaddr_in,
    ip6: libc::sockaddr_in6,
}

impl RawAddress {
    fn new(ip: IpAddr, port: u16) -> (RawAddress, libc::socklen_t) {
        // SAFETY: all-zero addresses are valid.
        let mut address: RawAddress = unsafe { zeroed() };
        let size = match ip {
            IpAddr::V4(ip) => {
                let s_addr = u32::from_ne_bytes(ip.octets());
                let ip4 = libc::sockaddr_in {
                    sin_family: libc::AF_INET as u16,
                    sin_port: port.to_be(),
                    sin_addr: libc::in_addr { s_addr },
                    sin_zero: [0; 8],
                };
                address.ip4 = ip4;
                size_of::<libc::sockaddr_in>()
            }
            IpAddr::V6(ip) => {
                let ip6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as u16,
                    sin6_port: port.to_be(),
                    sin6_flowinfo: 0,
                    sin6_addr: libc::in6_addr { s6_addr: ip.octets() },
                    sin6_scope_id: 0,
                };
                address.ip6 = ip6;
                size_of::<libc::sockaddr_in6>()
            }
        };
        (address, size as libc::socklen_t)
    }
}

/// A packet to send: the UDP and tunnel headers, the frame, and the mark of congestion (ECN).
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing<'f> {
    pub(super) headers: [u8; UDP + HEADER],
    pub(super) frame: &'f [u8],
    pub(super) congestion: u8,
}

/// The socket of a tunnel, in use.
#[derive(Debug)]
pub(super) struct OverlaySocket {
    socket: OwnedFd,
    ends: OverlayEnds,
    messages: Messages,
    /// A large packet, put together.
    large: Vec<u8>,
    /// The kernel's count of dropped packets when it was last read.
    drops: u32,
}

impl OverlaySocket {
    /// Uses a socket that [`OverlayTunnel::open_descriptor`] opened. Refuses other descriptors.
    pub(super) fn from_descriptor(socket: OwnedFd) -> Result<Self, OverlayError> {
        let option =
            |option| get(&socket, libc::SOL_SOCKET, option).map_err(|_| OverlayError::OtherDescriptor);
        if option(libc::SO_TYPE)? != libc::SOCK_RAW || option(libc::SO_PROTOCOL)? != libc::IPPROTO_UDP {
            return Err(OverlayError::OtherDescriptor);
        }
        // The addresses of Internet sockets of all kinds are read alike.
        let socket = UdpSocket::from(socket);
        let ip = |address: io::Result<SocketAddr>| address.map(|address| address.ip());
        let (Ok(local), Ok(remote)) = (ip(socket.local_addr()), ip(socket.peer_addr())) else {
            return Err(OverlayError::OtherDescriptor);
        };
        let socket = OwnedFd::from(socket);
        set_nonblocking(&socket)?;
        let mut this = Self {
            socket,
            ends: OverlayEnds { local, remote },
            messages: Messages::new(),
            large: Vec::new(),
            drops: 0,
        };
        this.take_drops();
        Ok(this)
    }

    /// The addresses.
    pub(super) fn ends(&self) -> OverlayEnds {
        self.ends
    }

    /// The MTU of the path when the socket was connected. It does not follow changes: once the route is gone, it is 68.
    pub(super) fn path_mtu(&self) -> io::Result<u16> {
        let (level, option) = match self.ends.remote {
            IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU),
            IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU),
        };
        get(&self.socket, level, option).map(|mtu| u16::try_from(mtu).unwrap_or(u16::MAX))
    }

    /// Receives at most `most` packets, for [`next`](Self::next). Returns their number.
    pub(super) fn fill(&mut self, most: usize) -> io::Result<usize> {
        for _ in 0..MAX_REPORTED {
            return match self.messages.receive(&self.socket, most.min(BATCH)) {
                Err(error) if not_now(&error) => Ok(0),
                // An ICMP error for a packet that was sent. It is no concern of the receiver.
                Err(error) if is_reported(&error) => continue,
                result => result,
            };
        }
        Ok(0)
    }

    /// The number of received packets that [`next`](Self::next) has not returned yet.
    pub(super) fn received(&self) -> usize {
        self.messages.received - self.messages.next
    }

    /// The next packet, and its traffic class if it came over IPv6 (an IPv4 packet begins with its header). `None` for one
    /// that was not read whole, and if there is none.
    pub(super) fn next(&mut self) -> Option<(&mut [u8], u8)> {
        self.messages.next(&mut self.large)
    }

    /// Sends at most [`BATCH`] packets in order. Returns the number sent. An error concerns the first one.
    pub(super) fn send(&self, packets: &[Outgoing]) -> io::Result<usize> {
        // SAFETY: all-zero messages and parts are valid: they have no address and no bytes.
        let (mut messages, mut parts): ([libc::mmsghdr; BATCH], [[libc::iovec; 2]; BATCH]) =
            unsafe { zeroed() };
        let mut controls = [[0u64; CONTROL / 8]; BATCH];
        let mut count = 0;
        for (((message, parts), control), packet) in
            messages.iter_mut().zip(&mut parts).zip(&mut controls).zip(packets)
        {
            *parts = [part_of(&packet.headers), part_of(packet.frame)];
            (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (parts.as_mut_ptr(), 2);
            if packet.congestion != 0 {
                let (level, kind) = match self.ends.remote {
                    IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
                    IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
                };
                // SAFETY: the buffer has room for a header and an integer, and is aligned for both.
                unsafe {
                    message.msg_hdr.msg_control = control.as_mut_ptr().cast();
                    message.msg_hdr.msg_controllen = libc::CMSG_SPACE(size_of::<i32>() as u32) as usize;
                    let header = libc::CMSG_FIRSTHDR(&message.msg_hdr);
                    (*header).cmsg_level = level;
                    (*header).cmsg_type = kind;
                    (*header).cmsg_len = libc::CMSG_LEN(size_of::<i32>() as u32) as usize;
                    libc::CMSG_DATA(header).cast::<i32>().write_unaligned(packet.congestion.into());
                }
            }
            count += 1;
        }
        // SAFETY: `count` messages were filled in. Their parts and control data live until the call has returned, and the
        // kernel only reads them.
        let sent = unsafe {
            libc::sendmmsg(self.socket.as_raw_fd(), messages.as_mut_ptr(), count, libc::MSG_DONTWAIT)
        };
        check(sent as isize)
    }

    /// Sends a packet that the kernel has refused as too long, to learn how long it may be: sockets of IPv6 do not tell it
    /// otherwise. Returns the MTU of the path, if the packet is refused again and the kernel says why.
    pub(super) fn ask_for_mtu(&self, packet: &Outgoing) -> io::Result<Option<u16>> {
        let (level, option) = match self.ends.remote {
            IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_RECVERR),
            IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
        };
        set(&self.socket, level, option, 1)?;
        let refused = self.send(std::slice::from_ref(packet)).is_err();
        let told = if refused { self.read_error(level, option) } else { None };
        // This also empties the queue of errors.
        set(&self.socket, level, option, 0)?;
        Ok(told)
    }

    /// The MTU in the first error of the queue that says one.
    fn read_error(&self, level: i32, kind: i32) -> Option<u16> {
        // The longest error: its header, the error, and the address of who reported it.
        let mut control = [0u64; 16];
        // SAFETY: an all-zero message is valid. The kernel writes control data of at most the stated length, and
        // `CMSG_FIRSTHDR` leads to a header inside of what it wrote, or nowhere.
        unsafe {
            let mut message: libc::msghdr = zeroed();
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = size_of_val(&control);
            let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
            check(libc::recvmsg(self.socket.as_raw_fd(), &mut message, flags)).ok()?;
            let header = libc::CMSG_FIRSTHDR(&message).as_ref()?;
            let size = libc::CMSG_LEN(size_of::<libc::sock_extended_err>() as u32) as usize;
            if (header.cmsg_level, header.cmsg_type) != (level, kind) || header.cmsg_len < size {
                return None;
            }
            let error = libc::CMSG_DATA(header).cast::<libc::sock_extended_err>().read_unaligned();
            let is_mtu = error.ee_errno == libc::EMSGSIZE as u32;
            u16::try_from(error.ee_info).ok().filter(|_| is_mtu)
        }
    }

    /// Takes the pending error of the socket, with which it would poll as readable.
    pub(super) fn clear_error(&self) {
        let _ = get(&self.socket, libc::SOL_SOCKET, libc::SO_ERROR);
    }

    /// Whether a packet waits.
    pub(super) fn is_readable(&self) -> bool {
        crate::driver::kernel::readable(&self.socket)
    }

    /// The number of packets that were lost since the last call because the buffer was full.
    pub(super) fn take_drops(&mut self) -> u64 {
        let mut words = [0u32; MEMORY_WORDS];
        let mut size = size_of_val(&words) as libc::socklen_t;
        // SAFETY: the kernel writes at most the size of the array.
        let result = unsafe {
            let pointer = words.as_mut_ptr().cast();
            libc::getsockopt(self.socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO, pointer, &mut size)
        };
        if result != 0 {
            return 0;
        }
        let before = std::mem::replace(&mut self.drops, words[DROPS]);
        words[DROPS].wrapping_sub(before).into()
    }
}

impl AsFd for OverlaySocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether an error may have been reported by ICMP for an earlier packet: the call that returned it then did nothing.
pub(super) fn is_reported(error: &io::Error) -> bool {
    const REPORTED: [i32; 9] = [
        libc::ECONNREFUSED,
        libc::ENOPROTOOPT,
        libc::EPROTO,
        libc::EHOSTDOWN,
        libc::ENONET,
        libc::ENETUNREACH,
        libc::EHOSTUNREACH,
        libc::EMSGSIZE,
        libc::EACCES,
    ];
    error.raw_os_error().is_some_and(|number| REPORTED.contains(&number))
}

/// Buffers for received messages. The headers point to the other parts, which never move.
struct Messages {
    headers: Box<[libc::mmsghdr]>,
    ordinary: Box<[[u8; ORDINARY]]>,
    rests: Box<[[u8; REST]]>,
    /// The parts of each message, and its control data. Only the kernel and `headers` refer to them.
    _parts: Box<[[libc::iovec; 2]]>,
    controls: Box<[[u64; CONTROL / 8]]>,
    /// The messages that the last call received, and the next one to return.
    received: usize,
    next: usize,
}

// SAFETY: the pointers lead to memory that the value owns.
unsafe impl Send for Messages {}

impl std::fmt::Debug for Messages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messages").finish_non_exhaustive()
    }
}

/// Zeroed memory: pages that are not used cost nothing.
fn zeroed_slice<T>(count: usize) -> Box<[T]> {
    // SAFETY: all callers' types are valid if all their bytes are zero.
    unsafe { Box::new_zeroed_slice(count).assume_init() }
}

impl Messages {
    fn new() -> Self {
        let mut headers: Box<[libc::mmsghdr]> = zeroed_slice(BATCH);
        let mut ordinary: Box<[[u8; ORDINARY]]> = zeroed_slice(BATCH);
        let mut rests: Box<[[u8; REST]]> = zeroed_slice(BATCH);
        let mut parts: Box<[[libc::iovec; 2]]> = zeroed_slice(BATCH);
        let mut controls: Box<[[u64; CONTROL / 8]]> = zeroed_slice(BATCH);
        let buffers = ordinary.iter_mut().zip(&mut rests).zip(&mut parts).zip(&mut controls);
        for (header, (((ordinary, rest), parts), control)) in headers.iter_mut().zip(buffers) {
            *parts = [
                libc::iovec { iov_base: ordinary.as_mut_ptr().cast(), iov_len: ORDINARY },
                libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: REST },
            ];
            (header.msg_hdr.msg_iov, header.msg_hdr.msg_iovlen) = (parts.as_mut_ptr(), 2);
            header.msg_hdr.msg_control = control.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = CONTROL;
        }
        Self { headers, ordinary, rests, _parts: parts, controls, received: 0, next: 0 }
    }

    /// Receives at most `wanted` messages in place of the last ones. Returns their number.
    fn receive(&mut self, socket: &OwnedFd, wanted: usize) -> io::Result<usize> {
        let wanted = wanted.min(self.headers.len()) as u32;
        let (pointer, flags) = (self.headers.as_mut_ptr(), libc::MSG_DONTWAIT);
        (self.next, self.received) = (0, 0);
        // SAFETY: there are as many messages, with parts and control data of the stated lengths that live as long as `self`
        // and that nothing else refers to meanwhile.
        let count =
            unsafe { libc::recvmmsg(socket.as_raw_fd(), pointer, wanted, flags, std::ptr::null_mut()) };
        self.received = check(count as isize)?;
        Ok(self.received)
    }

    /// The packet of the next message with its traffic class, or `None` if it was not read whole, or there is none. Prepares
    /// the message for the next call of [`receive`](Self::receive).
    fn next<'m>(&'m mut self, large: &'m mut Vec<u8>) -> Option<(&'m mut [u8], u8)> {
        let number = self.next;
        if number >= self.received {
            return None;
        }
        self.next += 1;
        let header = self.headers.get_mut(number)?;
        let length = header.msg_len as usize;
        let is_cut = header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
        // A header of a length, a level and a type; then the value, an integer.
        let [_, kind, value, _] = *self.controls.get(number)?;
        let is_class = kind.to_ne_bytes() == kind_of(libc::IPPROTO_IPV6, libc::IPV6_TCLASS);
        // Without a control message, the kernel writes none and says so.
        let has_class = is_class && header.msg_hdr.msg_controllen > 16;
        let [c0, c1, c2, c3, ..] = value.to_ne_bytes();
        let class = if has_class { i32::from_ne_bytes([c0, c1, c2, c3]) as u8 } else { 0 };
        header.msg_hdr.msg_controllen = CONTROL;
        let ordinary = self.ordinary.get_mut(number)?;
        let packet = if length <= ORDINARY {
            ordinary.get_mut(..length)?
        } else {
            large.clear();
            large.extend_from_slice(ordinary);
            large.extend_from_slice(self.rests.get(number)?.get(..length - ORDINARY)?);
            large.as_mut_slice()
        };
        (!is_cut).then_some((packet, class))
    }
}

/// Level and type of a control message, as they lie in memory.
fn kind_of(level: i32, kind: i32) -> [u8; 8] {
    let ([a, b, c, d], [e, f, g, h]) = (level.to_ne_bytes(), kind.to_ne_bytes());
    [a, b, c, d, e, f, g, h]
}

/// An I/O vector for these bytes.
fn part_of(bytes: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}

/// Sets an option that is an integer.
fn set(socket: &OwnedFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    let (pointer, size) = ((&raw const value).cast(), size_of_val(&value) as libc::socklen_t);
    // SAFETY: the kernel reads one integer.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, pointer, size) } as isize).map(drop)
}

/// Reads an option that is an integer.
fn get(socket: &OwnedFd, level: i32, option: i32) -> io::Result<i32> {
    let mut value = 0i32;
    let mut size = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the kernel writes at most one integer.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut value).cast(), &mut size) };
    check(result as isize).map(|_| value)
}
