//! A small front end of vhost-user: the driver of a virtual machine, for tests. It reaches its memory by the file, so no
//! access of its own can fail when the file shrinks.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, sendmsg};
use std::fs::File;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

/// Descriptors of each ring.
pub const SIZE: u16 = 64;
/// Bytes of the memory.
pub const MEMORY: u64 = 5 << 18;
/// Addresses of the memory: in the guest, and in the front end.
pub const GUEST: u64 = 0x10_0000;
pub const USER: u64 = 0x7f00_0000_0000;
/// Bytes of the header of a frame.
pub const HEADER: usize = 12;

/// Bits of features.
pub const SEVERAL_QUEUES: u64 = 1 << 22;
pub const MERGEABLE: u64 = 1 << 15;
pub const TABLES: u64 = 1 << 28;
pub const EVENT_INDEX: u64 = 1 << 29;
pub const PROTOCOL_FEATURES: u64 = 1 << 30;
pub const VERSION_1: u64 = 1 << 32;
pub const USUAL: u64 = MERGEABLE | PROTOCOL_FEATURES | VERSION_1;
/// Checksums, and segmentation of TCP over IPv4, of TCP over IPv6, of TCP with congestion notification, and of UDP, that are
/// left to the back end.
pub const CSUM: u64 = 1;
pub const HOST_TSO4: u64 = 1 << 11;
pub const HOST_TSO6: u64 = 1 << 12;
pub const HOST_ECN: u64 = 1 << 13;
pub const HOST_USO: u64 = 1 << 56;
/// The same for the front end.
pub const GUEST_CSUM: u64 = 1 << 1;
pub const GUEST_TSO4: u64 = 1 << 7;
pub const GUEST_TSO6: u64 = 1 << 8;
pub const GUEST_ECN: u64 = 1 << 9;
pub const GUEST_USO: u64 = 3 << 54;
pub const FROM_GUEST: u64 = CSUM | HOST_TSO4 | HOST_TSO6 | HOST_ECN | HOST_USO;
pub const TO_GUEST: u64 = GUEST_CSUM | GUEST_TSO4 | GUEST_TSO6 | GUEST_ECN | GUEST_USO;

/// Flags of descriptors.
pub const NEXT: u16 = 1;
pub const WRITE: u16 = 2;
pub const INDIRECT: u16 = 4;

/// The queue to the front end, and the one from it.
pub const RECEIVE: usize = 0;
pub const TRANSMIT: usize = 1;

/// A message: the request, its words, and the descriptors that come with it.
pub type Message<'a> = (u32, Vec<u64>, Vec<BorrowedFd<'a>>);

/// A front end.
#[derive(Debug)]
pub struct FrontEnd {
    pub socket: UnixStream,
    pub memory: File,
    /// Of each queue: two of each pair.
    pub kicks: [OwnedFd; 4],
    pub calls: [OwnedFd; 4],
    pub features: u64,
    /// The index of the next entry to make available, and of the next used one to look at.
    pub available: [u16; 4],
    pub used: [u16; 4],
    /// The number of queue pairs that are used.
    pub pairs: usize,
}

impl FrontEnd {
    /// A front end with new memory, which has said nothing yet.
    pub fn new(socket: UnixStream, features: u64) -> Self {
        let memory = File::from(memfd_create("guest", MemfdFlags::CLOEXEC).unwrap());
        memory.set_len(MEMORY).unwrap();
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        let (kicks, calls) = ([(); 4].map(|()| event()), [(); 4].map(|()| event()));
        Self { socket, memory, kicks, calls, features, available: [0; 4], used: [0; 4], pairs: 1 }
    }

    /// The same guest at another socket, as after a reconnection.
    pub fn reconnected(self, socket: UnixStream) -> Self {
        Self { socket, ..self }
    }

    /// All messages of a handshake.
    pub fn handshake(&self) -> Vec<Message<'_>> {
        let mut all = vec![
            (1, vec![], vec![]),
            (3, vec![], vec![]),
            (15, vec![], vec![]),
            (16, vec![if self.pairs > 1 { 9 } else { 8 }], vec![]),
            (2, vec![self.features], vec![]),
            (5, vec![1, GUEST, MEMORY, USER, 0], vec![self.memory.as_fd()]),
        ];
        for number in 0..2 * self.pairs {
            let queue = number as u64;
            all.push((8, vec![queue | u64::from(SIZE) << 32], vec![]));
            all.push((10, vec![queue | u64::from(self.used[number]) << 32], vec![]));
            let [table, available, used] = places(number).map(|place| USER + place);
            all.push((9, vec![queue, table, used, available, 0], vec![]));
            all.push((13, vec![queue], vec![self.calls[number].as_fd()]));
            all.push((12, vec![queue], vec![self.kicks[number].as_fd()]));
            all.push((18, vec![queue | 1 << 32], vec![]));
        }
        all
    }

    /// Sends a message.
    pub fn send(&self, (request, words, descriptors): &Message<'_>) {
        self.send_flags(*request, 1, words, descriptors);
    }

    /// Sends a message with these flags.
    pub fn send_flags(&self, request: u32, flags: u32, words: &[u64], descriptors: &[BorrowedFd<'_>]) {
        let mut bytes: Vec<u8> =
            [request, flags, words.len() as u32 * 8].iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        self.send_bytes(&bytes, descriptors);
    }

    /// Sends bytes. A peer that has closed its end gets nothing.
    pub fn send_bytes(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let _ = sendmsg(&self.socket, &[IoSlice::new(bytes)], &mut control, flags);
    }

    /// The next answer: the request, and the number.
    pub fn answer(&self) -> Option<(u32, u64)> {
        let mut bytes = [0u8; 20];
        let (length, _) = recv(&self.socket, &mut bytes[..], RecvFlags::DONTWAIT).ok()?;
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((length, word(4), word(8)), (20, 5, 8));
        Some((word(0), u64::from(word(12)) | u64::from(word(16)) << 32))
    }

    /// Whether the peer has closed the connection.
    pub fn is_closed(&self) -> bool {
        let mut byte = [0u8; 20];
        loop {
            match recv(&self.socket, &mut byte[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return true,
                Ok(_) => {}
                Err(error) => return error != rustix::io::Errno::AGAIN,
            }
        }
    }

    /// Writes to the memory.
    pub fn put(&self, offset: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, offset).unwrap();
    }

    /// Reads the memory.
    pub fn get(&self, offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.memory.read_exact_at(&mut bytes, offset).unwrap();
        bytes
    }

    fn half(&self, offset: u64) -> u16 {
        u16::from_le_bytes(self.get(offset, 2).try_into().unwrap())
    }

    /// Writes a descriptor.
    pub fn describe(&self, queue: usize, number: u16, address: u64, length: u32, flags: u16, next: u16) {
        self.describe_in(places(queue)[0], number, address, length, flags, next);
    }

    /// Writes a descriptor of a table.
    pub fn describe_in(&self, table: u64, number: u16, address: u64, length: u32, flags: u16, next: u16) {
        let mut bytes = address.to_le_bytes().to_vec();
        bytes.extend(length.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend(next.to_le_bytes());
        self.put(table + u64::from(number) * 16, &bytes);
    }

    /// Makes the chain that starts at a descriptor available, and publishes it.
    pub fn make_available(&mut self, queue: usize, head: u16) {
        let [_, available, _] = places(queue);
        let next = self.available[queue];
        self.put(available + 4 + u64::from(next % SIZE) * 2, &head.to_le_bytes());
        self.available[queue] = next.wrapping_add(1);
        self.publish(queue, self.available[queue]);
    }

    /// Publishes an index.
    pub fn publish(&self, queue: usize, index: u16) {
        self.put(places(queue)[1] + 2, &index.to_le_bytes());
    }

    /// Says whether the front end wants to be notified, by the flag.
    pub fn set_quiet(&self, queue: usize, is_quiet: bool) {
        self.put(places(queue)[1], &[u8::from(is_quiet), 0]);
    }

    /// Whether the back end wants to be notified, by the flag.
    pub fn wants_kick(&self, queue: usize) -> bool {
        self.half(places(queue)[2]) == 0
    }

    /// The index of the available list at which the back end wants to be notified.
    pub fn kick_index(&self, queue: usize) -> u16 {
        self.half(places(queue)[2] + 4 + u64::from(SIZE) * 8)
    }

    /// Asks to be notified when an index is used.
    pub fn ask_for(&self, queue: usize, index: u16) {
        self.put(places(queue)[1] + 4 + u64::from(SIZE) * 2, &index.to_le_bytes());
    }

    /// Sends a frame, in one buffer.
    pub fn transmit(&mut self, frame: &[u8]) {
        self.transmit_by(0, frame);
    }

    /// Sends a frame by a pair, in one buffer.
    pub fn transmit_by(&mut self, pair: usize, frame: &[u8]) {
        let queue = 2 * pair + TRANSMIT;
        let number = self.available[queue] % SIZE;
        self.put(buffer(queue, number), &[&[0xee; HEADER], frame].concat());
        let address = GUEST + buffer(queue, number);
        self.describe(queue, number, address, (HEADER + frame.len()) as u32, 0, 0);
        self.make_available(queue, number);
    }

    /// Refers to the start of the table of a descriptor, and makes it available.
    pub fn make_table_available(&mut self, queue: usize, number: u16, count: u32) {
        self.describe(queue, number, GUEST + table(queue, number), count * 16, INDIRECT, 0);
        self.make_available(queue, number);
    }

    /// Sends a header and a frame in a chain of descriptors, from the one with a number on: `first` bytes in the first one,
    /// 4 KB in each other one. If it was agreed on, they are in a table of their own. Returns the number after them.
    pub fn transmit_chain(&mut self, number: u16, header: &[u8], frame: &[u8], first: usize) -> u16 {
        let bytes = [header, frame].concat();
        let (start, rest) = bytes.split_at(first.min(bytes.len()));
        let pieces: Vec<&[u8]> = std::iter::once(start).chain(rest.chunks(4096)).collect();
        for (piece, at) in pieces.iter().zip(number..) {
            let flags = if at + 1 < number + pieces.len() as u16 { NEXT } else { 0 };
            self.put(buffer(TRANSMIT, at % SIZE), piece);
            let address = GUEST + buffer(TRANSMIT, at % SIZE);
            let length = piece.len() as u32;
            if self.features & TABLES == 0 {
                self.describe(TRANSMIT, at % SIZE, address, length, flags, (at + 1) % SIZE);
            } else {
                let (table, at) = (table(TRANSMIT, number % SIZE), at - number);
                self.describe_in(table, at, address, length, flags, at + 1);
            }
        }
        if self.features & TABLES == 0 {
            self.make_available(TRANSMIT, number % SIZE);
        } else {
            self.make_table_available(TRANSMIT, number % SIZE, pieces.len() as u32);
        }
        (number + pieces.len() as u16) % SIZE
    }

    /// Adds a buffer for frames, of this length.
    pub fn add_buffer(&mut self, length: u32) {
        self.add_buffer_to(0, length);
    }

    /// Adds a buffer for frames to a pair.
    pub fn add_buffer_to(&mut self, pair: usize, length: u32) {
        let queue = 2 * pair + RECEIVE;
        let number = self.available[queue] % SIZE;
        self.describe(queue, number, GUEST + buffer(queue, number), length, WRITE, 0);
        self.make_available(queue, number);
    }

    /// The entries that were used since the last call: descriptor and length.
    pub fn take_used(&mut self, queue: usize) -> Vec<(u32, u32)> {
        let [_, _, used] = places(queue);
        let until = self.half(used + 2);
        let mut all = Vec::new();
        while self.used[queue] != until {
            let entry = self.get(used + 4 + u64::from(self.used[queue] % SIZE) * 8, 8);
            let word = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().unwrap());
            all.push((word(0), word(4)));
            self.used[queue] = self.used[queue].wrapping_add(1);
        }
        all
    }

    /// The frames that came, put together from their buffers. Each header must be zeros and the number of buffers.
    pub fn received(&mut self) -> Vec<Vec<u8>> {
        let frames = self.received_messages().into_iter().map(|(header, frame)| {
            assert_eq!(header[..10], [0; 10]);
            frame
        });
        frames.collect()
    }

    /// The headers and the frames that came.
    pub fn received_messages(&mut self) -> Vec<([u8; HEADER], Vec<u8>)> {
        self.received_by(0)
    }

    /// The headers and the frames that came by a pair.
    pub fn received_by(&mut self, pair: usize) -> Vec<([u8; HEADER], Vec<u8>)> {
        let queue = 2 * pair + RECEIVE;
        let mut used = self.take_used(queue).into_iter();
        let mut messages = Vec::new();
        while let Some((number, length)) = used.next() {
            let mut bytes = self.get(buffer(queue, number as u16), length as usize);
            let buffers = u16::from_le_bytes([bytes[10], bytes[11]]);
            assert!(buffers > 0);
            for _ in 1..buffers {
                let (number, length) = used.next().expect("the rest of the frame");
                bytes.extend(self.get(buffer(queue, number as u16), length as usize));
            }
            let frame = bytes.split_off(HEADER);
            messages.push((bytes.try_into().unwrap(), frame));
        }
        messages
    }
}

/// The offsets of a ring's parts: table, available list, used list.
pub fn places(queue: usize) -> [u64; 3] {
    [0, 0x4000, 0x8000].map(|part| queue as u64 * 0x1_0000 + part)
}

/// The offset of the table to which a descriptor may refer: 24 descriptors.
pub fn table(queue: usize, number: u16) -> u64 {
    queue as u64 * 0x1_0000 + 0xa000 + u64::from(number) * 384
}

/// The offset of the buffer of a descriptor: 4 KB.
pub fn buffer(queue: usize, number: u16) -> u64 {
    0x4_0000 + (queue as u64 * u64::from(SIZE) + u64::from(number)) * 4096
}
