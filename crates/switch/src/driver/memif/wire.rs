//! The messages of the control socket, and how they travel.
//!
//! A message is a packet of 128 bytes: a type of two bytes, and a body without padding, in the byte order of the host. At most
//! one descriptor comes with it.

use super::error::MemifError;
use super::memory::Discarder;
use crate::driver::kernel::{check, not_now};
use std::io;
use std::mem::{MaybeUninit, size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Bytes of a message.
pub(super) const SIZE: usize = 128;
/// The protocol's version: 2.0.
pub(super) const VERSION: u16 = 0x200;
/// Frames are Ethernet frames.
pub(super) const ETHERNET: u8 = 0;
/// Bytes of a secret.
pub(super) const SECRET: usize = 24;
/// Bytes of a name.
const NAME: usize = 32;
/// Bytes of the text of a disconnection.
const TEXT: usize = 96;
/// Flag of a ring that the client fills: the specification's direction from slave to master.
const FROM_CLIENT: u16 = 1;
/// Room for the header of ancillary data and one descriptor, in words.
const ANCILLARY: usize = 4;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// A message of the client was understood.
    Ack,
    /// What the server can do.
    Hello(Hello),
    /// Which interface the client wants.
    Init(Init),
    /// A region of memory. Its file comes with the message.
    AddRegion { index: u16, size: u64 },
    /// A ring in a region. Its eventfd comes with the message.
    AddRing(AddRing),
    /// The client has sent everything.
    Connect,
    /// The server has accepted everything.
    Connected,
    /// The connection ends, and why.
    Disconnect(String),
}

/// What a server can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) min_version: u16,
    pub(super) max_version: u16,
    pub(super) max_region: u16,
    /// The highest numbers of rings from the server, and from the client.
    pub(super) max_rings: [u16; 2],
    pub(super) max_log2_size: u8,
}

/// Which interface a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Init {
    pub(super) version: u16,
    pub(super) id: u32,
    pub(super) mode: u8,
    pub(super) secret: [u8; SECRET],
}

/// A ring, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AddRing {
    pub(super) from_client: bool,
    pub(super) index: u16,
    pub(super) region: u16,
    pub(super) offset: u32,
    pub(super) log2_size: u8,
    pub(super) private_header: u16,
}

impl Message {
    /// The bytes of the message.
    pub(super) fn encode(&self) -> [u8; SIZE] {
        let mut writer = Writer { bytes: [0; SIZE], at: 0 };
        match self {
            Self::Ack => writer.put(&1u16.to_ne_bytes()),
            Self::Hello(hello) => {
                writer.put(&2u16.to_ne_bytes());
                writer.put(&own_name());
                for word in [hello.min_version, hello.max_version, hello.max_region] {
                    writer.put(&word.to_ne_bytes());
                }
                hello.max_rings.iter().for_each(|word| writer.put(&word.to_ne_bytes()));
                writer.put(&[hello.max_log2_size]);
            }
            Self::Init(init) => {
                writer.put(&3u16.to_ne_bytes());
                writer.put(&init.version.to_ne_bytes());
                writer.put(&init.id.to_ne_bytes());
                writer.put(&[init.mode]);
                writer.put(&init.secret);
                writer.put(&own_name());
            }
            Self::AddRegion { index, size } => {
                writer.put(&4u16.to_ne_bytes());
                writer.put(&index.to_ne_bytes());
                writer.put(&size.to_ne_bytes());
            }
            Self::AddRing(ring) => {
                writer.put(&5u16.to_ne_bytes());
                writer.put(&u16::from(ring.from_client).to_ne_bytes());
                writer.put(&ring.index.to_ne_bytes());
                writer.put(&ring.region.to_ne_bytes());
                writer.put(&ring.offset.to_ne_bytes());
                writer.put(&[ring.log2_size]);
                writer.put(&ring.private_header.to_ne_bytes());
            }
            Self::Connect | Self::Connected => {
                let kind: u16 = if *self == Self::Connect { 6 } else { 7 };
                writer.put(&kind.to_ne_bytes());
                writer.put(&own_name());
            }
            Self::Disconnect(text) => {
                writer.put(&8u16.to_ne_bytes());
                writer.put(&0u32.to_ne_bytes());
                let length = text.floor_char_boundary(TEXT - 1);
                writer.put(text.get(..length).unwrap_or_default().as_bytes());
            }
        }
        writer.bytes
    }

    /// Reads a message. `None` if its type is unknown.
    pub(super) fn decode(bytes: &[u8; SIZE]) -> Option<Self> {
        let mut reader = Reader { bytes, at: 0 };
        Some(match reader.word() {
            1 => Self::Ack,
            2 => {
                reader.take::<NAME>();
                Self::Hello(Hello {
                    min_version: reader.word(),
                    max_version: reader.word(),
                    max_region: reader.word(),
                    max_rings: [reader.word(), reader.word()],
                    max_log2_size: reader.byte(),
                })
            }
            3 => Self::Init(Init {
                version: reader.word(),
                id: u32::from_ne_bytes(reader.take()),
                mode: reader.byte(),
                secret: reader.take(),
            }),
            4 => Self::AddRegion { index: reader.word(), size: u64::from_ne_bytes(reader.take()) },
            5 => Self::AddRing(AddRing {
                from_client: reader.word() & FROM_CLIENT != 0,
                index: reader.word(),
                region: reader.word(),
                offset: u32::from_ne_bytes(reader.take()),
                log2_size: reader.byte(),
                private_header: reader.word(),
            }),
            6 => Self::Connect,
            7 => Self::Connected,
            8 => {
                reader.take::<4>();
                Self::Disconnect(text(&reader.take::<TEXT>()))
            }
            _ => return None,
        })
    }
}

/// The name that a peer shows: this program and its version.
fn own_name() -> [u8; NAME] {
    let mut name = [0; NAME];
    let text = concat!("clickbox ", env!("CARGO_PKG_VERSION")).as_bytes();
    name.iter_mut().take(NAME - 1).zip(text).for_each(|(to, from)| *to = *from);
    name
}

/// The text in a field that ends with a zero byte. What is not printable becomes a dot.
fn text(field: &[u8]) -> String {
    let bytes = field.split(|byte| *byte == 0).next().unwrap_or_default();
    let printable = |byte: &u8| if (b' '..=b'~').contains(byte) { char::from(*byte) } else { '.' };
    bytes.iter().map(printable).collect()
}

struct Writer {
    bytes: [u8; SIZE],
    at: usize,
}

impl Writer {
    fn put(&mut self, bytes: &[u8]) {
        if let Some(space) = self.bytes.get_mut(self.at..self.at + bytes.len()) {
            space.copy_from_slice(bytes);
            self.at += bytes.len();
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8; SIZE],
    at: usize,
}

impl Reader<'_> {
    /// The next bytes. No message is longer than its packet.
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let found = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk).copied();
        self.at += N;
        found.unwrap_or([0; N])
    }

    fn word(&mut self) -> u16 {
        u16::from_ne_bytes(self.take())
    }

    fn byte(&mut self) -> u8 {
        let [byte] = self.take();
        byte
    }
}

/// Sends a message. The call does not block.
pub(super) fn send(socket: &OwnedFd, message: &Message, descriptor: Option<&OwnedFd>) -> io::Result<()> {
    let mut bytes = message.encode();
    let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: SIZE };
    let mut ancillary = [0u64; ANCILLARY];
    // SAFETY: an all-zero header is valid. It refers to a live vector of one entry, and to ancillary data with room for one
    // descriptor, which `CMSG_FIRSTHDR` and `CMSG_DATA` stay inside.
    let sent = unsafe {
        let mut header: libc::msghdr = zeroed();
        header.msg_iov = &raw mut vector;
        header.msg_iovlen = 1;
        if let Some(descriptor) = descriptor {
            header.msg_control = ancillary.as_mut_ptr().cast();
            header.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as usize;
            let first = libc::CMSG_FIRSTHDR(&raw const header);
            if !first.is_null() {
                (*first).cmsg_level = libc::SOL_SOCKET;
                (*first).cmsg_type = libc::SCM_RIGHTS;
                (*first).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as usize;
                libc::CMSG_DATA(first).cast::<RawFd>().write_unaligned(descriptor.as_raw_fd());
            }
        }
        libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
    };
    check(sent).map(drop)
}

/// Receives a message, if there is one. The call does not block. Without a discarder, the kernel discards the descriptors that
/// come with it.
pub(super) fn receive(
    socket: &OwnedFd,
    discarder: Option<&Discarder>,
) -> Result<Option<(Message, Option<OwnedFd>)>, MemifError> {
    // One byte more than a message has, to detect packets that are too long.
    let mut bytes = [0; SIZE + 1];
    let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut ancillary = [0u64; ANCILLARY];
    let mut header: MaybeUninit<libc::msghdr> = MaybeUninit::zeroed();
    // SAFETY: an all-zero header is valid. It refers to a live vector of one entry, and to ancillary data with room for one
    // descriptor. The kernel installs no more than it has room for, and nothing else owns what it installs.
    let (received, descriptor) = unsafe {
        let header = header.assume_init_mut();
        header.msg_iov = &raw mut vector;
        header.msg_iovlen = 1;
        if discarder.is_some() {
            header.msg_control = ancillary.as_mut_ptr().cast();
            header.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as usize;
        }
        let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
        let received = check(libc::recvmsg(socket.as_raw_fd(), &raw mut *header, flags));
        let first = match &received {
            Ok(_) => libc::CMSG_FIRSTHDR(&raw const *header),
            Err(_) => std::ptr::null_mut(),
        };
        let is_descriptor = !first.is_null()
            && (*first).cmsg_level == libc::SOL_SOCKET
            && (*first).cmsg_type == libc::SCM_RIGHTS
            && (*first).cmsg_len as usize >= libc::CMSG_LEN(size_of::<RawFd>() as u32) as usize;
        let raw = is_descriptor.then(|| libc::CMSG_DATA(first).cast::<RawFd>().read_unaligned());
        (received, raw.map(|raw| OwnedFd::from_raw_fd(raw)))
    };
    let length = match received {
        Ok(length) => length,
        Err(error) if not_now(&error) => return Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::ECONNRESET) => return Err(MemifError::Closed),
        Err(error) => return Err(error.into()),
    };
    let message = match (length, bytes.first_chunk()) {
        (0, _) => Err(MemifError::Closed),
        (SIZE, Some(bytes)) => Message::decode(bytes).ok_or(MemifError::Message),
        _ => Err(MemifError::Message),
    };
    match (message, descriptor) {
        (Ok(message), descriptor) => Ok(Some((message, descriptor))),
        (Err(error), None) => Err(error),
        (Err(error), Some(descriptor)) => {
            if let Some(discarder) = discarder {
                discarder.discard(descriptor);
            }
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages() -> Vec<Message> {
        let hello = Hello {
            min_version: 0x102,
            max_version: 0x304,
            max_region: 0x506,
            max_rings: [0x708, 0x90a],
            max_log2_size: 0xb,
        };
        let init = Init { version: VERSION, id: 0x0102_0304, mode: 5, secret: [6; SECRET] };
        let ring = AddRing {
            from_client: true,
            index: 0x102,
            region: 0x304,
            offset: 0x0506_0708,
            log2_size: 9,
            private_header: 0xa0b,
        };
        vec![
            Message::Ack,
            Message::Hello(hello),
            Message::Init(init),
            Message::AddRegion { index: 0x102, size: 0x0304_0506_0708_090a },
            Message::AddRing(ring),
            Message::AddRing(AddRing { from_client: false, ..ring }),
            Message::Connect,
            Message::Connected,
            Message::Disconnect("the reason".into()),
        ]
    }

    /// Offsets and lengths of the fields, as VPP and DPDK lay them out on this byte order.
    #[test]
    fn messages_have_the_layout_of_the_specification() {
        let mut expected: Vec<Vec<(usize, Vec<u8>)>> = vec![Vec::new(); 9];
        let words = |words: &[u16]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        expected[1] = vec![(34, words(&[0x102, 0x304, 0x506, 0x708, 0x90a])), (44, vec![0xb, 0])];
        expected[2] = vec![(2, words(&[0x200])), (4, 0x0102_0304u32.to_ne_bytes().to_vec())];
        expected[2].extend([(8, vec![5]), (9, vec![6; 24]), (33, b"clickbox ".to_vec())]);
        expected[3] = vec![(2, words(&[0x102])), (4, 0x0304_0506_0708_090au64.to_ne_bytes().to_vec())];
        expected[4] = vec![(2, words(&[1, 0x102, 0x304])), (8, 0x0506_0708u32.to_ne_bytes().to_vec())];
        expected[4].extend([(12, vec![9]), (13, words(&[0xa0b])), (15, vec![0; 113])]);
        expected[5] = vec![(2, words(&[0, 0x102, 0x304]))];
        expected[6] = vec![(2, b"clickbox ".to_vec())];
        expected[7] = vec![(2, b"clickbox ".to_vec())];
        expected[8] = vec![(2, vec![0; 4]), (6, b"the reason\0".to_vec())];
        for (((message, fields), kind), number) in
            messages().iter().zip(expected).zip([1u16, 2, 3, 4, 5, 5, 6, 7, 8]).zip(0..)
        {
            let bytes = message.encode();
            assert_eq!(bytes[..2], kind.to_ne_bytes(), "{number}");
            for (at, field) in fields {
                assert_eq!(bytes[at..at + field.len()], field, "{number} at {at}");
            }
            assert_eq!(Message::decode(&bytes).as_ref(), Some(message), "{number}");
        }
    }

    #[test]
    fn texts_of_peers_are_made_printable_and_short() {
        let mut bytes = Message::Disconnect("é".repeat(90)).encode();
        assert_eq!((bytes[6 + 94], bytes[6 + 95]), (0, 0), "whole characters, and a zero byte at the end");
        assert_eq!(Message::decode(&bytes), Some(Message::Disconnect("..".repeat(47))));
        bytes[6..].fill(b'\x1b');
        assert_eq!(Message::decode(&bytes), Some(Message::Disconnect(".".repeat(96))));
        for kind in [0u16, 9, 0xffff] {
            bytes[..2].copy_from_slice(&kind.to_ne_bytes());
            assert_eq!(Message::decode(&bytes), None);
        }
    }
}
