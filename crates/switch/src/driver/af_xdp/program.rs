//! XDP programs. That of a port passes each frame to the socket of its receive queue:
//!
//! ```text
//! r2 = context.rx_queue_index
//! r1 = the map from queues to sockets
//! r3 = XDP_PASS
//! return bpf_redirect_map(r1, r2, r3)
//! ```
//!
//! A frame of a queue without a socket goes on to the host. The link to the device has a descriptor: when its last duplicate is
//! closed, the kernel detaches the program.

use crate::driver::kernel::check;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

// Commands, types and numbers of `linux/bpf.h` and `linux/if_link.h`.
const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE: libc::c_int = 2;
const MAP_DELETE: libc::c_int = 3;
const PROGRAM_LOAD: libc::c_int = 5;
const PROGRAM_RUN: libc::c_int = 10;
const LINK_CREATE: libc::c_int = 28;
const XSK_MAP: u32 = 17;
const XDP_PROGRAM: u32 = 6;
const XDP_ATTACHMENT: u32 = 37;
/// The program runs in the driver of the device. In the kernel's general code it would cost more than a packet socket.
const IN_DRIVER: u32 = 1 << 2;
const XDP_PASS: u32 = 2;
const REDIRECT: u32 = 23;
const REDIRECT_MAP: u32 = 51;
/// A run of a program has the effect that it would have at a device.
const LIVE_FRAMES: u32 = 1 << 1;
/// Offset of the queue's number in the context of an XDP program.
const QUEUE: u64 = 16;

/// The longest attributes of a command used here, in words. The rest of the kernel's union may be left out.
type Attributes = [u64; 10];

/// A pair of 32-bit numbers, as they are in memory.
fn pair(first: u32, second: u32) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// An instruction: its code, destination and source registers, offset, and number.
fn instruction(code: u8, destination: u8, source: u8, offset: u16, number: u32) -> [u8; 8] {
    let registers =
        if cfg!(target_endian = "little") { source << 4 | destination } else { destination << 4 | source };
    let ([c, d], [e, f, g, h]) = (offset.to_ne_bytes(), number.to_ne_bytes());
    [code, registers, c, d, e, f, g, h]
}

/// The program of a port, for a map with this descriptor.
fn instructions(map: u32) -> [[u8; 8]; 6] {
    [
        instruction(0x61, 2, 1, QUEUE as u16, 0),
        // A number of 64 bits takes two instructions. Source 1 says that it is the descriptor of a map.
        instruction(0x18, 1, 1, 0, map),
        instruction(0, 0, 0, 0, 0),
        instruction(0xb7, 3, 0, 0, XDP_PASS),
        instruction(0x85, 0, 0, 0, REDIRECT_MAP),
        instruction(0x95, 0, 0, 0, 0),
    ]
}

/// A program that leaves each frame to the host.
fn passing() -> [[u8; 8]; 2] {
    [instruction(0xb7, 0, 0, 0, XDP_PASS), instruction(0x95, 0, 0, 0, 0)]
}

/// A program that sends each frame by a device.
fn redirecting(device: u32) -> [[u8; 8]; 4] {
    [
        instruction(0xb7, 1, 0, 0, device),
        instruction(0xb7, 2, 0, 0, 0),
        instruction(0x85, 0, 0, 0, REDIRECT),
        instruction(0x95, 0, 0, 0, 0),
    ]
}

/// Makes a call.
///
/// # Safety
///
/// All pointers among the attributes must lead to what the command reads.
unsafe fn call(command: libc::c_int, attributes: &Attributes) -> io::Result<usize> {
    // SAFETY: the kernel reads the attributes, and what they point to by the caller's contract. None of the commands writes.
    check(unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of_val(attributes)) } as isize)
}

/// Makes a call that returns a descriptor.
///
/// # Safety
///
/// As for [`call`].
unsafe fn open(command: libc::c_int, attributes: &Attributes) -> io::Result<OwnedFd> {
    // SAFETY: by the caller's contract; nothing else owns the new descriptor.
    unsafe { Ok(OwnedFd::from_raw_fd(call(command, attributes)? as i32)) }
}

/// The map from receive queues to sockets.
#[derive(Debug)]
pub(super) struct SocketMap(OwnedFd);

impl SocketMap {
    /// A map without sockets.
    pub(super) fn create(queues: u32) -> io::Result<Self> {
        // SAFETY: there are no pointers.
        unsafe { open(MAP_CREATE, &[pair(XSK_MAP, 4), pair(4, queues), 0, 0, 0, 0, 0, 0, 0, 0]).map(Self) }
    }

    /// Gives frames of a queue to a socket.
    pub(super) fn insert(&self, queue: u32, socket: &OwnedFd) -> io::Result<()> {
        let socket = socket.as_raw_fd();
        let pointers = [(&raw const queue) as u64, (&raw const socket) as u64];
        let map = pair(self.0.as_raw_fd() as u32, 0);
        // SAFETY: key and value live until the call has returned, and have four bytes each, as the map says.
        unsafe { call(MAP_UPDATE, &[map, pointers[0], pointers[1], 0, 0, 0, 0, 0, 0, 0]).map(drop) }
    }

    /// Gives frames of a queue to the host again.
    pub(super) fn remove(&self, queue: u32) -> io::Result<()> {
        let map = pair(self.0.as_raw_fd() as u32, 0);
        // SAFETY: the key lives until the call has returned, and has four bytes, as the map says.
        unsafe { call(MAP_DELETE, &[map, (&raw const queue) as u64, 0, 0, 0, 0, 0, 0, 0, 0]).map(drop) }
    }

    /// Loads the program and attaches it to a device. It stays attached as long as the returned descriptor is open.
    pub(super) fn attach(&self, device: u32) -> io::Result<OwnedFd> {
        Program::load(&instructions(self.0.as_raw_fd() as u32))?.attach(device)
    }
}

/// A loaded program.
#[derive(Debug)]
pub(super) struct Program(OwnedFd);

impl Program {
    fn load(instructions: &[[u8; 8]]) -> io::Result<Self> {
        let licence = c"Dual MIT/GPL";
        let mut attributes = Attributes::default();
        attributes[0] = pair(XDP_PROGRAM, instructions.len() as u32);
        attributes[1] = instructions.as_ptr() as u64;
        attributes[2] = licence.as_ptr() as u64;
        // SAFETY: the instructions and the licence live until the call has returned; the first two attributes state their number.
        unsafe { open(PROGRAM_LOAD, &attributes).map(Self) }
    }

    /// A program that leaves each frame to the host.
    pub(super) fn passing() -> io::Result<Self> {
        Self::load(&passing())
    }

    /// A program that sends each frame by the device with this number.
    pub(super) fn redirecting(device: u32) -> io::Result<Self> {
        Self::load(&redirecting(device))
    }

    /// Attaches the program to a device. It stays attached as long as the returned descriptor is open.
    pub(super) fn attach(&self, device: u32) -> io::Result<OwnedFd> {
        let ends = pair(self.0.as_raw_fd() as u32, device);
        let mut attributes = Attributes::default();
        (attributes[0], attributes[1]) = (ends, pair(XDP_ATTACHMENT, IN_DRIVER));
        // SAFETY: there are no pointers.
        unsafe { open(LINK_CREATE, &attributes) }
    }

    /// Runs the program over this number of copies of a frame, `batch` of them at once, at most 256. What the program decides is
    /// done. Returns early with `EINTR` if the thread gets a signal.
    pub(super) fn run(&self, frame: &[u8], copies: u32, batch: u32) -> io::Result<()> {
        let mut attributes = Attributes::default();
        attributes[0] = pair(self.0.as_raw_fd() as u32, 0);
        attributes[1] = pair(frame.len() as u32, 0);
        attributes[2] = frame.as_ptr() as u64;
        attributes[4] = pair(copies, 0);
        (attributes[8], attributes[9]) = (pair(LIVE_FRAMES, 0), pair(batch, 0));
        let size = size_of_val(&attributes);
        // SAFETY: the frame lives until the call has returned, and has the stated length. The kernel writes its result into the
        // attributes.
        check(unsafe { libc::syscall(libc::SYS_bpf, PROGRAM_RUN, &raw mut attributes, size) } as isize)
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_as_the_kernel_reads_it() {
        if cfg!(target_endian = "big") {
            return;
        }
        let expected: [u64; 6] = [
            0x0000_0000_0010_1261,
            0x0000_0005_0000_1118,
            0,
            0x0000_0002_0000_03b7,
            0x0000_0033_0000_0085,
            0x0000_0000_0000_0095,
        ];
        assert_eq!(instructions(5).map(u64::from_le_bytes), expected);
        assert_eq!(passing().map(u64::from_le_bytes), [0x0000_0002_0000_00b7, expected[5]]);
        let expected = [0x0000_0009_0000_01b7, 0x0000_0000_0000_02b7, 0x0000_0017_0000_0085, expected[5]];
        assert_eq!(redirecting(9).map(u64::from_le_bytes), expected);
    }
}
