//! A function's side of the conversation and of the rings. It reads and writes the memory file instead of mapping it.

use protocol::function::{
    FromFunction, MAX_MESSAGE, RefusedReason, TOKEN_BYTES, ToFunction, VERSION, Welcome,
};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, recvmsg,
    send, sendmsg, socket_with,
};
use std::fs::{self, File};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

/// Bytes of a ring before its slots.
const SLOTS: u64 = 256;

/// The place of a service's socket. It is removed on drop.
pub(crate) struct Socket(PathBuf);

impl Socket {
    pub(crate) fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("clickbox-{name}-{}", std::process::id())))
    }

    fn address(&self) -> SocketAddrUnix {
        SocketAddrUnix::new(&self.0).unwrap()
    }

    /// A listening socket at the place, instead of the one before.
    pub(crate) fn listener(&self) -> OwnedFd {
        let _ = fs::remove_file(&self.0);
        let socket = seqpacket();
        bind(&socket, &self.address()).unwrap();
        listen(&socket, 128).unwrap();
        socket
    }

    pub(crate) fn connect(&self) -> Connection {
        self.try_connect().unwrap()
    }

    pub(crate) fn try_connect(&self) -> Option<Connection> {
        let socket = seqpacket();
        connect(&socket, &self.address()).ok()?;
        Some(Connection(socket))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn seqpacket() -> OwnedFd {
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
}

/// A connection to the fabric.
pub(crate) struct Connection(OwnedFd);

impl Connection {
    pub(crate) fn send(&self, bytes: &[u8]) {
        // The fabric may have closed it.
        let _ = send(&self.0, bytes, SendFlags::NOSIGNAL);
    }

    pub(crate) fn send_with_descriptor(&self, bytes: &[u8]) {
        let file = File::open("/dev/null").unwrap();
        let files = [file.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
        sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, SendFlags::empty()).unwrap();
    }

    fn receive_all(&self, flags: RecvFlags) -> Option<(ToFunction, Vec<OwnedFd>)> {
        let mut bytes = [0; MAX_MESSAGE];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let length = loop {
            match recvmsg(&self.0, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
                Ok(found) => break found.bytes,
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        };
        let mut descriptors = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(found) = message {
                descriptors.extend(found);
            }
        }
        (length > 0).then(|| (ToFunction::decode(&bytes[..length]).unwrap(), descriptors))
    }

    /// The next message of the fabric; `None` if it closed the connection.
    pub(crate) fn receive(&self) -> Option<ToFunction> {
        self.receive_all(RecvFlags::empty()).map(|(message, _)| message)
    }

    pub(crate) fn register(
        self,
        token: &[u8; TOKEN_BYTES],
        slots: u16,
    ) -> Result<FunctionProcess, RefusedReason> {
        self.register_as(token, slots, false)
    }

    /// Registers, perhaps as a function that hands over the state of its flows.
    pub(crate) fn register_as(
        self,
        token: &[u8; TOKEN_BYTES],
        slots: u16,
        hands_over: bool,
    ) -> Result<FunctionProcess, RefusedReason> {
        self.send(&FromFunction::Register { version: VERSION, slots, hands_over, token: *token }.encode());
        match self.receive_all(RecvFlags::empty()) {
            Some((ToFunction::Welcome(welcome), descriptors)) => {
                let mut descriptors = descriptors.into_iter();
                let mut next = || descriptors.next();
                let (memory, doorbell, pool) = (next().unwrap(), next().unwrap(), next().map(File::from));
                assert!(next().is_none());
                Ok(FunctionProcess {
                    connection: self,
                    memory: memory.into(),
                    doorbell,
                    pool,
                    taken: [0; 2],
                    sent: [0; 2],
                    welcome,
                })
            }
            Some((ToFunction::Refused(reason), _)) => Err(reason),
            other => panic!("{other:?}"),
        }
    }
}

/// A function that was accepted.
pub(crate) struct FunctionProcess {
    connection: Connection,
    memory: File,
    doorbell: OwnedFd,
    /// The packet pool, if its buffers are there.
    pub(crate) pool: Option<File>,
    pub(crate) welcome: Welcome,
    /// Packets that it took and sent at each face.
    taken: [u32; 2],
    sent: [u32; 2],
}

impl FunctionProcess {
    pub(crate) fn send(&self, bytes: &[u8]) {
        self.connection.send(bytes);
    }

    pub(crate) fn receive(&self) -> Option<ToFunction> {
        self.connection.receive()
    }

    pub(crate) fn receive_now(&self) -> Option<ToFunction> {
        self.connection.receive_all(RecvFlags::DONTWAIT).map(|(message, _)| message)
    }

    /// What tells its memory file from others.
    pub(crate) fn file_number(&self) -> u64 {
        self.memory.metadata().unwrap().ino()
    }

    fn word(&self, place: u64) -> u32 {
        let mut bytes = [0; 4];
        self.memory.read_exact_at(&mut bytes, place).unwrap();
        u32::from_le_bytes(bytes)
    }

    fn slot(&self, ring: u64, position: u32) -> u64 {
        ring + SLOTS + 8 * u64::from(position % u32::from(self.welcome.slots))
    }

    fn descriptor(&self, place: u64) -> u64 {
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes, place).unwrap();
        u64::from_le_bytes(bytes)
    }

    fn set_descriptor(&self, place: u64, word: u64) {
        self.memory.write_all_at(&word.to_le_bytes(), place).unwrap();
    }

    /// Sends up to `most` packets back with this answer, all at face 0. Returns their number.
    pub(crate) fn forward(&mut self, most: u64, answer: u16) -> u64 {
        self.pass(0, most, answer)
    }

    /// Sends packets from face 0 on at face 1.
    pub(crate) fn forward_across(&mut self, most: u64) -> u64 {
        self.pass(1, most, 0)
    }

    fn pass(&mut self, to: usize, most: u64, answer: u16) -> u64 {
        let [receive, transmit] = [self.welcome.faces[0][0], self.welcome.faces[to][1]].map(u64::from);
        let head = self.word(receive);
        let mut passed = 0;
        while self.taken[0] != head && passed < most {
            let (from, into) = (self.slot(receive, self.taken[0]), self.slot(transmit, self.sent[to]));
            let (packet, spare) = (self.descriptor(from), self.descriptor(into));
            self.set_descriptor(from, spare & 0xf_ffff);
            self.set_descriptor(into, packet | u64::from(answer) << 49);
            self.taken[0] = self.taken[0].wrapping_add(1);
            self.sent[to] = self.sent[to].wrapping_add(1);
            passed += 1;
        }
        self.memory.write_all_at(&self.taken[0].to_le_bytes(), receive + 64).unwrap();
        self.publish_at(to);
        passed
    }

    fn publish_at(&self, face: usize) {
        let transmit = u64::from(self.welcome.faces[face][1]);
        self.memory.write_all_at(&self.sent[face].to_le_bytes(), transmit).unwrap();
        // It does not look whether the switch sleeps.
        let _ = send(&self.doorbell, &[1], SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }

    /// Puts any word into the next slot, in place of a packet.
    pub(crate) fn push_raw(&mut self, word: u64) {
        let place = self.slot(u64::from(self.welcome.faces[0][1]), self.sent[0]);
        self.set_descriptor(place, word);
        self.sent[0] = self.sent[0].wrapping_add(1);
    }

    pub(crate) fn publish(&self) {
        self.publish_at(0);
    }

    /// Claims to have sent up to this index.
    pub(crate) fn write_index(&mut self, index: u32) {
        self.sent[0] = index;
        self.publish_at(0);
    }
}
