//! Packet sockets that divide the frames of an interface among them (`PACKET_FANOUT`).

use super::filter::{attach_filter, set_program};
use crate::driver::kernel::check;
use crate::shards::Spread;
use std::io;
use std::mem::size_of_val;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A program divides.
const BY_PROGRAM: i32 = libc::PACKET_FANOUT_CBPF as i32;
/// The kernel divides by a hash that is the same for both directions of a flow, and has a secret of its own.
const BY_HASH: i32 = libc::PACKET_FANOUT_HASH as i32;
/// The members do not get what the host sends on the interface. `PACKET_IGNORE_OUTGOING` does not hold for groups.
const IGNORE_OUTGOING: i32 = libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING as i32;
/// The kernel chooses a number for the group.
const NEW_GROUP: i32 = libc::PACKET_FANOUT_FLAG_UNIQUEID as i32;

/// The instruction of a filter that refuses every frame: returns 0.
const REFUSE: (u16, u8, u8, u32) = (0x06, 0, 0, 0);

/// A group of packet sockets on one interface. Each frame is received by one of them, and all frames of a flow by the same:
/// by that of the thread of the switch that the flow belongs to, if all sockets have such threads.
///
/// Until a socket joins a group it would receive every frame, so all but the first are [muted](Self::mute) before they are bound.
#[derive(Debug)]
pub(crate) struct FanOut {
    sockets: Vec<Arc<OwnedFd>>,
    has_joined: AtomicBool,
    /// How the frames of the switch are spread, and the thread of each socket as far as it is known.
    threads: Mutex<(Option<Spread>, Vec<Option<usize>>)>,
}

impl FanOut {
    /// Has a socket receive nothing until it joins a group.
    pub(crate) fn mute(socket: &OwnedFd) -> io::Result<()> {
        attach_filter(socket, [REFUSE])
    }

    /// A group of these sockets, which join it when [`join`](Self::join) is called.
    pub(crate) fn new(sockets: Vec<Arc<OwnedFd>>) -> Self {
        let threads = Mutex::new((None, vec![None; sockets.len()]));
        Self { sockets, has_joined: AtomicBool::new(false), threads }
    }

    /// Says which thread of the switch uses a socket, which is not a member yet.
    pub(crate) fn set_thread(&self, socket: usize, spread: Spread, thread: usize) {
        let mut known = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        known.0 = Some(spread);
        if let Some(place) = known.1.get_mut(socket) {
            *place = Some(thread);
        }
    }

    /// Whether it was told the threads of all sockets.
    pub(crate) fn knows_threads(&self) -> bool {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).1.iter().all(Option::is_some)
    }

    /// Lets the sockets join the group, unless they have. Before Linux 6.13 that is only possible while the interface is up:
    /// until then, the first socket receives all frames. Frames that arrive within the few microseconds of the call may be lost.
    pub(crate) fn join(&self) -> io::Result<()> {
        if self.has_joined.load(Ordering::Acquire) {
            return Ok(());
        }
        let known = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let (spread, threads) = &*known;
        let threads: Option<Vec<usize>> = threads.iter().copied().collect();
        let program = spread.zip(threads).map(|(spread, threads)| spread.filter(&threads));
        let Some((first, others)) = self.sockets.split_first() else { return Ok(()) };
        // Linux has such programs since 4.3.
        let by_program =
            program.is_some() && join_group(first, (BY_PROGRAM | NEW_GROUP | IGNORE_OUTGOING) << 16)?;
        if !by_program && !join_group(first, (BY_HASH | NEW_GROUP | IGNORE_OUTGOING) << 16)? {
            return Ok(());
        }
        let group = group_of(first)?;
        if let Some(code) = program.filter(|_| group >> 16 & 0xff == BY_PROGRAM) {
            let code = code.iter().map(|one| (one.code, one.jt, one.jf, one.k));
            set_program(first, libc::SOL_PACKET, libc::PACKET_FANOUT_DATA, code)?;
        }
        for other in others {
            if !join_group(other, group | IGNORE_OUTGOING << 16)? {
                return Ok(());
            }
            unmute(other)?;
        }
        self.has_joined.store(true, Ordering::Release);
        Ok(())
    }
}

/// Lets a socket join a group. Returns false if it is not possible now.
fn join_group(socket: &OwnedFd, group: i32) -> io::Result<bool> {
    let size = size_of_val(&group) as libc::socklen_t;
    // SAFETY: the kernel reads one integer.
    let joined = unsafe {
        let value = (&raw const group).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_FANOUT, value, size)
    };
    match check(joined as isize) {
        Ok(_) => Ok(true),
        // It is a member already.
        Err(error) if error.raw_os_error() == Some(libc::EALREADY) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The group of a socket: its number, and in the upper half how it divides.
fn group_of(socket: &OwnedFd) -> io::Result<i32> {
    let mut group = 0;
    let mut size = size_of_val(&group) as libc::socklen_t;
    // SAFETY: the kernel writes one integer.
    let found = unsafe {
        let value = (&raw mut group).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_FANOUT, value, &mut size)
    };
    check(found as isize).map(|_| group)
}

fn unmute(socket: &OwnedFd) -> io::Result<()> {
    match detach_filter(socket) {
        // An earlier attempt removed it.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        result => result,
    }
}

fn detach_filter(socket: &OwnedFd) -> io::Result<()> {
    let nothing = 0i32;
    let size = size_of_val(&nothing) as libc::socklen_t;
    // SAFETY: the kernel reads one integer, and ignores it.
    let removed = unsafe {
        let value = (&raw const nothing).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_DETACH_FILTER, value, size)
    };
    check(removed as isize).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::FromRawFd;
    use test_support::{Capability, require};

    /// A packet socket that is bound to nothing, so that it cannot join a group.
    fn socket() -> Arc<OwnedFd> {
        // SAFETY: the new descriptor is owned by this value alone.
        unsafe {
            let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
            Arc::new(OwnedFd::from_raw_fd(
                check(libc::socket(libc::AF_PACKET, kind, 0) as isize).unwrap() as i32
            ))
        }
    }

    fn bind(socket: &OwnedFd) {
        // SAFETY: zeros are a valid address; the kernel reads it.
        unsafe {
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
            address.sll_ifindex = libc::if_nametoindex(c"lo".as_ptr()) as i32;
            let size = size_of_val(&address) as libc::socklen_t;
            check(libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) as isize).unwrap();
        }
    }

    /// As before Linux 6.13, whose sockets cannot join while their interface is down.
    #[test]
    fn sockets_that_cannot_join_yet_join_later() {
        if !require(Capability::Root) {
            return;
        }
        let sockets: Vec<_> = (0..3).map(|_| socket()).collect();
        sockets[1..].iter().for_each(|socket| FanOut::mute(socket).unwrap());
        let group = FanOut::new(sockets.clone());
        group.join().unwrap();
        assert!(!group.has_joined.load(Ordering::Relaxed));
        bind(&sockets[0]);
        bind(&sockets[1]);
        group.join().unwrap();
        assert!(!group.has_joined.load(Ordering::Relaxed), "one is not bound");
        bind(&sockets[2]);
        group.join().unwrap();
        assert!(group.has_joined.load(Ordering::Relaxed));
        let groups: Vec<i32> = sockets.iter().map(|socket| group_of(socket).unwrap()).collect();
        assert_eq!(groups, [groups[0]; 3]);
        assert_ne!(groups[0] >> 16, 0, "its members would get what the host sends");
        let filter = |socket| detach_filter(socket).err().and_then(|error| error.raw_os_error());
        assert!(sockets.iter().all(|socket| filter(socket) == Some(libc::ENOENT)), "one is still muted");
        let again = FanOut::new(vec![socket()]);
        bind(&again.sockets[0]);
        again.join().unwrap();
        assert_ne!(group_of(&again.sockets[0]).unwrap() & 0xffff, groups[0] & 0xffff, "another group");
    }
}
