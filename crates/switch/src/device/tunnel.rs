//! TUN and TAP: a virtual interface whose other end is this process. TUN carries IP packets, TAP Ethernet frames.

use std::ffi::CStr;
use std::fs::OpenOptions;
use std::io;
use std::mem::zeroed;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::driver::kernel::{check, name, not_now};

/// `TUNSETIFF`
const SET_DEVICE: libc::c_ulong = 0x4004_54ca;

/// `TUNSETOFFLOAD`
pub(crate) const SET_OFFLOADS: libc::c_ulong = 0x4004_54d0;

/// Settings of a tunnel.
#[derive(Clone, Debug, Default)]
pub struct TunnelSettings {
    /// Whether it carries Ethernet frames rather than IP packets.
    pub ethernet: bool,
    /// The interface's name. If empty, the kernel chooses one.
    pub name: String,
    /// Address and prefix length. Without them the interface is not brought up.
    pub address: Option<(Ipv4Addr, u8)>,
    /// The MAC address.
    pub mac: Option<[u8; 6]>,
    /// The gateway of the host's default route.
    pub gateway: Option<Ipv4Addr>,
    /// The MTU in bytes; 0 for the kernel's default.
    pub mtu: usize,
}

/// A tunnel. Dropping it removes the interface.
#[derive(Debug)]
pub struct Tunnel {
    file: OwnedFd,
    name: String,
}

impl Tunnel {
    /// Creates and configures the interface.
    pub fn open(settings: &TunnelSettings) -> io::Result<Tunnel> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        let kind = if settings.ethernet { libc::IFF_TAP } else { libc::IFF_TUN };
        let mut request = if settings.name.is_empty() {
            request(if settings.ethernet { "tap%d" } else { "tun%d" })?
        } else {
            request(&settings.name)?
        };
        request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the first call reads and writes one request, and the name in it stays terminated; the second one takes a
        // number.
        let name = unsafe {
            check(libc::ioctl(file.as_raw_fd(), SET_DEVICE, &mut request) as isize)?;
            // An interface that was there may still have the offloads of its last user, whose headers are not read here.
            libc::ioctl(file.as_raw_fd(), SET_OFFLOADS, 0);
            CStr::from_ptr(request.ifr_name.as_ptr()).to_string_lossy().into_owned()
        };
        let tunnel = Tunnel { file: file.into(), name };
        tunnel.set_up(settings)?;
        Ok(tunnel)
    }

    fn set_up(&self, settings: &TunnelSettings) -> io::Result<()> {
        // SAFETY: the new descriptor is owned by the value alone.
        let control = unsafe {
            let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
            OwnedFd::from_raw_fd(check(libc::socket(libc::AF_INET, kind, 0) as isize)? as i32)
        };
        let call = |number: libc::c_ulong, request: &mut libc::ifreq| {
            // SAFETY: each of these calls reads or writes one request.
            check(unsafe { libc::ioctl(control.as_raw_fd(), number as _, request) } as isize).map(drop)
        };
        let mut request = request(&self.name)?;
        if let (Some(mac), true) = (settings.mac, settings.ethernet) {
            request.ifr_ifru.ifru_hwaddr = hardware(mac);
            call(libc::SIOCSIFHWADDR as _, &mut request)?;
        }
        if let Some((address, length)) = settings.address {
            request.ifr_ifru.ifru_addr = internet(address);
            call(libc::SIOCSIFADDR as _, &mut request)?;
            let mask = u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0);
            request.ifr_ifru.ifru_netmask = internet(Ipv4Addr::from_bits(mask));
            call(libc::SIOCSIFNETMASK as _, &mut request)?;
        }
        if settings.mtu > 0 {
            request.ifr_ifru.ifru_mtu = i32::try_from(settings.mtu).unwrap_or(i32::MAX);
            call(libc::SIOCSIFMTU as _, &mut request)?;
        }
        if settings.address.is_some() {
            call(libc::SIOCGIFFLAGS as _, &mut request)?;
            // SAFETY: the previous call has filled in the flags.
            let flags = unsafe { request.ifr_ifru.ifru_flags };
            request.ifr_ifru.ifru_flags = flags | (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
            call(libc::SIOCSIFFLAGS as _, &mut request)?;
        }
        if let Some(gateway) = settings.gateway {
            // SAFETY: an all-zero route is valid; the call reads it.
            unsafe {
                let mut route: libc::rtentry = zeroed();
                route.rt_dst = internet(Ipv4Addr::UNSPECIFIED);
                route.rt_genmask = internet(Ipv4Addr::UNSPECIFIED);
                route.rt_gateway = internet(gateway);
                route.rt_flags = libc::RTF_UP | libc::RTF_GATEWAY;
                check(libc::ioctl(control.as_raw_fd(), libc::SIOCADDRT as _, &route) as isize)?;
            }
        }
        Ok(())
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads a packet into `buffer` and returns the number of bytes read; the excess of a longer packet is lost.
    /// Returns `None` if no packet is available.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        // SAFETY: the kernel writes at most the buffer's length.
        let read = unsafe { libc::read(self.file.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        match check(read) {
            Ok(length) => Ok(Some(length)),
            Err(error) if not_now(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a packet. Returns false if the device has no room now.
    pub fn send(&self, packet: &[u8]) -> io::Result<bool> {
        // SAFETY: the kernel reads the packet's bytes.
        let written = unsafe { libc::write(self.file.as_raw_fd(), packet.as_ptr().cast(), packet.len()) };
        match check(written) {
            Ok(_) => Ok(true),
            Err(error) if not_now(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Tunnel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A request for the interface called `device`.
fn request(device: &str) -> io::Result<libc::ifreq> {
    // SAFETY: an all-zero request is valid.
    let mut request: libc::ifreq = unsafe { zeroed() };
    request.ifr_name = name(device)?;
    Ok(request)
}

fn internet(address: Ipv4Addr) -> libc::sockaddr {
    let mut result = libc::sockaddr { sa_family: libc::AF_INET as u16, sa_data: [0; 14] };
    // After the family: two bytes of port, then the address.
    for (to, from) in result.sa_data.iter_mut().skip(2).zip(address.octets()) {
        *to = from as libc::c_char;
    }
    result
}

fn hardware(mac: [u8; 6]) -> libc::sockaddr {
    let mut result = libc::sockaddr { sa_family: libc::ARPHRD_ETHER, sa_data: [0; 14] };
    for (to, from) in result.sa_data.iter_mut().zip(mac) {
        *to = from as libc::c_char;
    }
    result
}
