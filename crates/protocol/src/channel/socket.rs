//! A channel: one end of a Unix socket that keeps message boundaries.
//!
//! A message on the socket is one byte that names its form, then the payload:
//! - form 0: the encoded value;
//! - form 1: the length of the encoded value in 8 bytes, little-endian. The value is in a sealed memory file, which is
//!   the first descriptor.

use super::error::{ChannelError, MemoryFileFault};
use super::limits::{MAX_DESCRIPTORS, MAX_INLINE};
use super::memory_file;
use crate::codec;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType, recvmsg, sendmsg, shutdown,
    socketpair,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The forms of a message.
const INLINE: u8 = 0;
const IN_MEMORY_FILE: u8 = 1;

thread_local! {
    /// What a thread receives into. It is filled with zeros once only.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// One end of a conversation. All threads of a process may use it at the same time: each receives whole messages.
///
/// A channel blocks, unless its socket is non-blocking or has time limits; it then fails with
/// [`ChannelError::WouldBlock`].
#[derive(Debug)]
pub struct Channel(OwnedFd);

/// A message and its descriptors. Close those that the message does not call for by dropping them.
#[derive(Debug)]
pub struct Received<T> {
    /// The message.
    pub message: T,
    /// Its descriptors, all with close-on-exec set.
    pub descriptors: Vec<OwnedFd>,
}

impl Channel {
    /// Two connected ends.
    pub fn pair() -> io::Result<(Channel, Channel)> {
        let (one, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Channel(one), Channel(other)))
    }

    /// Sends a message with up to [`MAX_DESCRIPTORS`] descriptors, which the sender keeps.
    pub fn send<T: Serialize>(
        &self,
        message: &T,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), ChannelError> {
        self.send_with(message, descriptors, SendFlags::empty())
    }

    /// Like [`send`](Self::send), but fails with [`ChannelError::WouldBlock`] if there is no room for the message now.
    pub fn try_send<T: Serialize>(&self, message: &T) -> Result<(), ChannelError> {
        self.send_with(message, &[], SendFlags::DONTWAIT)
    }

    fn send_with<T: Serialize>(
        &self,
        message: &T,
        descriptors: &[BorrowedFd<'_>],
        flags: SendFlags,
    ) -> Result<(), ChannelError> {
        if descriptors.len() > MAX_DESCRIPTORS {
            return Err(ChannelError::TooManyDescriptors(descriptors.len()));
        }
        let bytes = codec::encode_to(message, vec![INLINE]).map_err(ChannelError::Encode)?;
        let value = bytes.get(1..).unwrap_or_default();
        if value.len() <= MAX_INLINE {
            return self.send_bytes(&bytes, descriptors, flags);
        }
        let file = memory_file::create(value)?;
        let mut head = vec![IN_MEMORY_FILE];
        head.extend((value.len() as u64).to_le_bytes());
        let mut all = vec![file.as_fd()];
        all.extend(descriptors);
        self.send_bytes(&head, &all, flags)
    }

    fn send_bytes(
        &self,
        bytes: &[u8],
        descriptors: &[BorrowedFd<'_>],
        flags: SendFlags,
    ) -> Result<(), ChannelError> {
        loop {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS + 1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
                return Err(ChannelError::TooManyDescriptors(descriptors.len()));
            }
            match sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL | flags) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => return Err(ChannelError::Closed),
                Err(Errno::AGAIN) => return Err(ChannelError::WouldBlock),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Receives a message of at most `most` encoded bytes. Blocks; returns `None` if the other end is closed and all
    /// its messages are received. A message without any byte, which no channel sends, also counts as the end.
    pub fn receive<T: DeserializeOwned>(&self, most: usize) -> Result<Option<Received<T>>, ChannelError> {
        self.receive_with(most, whole, RecvFlags::empty())
    }

    /// Like [`receive`](Self::receive). A message that is no `T` may be an `E` instead: what can be told of a message of a
    /// later version.
    pub fn receive_or<T: DeserializeOwned, E: DeserializeOwned>(
        &self,
        most: usize,
    ) -> Result<Option<Received<Result<T, E>>>, ChannelError> {
        self.receive_with(most, whole_or, RecvFlags::empty())
    }

    /// Like [`receive_or`](Self::receive_or), but fails with [`ChannelError::WouldBlock`] if there is no message now.
    pub fn try_receive_or<T: DeserializeOwned, E: DeserializeOwned>(
        &self,
        most: usize,
    ) -> Result<Option<Received<Result<T, E>>>, ChannelError> {
        self.receive_with(most, whole_or, RecvFlags::DONTWAIT)
    }

    fn receive_with<T>(
        &self,
        most: usize,
        decode: impl Fn(&[u8]) -> Result<T, ChannelError>,
        flags: RecvFlags,
    ) -> Result<Option<Received<T>>, ChannelError> {
        BUFFER.with_borrow_mut(|buffer| {
            buffer.resize(1 + MAX_INLINE, 0);
            self.receive_in(buffer, most, decode, flags)
        })
    }

    fn receive_in<T>(
        &self,
        buffer: &mut [u8],
        most: usize,
        decode: impl Fn(&[u8]) -> Result<T, ChannelError>,
        flags: RecvFlags,
    ) -> Result<Option<Received<T>>, ChannelError> {
        let Some((length, descriptors)) = self.receive_bytes(buffer, flags)? else { return Ok(None) };
        let Some((form, payload)) = buffer.get(..length).and_then(<[u8]>::split_first) else {
            return Ok(None);
        };
        match *form {
            INLINE if payload.len() > most => {
                Err(ChannelError::TooLong { length: payload.len() as u64, most })
            }
            INLINE => check_number(descriptors)
                .and_then(|descriptors| Ok(Received { message: decode(payload)?, descriptors })),
            IN_MEMORY_FILE => {
                let length = payload.try_into().map_err(|_| MemoryFileFault::WrongLength)?;
                let mut descriptors = descriptors.into_iter();
                let file = descriptors.next().ok_or(MemoryFileFault::Missing)?;
                let descriptors = check_number(descriptors.collect())?;
                let value = memory_file::read(file, u64::from_le_bytes(length), most)?;
                Ok(Received { message: decode(&value)?, descriptors })
            }
            form => Err(ChannelError::UnknownForm(form)),
        }
        .map(Some)
    }

    /// Receives the bytes and the descriptors of a message; `None` at the end of the conversation.
    fn receive_bytes(
        &self,
        buffer: &mut [u8],
        flags: RecvFlags,
    ) -> Result<Option<(usize, Vec<OwnedFd>)>, ChannelError> {
        loop {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS + 1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let parts = &mut [IoSliceMut::new(buffer)];
            let result = recvmsg(&self.0, parts, &mut control, RecvFlags::CMSG_CLOEXEC | flags);
            // All descriptors that arrived have an owner from here on.
            let mut descriptors = Vec::new();
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(rights) = message {
                    descriptors.extend(rights);
                }
            }
            match result {
                Ok(message) if message.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) => {
                    return Err(ChannelError::Truncated);
                }
                Ok(message) => return Ok((message.bytes > 0).then_some((message.bytes, descriptors))),
                // The other end was closed with unread messages. What it sent before can still be received.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(Errno::AGAIN) => return Err(ChannelError::WouldBlock),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Ends the conversation in both directions: wakes all threads that wait in [`receive`](Self::receive), on both
    /// ends.
    pub fn shut_down(&self) {
        // It fails only if the other end is closed already.
        let _ = shutdown(&self.0, Shutdown::Both);
    }
}

/// Refuses surplus descriptors. The control buffer may have room for one more than was asked for.
fn check_number(descriptors: Vec<OwnedFd>) -> Result<Vec<OwnedFd>, ChannelError> {
    match descriptors.len() {
        0..=MAX_DESCRIPTORS => Ok(descriptors),
        number => Err(ChannelError::TooManyDescriptors(number)),
    }
}

/// Decodes a message, after which nothing may follow.
fn whole<T: DeserializeOwned>(value: &[u8]) -> Result<T, ChannelError> {
    let (message, rest) = codec::decode(value).map_err(ChannelError::Decode)?;
    match rest {
        0 => Ok(message),
        number => Err(ChannelError::TrailingBytes(number)),
    }
}

/// Decodes a message as by [`Channel::receive_or`].
fn whole_or<T: DeserializeOwned, E: DeserializeOwned>(value: &[u8]) -> Result<Result<T, E>, ChannelError> {
    match whole(value) {
        Err(ChannelError::Decode(error)) => whole(value).map(Err).map_err(|_| ChannelError::Decode(error)),
        result => result.map(Ok),
    }
}

impl From<OwnedFd> for Channel {
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}

impl From<Channel> for OwnedFd {
    fn from(channel: Channel) -> Self {
        channel.0
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
