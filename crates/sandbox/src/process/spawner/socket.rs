//! The socket between a host and its helper. Both ends use these functions, which allocate nothing.

use crate::error::SetupError;
use crate::process::spawner::message::{MAX_DESCRIPTORS, WORDS, Words};
use crate::process::spawner::step::errno;
use std::io;
use std::mem::{size_of, size_of_val};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

/// Bytes for the control message that carries the descriptors, and its alignment.
#[repr(C, align(8))]
struct Control([u8; CONTROL_SIZE]);

// SAFETY: computes a size.
const CONTROL_SIZE: usize =
    unsafe { libc::CMSG_SPACE((MAX_DESCRIPTORS * size_of::<RawFd>()) as u32) } as usize;

/// A received message. The descriptors belong to the receiver and are closed by exec; unused places hold -1.
pub(super) struct Received {
    pub(super) words: Words,
    pub(super) descriptors: [RawFd; MAX_DESCRIPTORS],
    /// The number of descriptors.
    pub(super) count: usize,
    /// Descriptors were lost, because there was no room for them in the table of the receiver.
    pub(super) truncated: bool,
}

fn header(words: &mut libc::iovec, control: &mut Control, size: usize) -> libc::msghdr {
    // SAFETY: an all-zero header is valid and refers to nothing.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = words;
    header.msg_iovlen = 1;
    if size > 0 {
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = size;
    }
    header
}

/// Sends a message. The error is an error number.
pub(super) fn send(socket: RawFd, words: &Words, descriptors: &[RawFd]) -> Result<(), i32> {
    if descriptors.len() > MAX_DESCRIPTORS {
        return Err(libc::E2BIG);
    }
    let mut iovec = libc::iovec { iov_base: words.as_ptr().cast_mut().cast(), iov_len: size_of_val(words) };
    let mut control = Control([0; CONTROL_SIZE]);
    let bytes = size_of_val(descriptors) as u32;
    // SAFETY: computes a size.
    let size = if descriptors.is_empty() { 0 } else { unsafe { libc::CMSG_SPACE(bytes) as usize } };
    let header = header(&mut iovec, &mut control, size);
    // SAFETY: the first control message lies in `control`, which has room for it and for all descriptors.
    unsafe {
        let message = libc::CMSG_FIRSTHDR(&header);
        if !message.is_null() {
            (*message).cmsg_level = libc::SOL_SOCKET;
            (*message).cmsg_type = libc::SCM_RIGHTS;
            (*message).cmsg_len = libc::CMSG_LEN(bytes) as usize;
            let data = libc::CMSG_DATA(message);
            data.copy_from_nonoverlapping(descriptors.as_ptr().cast(), size_of_val(descriptors));
        }
    }
    loop {
        // SAFETY: the header refers to live memory; the kernel reads only.
        let sent = unsafe { libc::sendmsg(socket, &header, libc::MSG_NOSIGNAL) };
        match sent {
            0.. => return Ok(()),
            _ if errno() == libc::EINTR => {}
            _ => return Err(errno()),
        }
    }
}

/// Receives a message; `None` when the other end has closed. The error is an error number.
pub(super) fn receive(socket: RawFd) -> Result<Option<Received>, i32> {
    let mut words = [0u64; WORDS];
    let mut control = Control([0; CONTROL_SIZE]);
    let mut iovec = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size_of_val(&words) };
    let mut header = header(&mut iovec, &mut control, CONTROL_SIZE);
    let received = loop {
        // SAFETY: the header refers to live memory of the sizes that it states.
        let received = unsafe { libc::recvmsg(socket, &mut header, libc::MSG_CMSG_CLOEXEC) };
        match received {
            0.. => break received as usize,
            _ if errno() == libc::EINTR => {}
            _ => return Err(errno()),
        }
    };
    let (mut descriptors, mut count) = ([-1; MAX_DESCRIPTORS], 0);
    // SAFETY: the kernel has filled in the control messages, which lie in `control`.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(&header);
        while !message.is_null() {
            if (*message).cmsg_level == libc::SOL_SOCKET && (*message).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*message).cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
                let data = libc::CMSG_DATA(message).cast::<RawFd>();
                for index in 0..bytes / size_of::<RawFd>() {
                    let descriptor = data.add(index).read_unaligned();
                    match descriptors.get_mut(count) {
                        Some(place) => (*place, count) = (descriptor, count + 1),
                        None => close(descriptor),
                    }
                }
            }
            message = libc::CMSG_NXTHDR(&header, message);
        }
    }
    let truncated = header.msg_flags & (libc::MSG_CTRUNC | libc::MSG_TRUNC) != 0;
    match received {
        0 if count == 0 => Ok(None),
        _ if received == size_of::<Words>() => Ok(Some(Received { words, descriptors, count, truncated })),
        _ => {
            descriptors
                .iter()
                .filter(|descriptor| **descriptor >= 0)
                .for_each(|descriptor| close(*descriptor));
            Err(libc::EPROTO)
        }
    }
}

/// Limits the time that a call on a socket waits. A call that takes longer fails with `EAGAIN`.
pub(super) fn limit_replies(socket: BorrowedFd<'_>, timeout: Duration) -> Result<(), SetupError> {
    let limit = libc::timeval { tv_sec: timeout.as_secs() as libc::time_t, tv_usec: 0 };
    for option in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
        let (pointer, size) = ((&raw const limit).cast(), size_of_val(&limit) as libc::socklen_t);
        // SAFETY: the kernel reads a live value of this size.
        let set = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, pointer, size) };
        if set != 0 {
            return Err(SetupError::Spawner(io::Error::last_os_error()));
        }
    }
    Ok(())
}

/// Closes a descriptor.
pub(super) fn close(descriptor: RawFd) {
    // SAFETY: the callers own the descriptor and do not use it again.
    unsafe { libc::close(descriptor) };
}
