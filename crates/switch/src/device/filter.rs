//! Filters of sockets, in classic BPF.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::driver::kernel::check;

/// The longest program that Linux takes, in instructions.
pub const MAX_FILTER: usize = 4_096;

/// Lets a socket receive only what a program accepts: instructions as code, the two jumps, and operand.
pub fn attach_filter(
    socket: &OwnedFd,
    program: impl IntoIterator<Item = (u16, u8, u8, u32)>,
) -> io::Result<()> {
    set_program(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program)
}

/// Sets an option of a socket to a program.
pub(super) fn set_program(
    socket: &OwnedFd,
    level: i32,
    option: i32,
    program: impl IntoIterator<Item = (u16, u8, u8, u32)>,
) -> io::Result<()> {
    let mut code: Vec<libc::sock_filter> =
        program.into_iter().map(|(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k }).collect();
    if code.len() > MAX_FILTER {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the filter is too long"));
    }
    let program = libc::sock_fprog { len: code.len() as u16, filter: code.as_mut_ptr() };
    let size = size_of_val(&program) as libc::socklen_t;
    // SAFETY: the kernel reads the structure and the instructions that it points to, which live until the call has returned.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const program).cast(), size) };
    check(result as isize).map(drop)
}
