//! `af_packet`: any network device of the kernel, by a packet socket.
//!
//! Frames that this host sends out of the device are not seen. The kernel takes a frame's VLAN tag out
//! and tells it beside the frame; it is put back here.

use super::contract::{Driver, DriverError, Received, Sent};
use super::device::{check, name, not_now, readable};
use crate::batch::{Batch, MAX_FRAME};
use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Bytes of both Ethernet addresses: where a VLAN tag belongs.
const ADDRESSES: usize = 12;

/// Bytes of a VLAN tag.
const TAG: usize = 4;

/// The tag's type when the kernel doesn't tell it.
const TAG_TYPE: u16 = 0x8100;

/// Bytes for what the kernel tells beside a frame.
const BESIDE: usize = 64;

/// A packet socket bound to a device.
#[derive(Debug)]
pub struct AfPacket(OwnedFd);

impl AfPacket {
    /// Binds to a device, and has it take all frames, whoever they are for.
    pub fn open(device: &str) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: a new descriptor is this value's own; the name is terminated; the structures live
        // through the calls.
        unsafe {
            // With protocol 0 nothing is received before the socket is bound.
            let descriptor = check(libc::socket(libc::AF_PACKET, kind, 0) as isize)?;
            let socket = Self(OwnedFd::from_raw_fd(descriptor as i32));
            let index = libc::if_nametoindex(name(device)?.as_ptr());
            if index == 0 {
                return Err(io::Error::last_os_error());
            }
            socket.set(libc::PACKET_AUXDATA, &1i32)?;
            socket.set(libc::PACKET_IGNORE_OUTGOING, &1i32)?;
            let mut everything: libc::packet_mreq = zeroed();
            everything.mr_ifindex = index as i32;
            everything.mr_type = libc::PACKET_MR_PROMISC as u16;
            socket.set(libc::PACKET_ADD_MEMBERSHIP, &everything)?;
            let mut address: libc::sockaddr_ll = zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
            address.sll_ifindex = index as i32;
            let size = size_of_val(&address) as libc::socklen_t;
            check(libc::bind(descriptor as i32, (&raw const address).cast(), size) as isize)?;
            Ok(socket)
        }
    }

    fn set<T>(&self, option: i32, value: &T) -> io::Result<()> {
        let size = size_of::<T>() as libc::socklen_t;
        // SAFETY: the kernel reads one value of the option's type.
        let result = unsafe {
            libc::setsockopt(self.0.as_raw_fd(), libc::SOL_PACKET, option, (&raw const *value).cast(), size)
        };
        check(result as isize).map(drop)
    }

    /// Receives one frame; its length in the buffer, and its tag.
    fn receive_one(&self, buffer: &mut [u8]) -> io::Result<(usize, Option<[u8; TAG]>)> {
        let mut beside = [0u64; BESIDE / 8];
        let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: an all-zero header is valid; its pointers lead to live memory of the lengths told; what
        // lies beside is walked by the system's own macros, and read as the type that its label names.
        unsafe {
            let mut message: libc::msghdr = zeroed();
            message.msg_iov = &mut piece;
            message.msg_iovlen = 1;
            message.msg_control = beside.as_mut_ptr().cast();
            message.msg_controllen = size_of_val(&beside);
            let length = check(libc::recvmsg(self.0.as_raw_fd(), &mut message, libc::MSG_TRUNC))?;
            let mut tag = None;
            let mut label = libc::CMSG_FIRSTHDR(&message);
            while !label.is_null() {
                if (*label).cmsg_level == libc::SOL_PACKET && (*label).cmsg_type == libc::PACKET_AUXDATA {
                    let told = libc::CMSG_DATA(label).cast::<libc::tpacket_auxdata>().read_unaligned();
                    if told.tp_status & libc::TP_STATUS_VLAN_VALID != 0 {
                        let valid = told.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
                        let [t0, t1] = if valid { told.tp_vlan_tpid } else { TAG_TYPE }.to_be_bytes();
                        let [c0, c1] = told.tp_vlan_tci.to_be_bytes();
                        tag = Some([t0, t1, c0, c1]);
                    }
                }
                label = libc::CMSG_NXTHDR(&message, label);
            }
            Ok((length, tag))
        }
    }
}

/// Puts a tag behind the addresses of a frame of `length` bytes; the length with it.
fn put_back(frame: &mut [u8], length: usize, tag: [u8; TAG]) -> usize {
    match frame.get_mut(ADDRESSES..length + TAG) {
        Some(rest) if length >= ADDRESSES => {
            rest.copy_within(..length - ADDRESSES, TAG);
            rest[..TAG].copy_from_slice(&tag);
            length + TAG
        }
        _ => length,
    }
}

impl Driver for AfPacket {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let mut received = Received::default();
        let mut buffer = [0u8; MAX_FRAME + TAG];
        while batch.room() > 0 {
            let (length, tag) = match self.receive_one(&mut buffer[..MAX_FRAME]) {
                Ok(frame) => frame,
                Err(error) if not_now(&error) => break,
                // A device that went down tells it once; it may come up again.
                Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => break,
                Err(error) => return Err(error.into()),
            };
            if length > MAX_FRAME {
                received.long += 1;
                continue;
            }
            let length = tag.map_or(length, |tag| put_back(&mut buffer, length, tag));
            received.long += u64::from(!batch.push(&buffer[..length]));
        }
        Ok(received)
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        let mut sent = Sent::default();
        for frame in frames.iter().filter_map(|number| batch.frame(*number as usize)) {
            // SAFETY: the kernel reads the frame's bytes.
            let written = unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
            match check(written) {
                Ok(_) => {}
                Err(error) if not_now(&error) => break,
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENETDOWN | libc::ENXIO)) => break,
                // Longer than the device's frames may be: it alone is lost, as if the device had
                // dropped it.
                Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => {}
                Err(error) => return Err(error.into()),
            }
            sent.frames += 1;
            sent.bytes += frame.len() as u64;
        }
        Ok(sent)
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        Ok(!readable(&self.0))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_goes_behind_the_addresses() {
        let mut frame = [0; 40];
        frame[..20].copy_from_slice(&core::array::from_fn::<u8, 20, _>(|byte| byte as u8));
        assert_eq!(put_back(&mut frame, 20, [0x81, 0, 0, 7]), 24);
        assert_eq!(frame[10..18], [10, 11, 0x81, 0, 0, 7, 12, 13]);
        assert_eq!(frame[23], 19);
        assert_eq!(put_back(&mut frame, 5, [0; 4]), 5);
    }
}
