//! A memif peer made by hand: it sends any message, and writes any word to the memory that it shares.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect, recvmsg,
    sendmsg, socket_with,
};
use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of a message.
pub const SIZE: usize = 128;
/// Slots of both rings.
pub const SLOTS: u64 = 16;
/// Offsets of the ring from the client and of the ring to it, and of the buffers of each.
pub const RINGS: [u64; 2] = [0, 512];
pub const BUFFERS: [u64; 2] = [4096, 4096 + SLOTS * 2048];
/// Bytes of the region.
pub const REGION: u64 = BUFFERS[1] + SLOTS * 2048;
/// What marks a ring.
pub const COOKIE: u32 = 0x3E3_1F20;
/// Version 2.0.
pub const VERSION: u16 = 0x200;

/// A message of a type, with a body.
pub fn message(kind: u16, body: &[&[u8]]) -> [u8; SIZE] {
    let mut message = [0; SIZE];
    let bytes = [&kind.to_ne_bytes(), body.concat().as_slice()].concat();
    message[..bytes.len()].copy_from_slice(&bytes);
    message
}

/// The first message of a client.
pub fn init(version: u16, id: u32, mode: u8, secret: &[u8]) -> [u8; SIZE] {
    let mut field = [0; 24];
    field[..secret.len()].copy_from_slice(secret);
    message(3, &[&version.to_ne_bytes(), &id.to_ne_bytes(), &[mode], &field, b"by hand"])
}

pub fn add_region(index: u16, size: u64) -> [u8; SIZE] {
    message(4, &[&index.to_ne_bytes(), &size.to_ne_bytes()])
}

/// A ring in region 0.
pub fn add_ring(from_client: bool, index: u16, offset: u32, log2_size: u8, header: u16) -> [u8; SIZE] {
    let words = [u16::from(from_client), index, 0].map(u16::to_ne_bytes).concat();
    message(5, &[&words, &offset.to_ne_bytes(), &[log2_size], &header.to_ne_bytes()])
}

pub fn connect_message() -> [u8; SIZE] {
    message(6, &[b"by hand"])
}

/// The greeting of a server.
pub fn hello(min: u16, max: u16, max_log2_size: u8) -> [u8; SIZE] {
    let words = [min, max, 0, 0, 0].map(u16::to_ne_bytes).concat();
    message(2, &[&[b'x'; 32], &words, &[max_log2_size]])
}

/// The text of a message that ends a connection.
pub fn disconnection(message: &[u8]) -> Option<String> {
    let is_one = message.len() == SIZE && message[..2] == 8u16.to_ne_bytes();
    let text = message.get(6..)?.split(|byte| *byte == 0).next()?;
    is_one.then(|| String::from_utf8_lossy(text).into_owned())
}

/// A memory file.
pub fn memory(size: u64, seals: SealFlags) -> File {
    let file = memfd_create(c"peer", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&file, size).unwrap();
    fcntl_add_seals(&file, seals).unwrap();
    file.into()
}

pub fn event() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC).unwrap()
}

/// Whether a descriptor is readable now.
pub fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    let mut list = [PollFd::new(&descriptor, PollFlags::IN)];
    poll(&mut list, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
}

fn socket() -> OwnedFd {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
}

/// A socket that listens at a path, instead of what was there.
pub fn listen(path: &Path) -> OwnedFd {
    let _ = std::fs::remove_file(path);
    let socket = socket();
    bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    // As many as a fuzzed input can have: each peer that has left stays in the queue until it is accepted.
    rustix::net::listen(&socket, 1024).unwrap();
    socket
}

/// A connection to the socket at a path.
pub fn connect_to(path: &Path) -> OwnedFd {
    let socket = socket();
    connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    socket
}

/// A control socket.
pub struct Peer(pub OwnedFd);

impl Peer {
    pub fn connect(path: &Path) -> Self {
        Self(connect_to(path))
    }

    /// Sends bytes, if the other side still listens.
    pub fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); 256];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(descriptors.is_empty() || ancillary.push(SendAncillaryMessage::ScmRights(descriptors)));
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let _ = sendmsg(&self.0, &[IoSlice::new(bytes)], &mut ancillary, flags);
    }

    /// The next message, with the descriptors that came with it; `None` if there is none.
    pub fn receive(&self) -> Option<(Vec<u8>, Vec<OwnedFd>)> {
        let mut space = [MaybeUninit::uninit(); 256];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut bytes = vec![0; 2 * SIZE];
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(&self.0, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags).ok()?;
        let rights = ancillary.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(rights) => Some(rights),
            _ => None,
        });
        let descriptors = rights.flatten().collect();
        bytes.truncate(received.bytes);
        (received.bytes > 0).then_some((bytes, descriptors))
    }

    /// Why the other side ended the connection.
    pub fn reason(&self) -> Option<String> {
        std::iter::from_fn(|| self.receive()).find_map(|(message, _)| disconnection(&message))
    }
}

/// A client with its region, of which it can write every word.
pub struct Client {
    pub peer: Peer,
    pub memory: File,
    /// The events of the ring from the client, and of the one to it.
    pub events: [OwnedFd; 2],
}

impl Client {
    /// A client that has described everything, but not sent that it connects.
    pub fn new(path: &Path, id: u32, secret: &[u8]) -> Self {
        let client = Self {
            peer: Peer::connect(path),
            memory: memory(REGION, SealFlags::SHRINK),
            events: [event(), event()],
        };
        for ring in RINGS {
            client.set(ring, &COOKIE.to_ne_bytes());
        }
        for slot in 0..SLOTS {
            client.describe(0, slot, 0, 0, 2048, BUFFERS[0] + slot * 2048);
            client.describe(1, slot, 0, 0, 2048, BUFFERS[1] + slot * 2048);
        }
        client.peer.send(&init(VERSION, id, 0, secret), &[]);
        client.peer.send(&add_region(0, REGION), &[client.memory.as_fd()]);
        client.peer.send(&add_ring(true, 0, RINGS[0] as u32, 4, 0), &[client.events[0].as_fd()]);
        client.peer.send(&add_ring(false, 0, RINGS[1] as u32, 4, 0), &[client.events[1].as_fd()]);
        client
    }

    pub fn set(&self, offset: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, offset).unwrap();
    }

    fn word(&self, offset: u64) -> u16 {
        let mut bytes = [0; 2];
        self.memory.read_exact_at(&mut bytes, offset).unwrap();
        u16::from_ne_bytes(bytes)
    }

    /// Writes a descriptor of a ring.
    pub fn describe(&self, ring: usize, slot: u64, flags: u16, region: u16, length: u32, offset: u64) {
        let first = [flags.to_ne_bytes(), region.to_ne_bytes()].concat();
        let bytes = [first.as_slice(), &length.to_ne_bytes(), &(offset as u32).to_ne_bytes()].concat();
        self.set(RINGS[ring] + 128 + slot % SLOTS * 16, &bytes);
    }

    /// The flags and the length of a descriptor.
    pub fn described(&self, ring: usize, slot: u64) -> (u16, u32) {
        let at = RINGS[ring] + 128 + slot % SLOTS * 16;
        (self.word(at), u32::from(self.word(at + 4)) | u32::from(self.word(at + 6)) << 16)
    }

    pub fn set_head(&self, ring: usize, head: u16) {
        self.set(RINGS[ring] + 6, &head.to_ne_bytes());
    }

    pub fn tail(&self, ring: usize) -> u16 {
        self.word(RINGS[ring] + 64)
    }

    /// Whether the reader of a ring needs no interrupts.
    pub fn is_masked(&self, ring: usize) -> bool {
        self.word(RINGS[ring] + 4) == 1
    }
}
