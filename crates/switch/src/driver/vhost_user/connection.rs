//! A connection with a front end: answers its messages, and starts and stops the rings as they say.
//!
//! The rings are in the [queue pairs](Pairs), which several threads may run. A ring runs when it has a size, a place in the memory
//! and a descriptor for notifications, and is enabled. It stops when the peer asks for its index, disables it, or shares other
//! memory in which the ring has no place.
//!
//! No call waits: a message may come in pieces, and an answer that does not fit in the socket ends the connection.

use super::bell::{Bells, Ringers, check_event};
use super::error::VhostUserError;
use super::memory::GuestMemory;
use super::messages::{self, HEADER, Header, MAX_PAYLOAD, MAX_REGIONS, Message, RingPlace};
use super::offloads::{OFFLOADS, OffloadFeatures};
use super::pairs::{FROM_PEER, MAX_PAIRS, Pairs};
use super::ring::{Ring, RingFeatures, is_size};
use crate::driver::kernel::{check, not_now};
use std::mem::{MaybeUninit, take, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::Arc;

/// Maximum messages that are handled at a time, so that a flood of them does not stop the switch.
const MAX_MESSAGES: usize = 16;

/// Features: bits of the virtio standard, and the one of vhost-user that announces protocol features.
const MERGEABLE: u64 = 1 << 15;
const INDIRECT: u64 = 1 << 28;
const EVENT_INDEX: u64 = 1 << 29;
const PROTOCOL_FEATURES: u64 = 1 << 30;
const VERSION_1: u64 = 1 << 32;
const IN_ORDER: u64 = 1 << 35;
const FEATURES: u64 =
    MERGEABLE | INDIRECT | EVENT_INDEX | PROTOCOL_FEATURES | VERSION_1 | IN_ORDER | OFFLOADS;
/// There are several queue pairs.
const SEVERAL_QUEUES: u64 = 1 << 22;

/// Protocol features: the peer may ask for an answer to any message, and hands out a channel for requests of the back end,
/// of which there are none. User-mode Linux up to 6.1 has no interrupt for its queues without the channel.
const REPLY_ACK: u64 = 1 << 3;
const BACKEND_CHANNEL: u64 = 1 << 5;
const ALL_PROTOCOL_FEATURES: u64 = REPLY_ACK | BACKEND_CHANNEL;
/// The peer may ask for the number of queue pairs, and use several.
const SEVERAL_PAIRS: u64 = 1;

/// Bytes of a control message with as many descriptors as one message has at most, and of its header.
const CONTROL: usize = 16 + 4 * MAX_REGIONS;

/// A message that has come: its header, its payload, and its descriptors.
type Arrived = (Header, Vec<u8>, Vec<OwnedFd>);

#[derive(Debug, Default)]
struct Queue {
    size: u16,
    place: Option<RingPlace>,
    /// The index with which it starts, as long as it has never run.
    base: u16,
    /// What reports the peer's notifications.
    kick: Option<OwnedFd>,
    is_started: bool,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    socket: OwnedFd,
    /// The rings of its queues, and what wakes those who run them.
    pairs: Arc<Pairs>,
    input: Vec<u8>,
    descriptors: Vec<OwnedFd>,
    features: u64,
    protocol_features: u64,
    memory: Arc<GuestMemory>,
    /// Two of each pair: to the peer, and from it.
    queues: Vec<Queue>,
    bells: Arc<Bells>,
    /// The channel for requests. It is kept open, and not used.
    channel: Option<OwnedFd>,
    /// A queue whose ring has no place in the memory.
    misplaced: Option<usize>,
}

impl Connection {
    /// A connection over a socket, which wakes the first driver.
    pub(super) fn new(socket: OwnedFd, pairs: Arc<Pairs>, ringers: &Ringers) -> Result<Self, VhostUserError> {
        watch(pairs.epoll(0), &socket, libc::EPOLLIN)?;
        // What concerns an earlier peer.
        pairs.take_failure();
        Ok(Self {
            socket,
            input: Vec::new(),
            descriptors: Vec::new(),
            features: 0,
            protocol_features: 0,
            memory: Arc::default(),
            queues: (0..pairs.queues()).map(|_| Queue::default()).collect(),
            bells: Arc::new(Bells::new(ringers, pairs.queues())),
            channel: None,
            misplaced: None,
            pairs,
        })
    }

    /// What a ring waits for that has no place in the memory.
    pub(super) fn misplaced(&self) -> Option<String> {
        let queue = self.misplaced?;
        Some(format!("queue {queue} of the front end is outside the memory that it shares, or not aligned"))
    }

    fn check_memory(&self) -> Result<(), VhostUserError> {
        if self.memory.is_broken() { Err(VhostUserError::MemoryLost) } else { Ok(()) }
    }

    /// The features that are offered, and the protocol features.
    fn offered(&self) -> (u64, u64) {
        match self.queues.len() {
            ..=2 => (FEATURES, ALL_PROTOCOL_FEATURES),
            _ => (FEATURES | SEVERAL_QUEUES, ALL_PROTOCOL_FEATURES | SEVERAL_PAIRS),
        }
    }

    /// Handles the messages that have come, up to a limit.
    pub(super) fn serve(&mut self) -> Result<(), VhostUserError> {
        for _ in 0..MAX_MESSAGES {
            let Some((header, payload, descriptors)) = self.next_message()? else { break };
            let message = match Message::read(header, &payload, descriptors.len()) {
                // The peer says that it can do without.
                Err(VhostUserError::Unsupported(request)) if self.acknowledges(header) => {
                    self.answer(request, 1)?;
                    continue;
                }
                message => message?,
            };
            match self.handle(message, descriptors)? {
                Some(value) => self.answer(header.request, value)?,
                None if self.acknowledges(header) => self.answer(header.request, 0)?,
                None => {}
            }
        }
        self.check_memory()
    }

    fn acknowledges(&self, header: Header) -> bool {
        header.needs_reply() && self.protocol_features & REPLY_ACK != 0
    }

    /// Carries a message out. Returns the value that it asks for.
    fn handle(
        &mut self,
        message: Message,
        mut descriptors: Vec<OwnedFd>,
    ) -> Result<Option<u64>, VhostUserError> {
        match message {
            Message::GetFeatures => return Ok(Some(self.offered().0)),
            Message::GetProtocolFeatures => return Ok(Some(self.offered().1)),
            Message::GetPairs => return Ok(Some(self.queues.len() as u64 / 2)),
            Message::SetFeatures(features) => {
                let unknown = features & !self.offered().0;
                if unknown != 0 {
                    return Err(VhostUserError::Features(unknown));
                }
                if features != self.features {
                    self.stop_rings();
                }
                self.features = features;
                // Without protocol features, a peer does not know how to enable a queue.
                if features & PROTOCOL_FEATURES == 0 {
                    (0..self.queues.len()).for_each(|queue| self.pairs.enable(queue, true));
                }
                self.place_rings();
            }
            Message::SetProtocolFeatures(features) => {
                let unknown = features & !self.offered().1;
                if unknown != 0 {
                    return Err(VhostUserError::Features(unknown));
                }
                self.protocol_features = features;
            }
            Message::SetOwner => {}
            Message::Reset => {
                for number in 0..self.queues.len() {
                    self.stop(number);
                    self.pairs.enable(number, false);
                }
            }
            Message::SetMemory(places) => {
                self.memory = Arc::new(GuestMemory::map(&places, descriptors, self.pairs.most_memory)?);
                self.stop_rings();
                self.place_rings();
            }
            Message::SetSize { queue, size } => {
                if !is_size(size) {
                    return Err(VhostUserError::QueueSize(queue));
                }
                self.queue(queue)?.size = size as u16;
                self.pairs.set_ring(queue as usize, None);
                self.place_rings();
            }
            Message::SetRing { queue, place } => {
                self.queue(queue)?.place = Some(place);
                self.pairs.set_ring(queue as usize, None);
                self.place_rings();
            }
            Message::SetBase { queue, base } => self.queue(queue)?.base = base as u16,
            Message::GetBase(number) => {
                let stopped = self.pairs.set_ring(number as usize, None);
                let queue = self.queue(number)?;
                let base = stopped.as_ref().map_or(queue.base, Ring::next);
                queue.base = base;
                self.stop(number as usize);
                return Ok(Some(u64::from(number) | u64::from(base) << 32));
            }
            Message::SetKick { queue: number, .. } => {
                let kick = descriptors.pop();
                self.forget_kick(number as usize);
                self.queue(number)?.is_started = true;
                if let Some(kick) = kick {
                    let epoll = self.pairs.epoll_of(number as usize);
                    check_event(&kick, epoll, false)?;
                    // New buffers for frames to the peer wake no one: the switch sends when it has frames.
                    if number as usize % 2 == FROM_PEER {
                        watch(epoll, &kick, libc::EPOLLIN | libc::EPOLLET)?;
                    }
                    self.queue(number)?.kick = Some(kick);
                }
                self.place_rings();
            }
            Message::SetCall { queue: number, .. } => {
                self.queue(number)?;
                let call = descriptors.pop();
                if let Some(call) = &call {
                    check_event(call, self.pairs.epoll(0), true)?;
                }
                self.bells.set(number as usize, call)?;
                // What was used in between was not announced.
                self.bells.ring(number as usize);
            }
            Message::SetChannel => self.channel = descriptors.pop(),
            Message::SetError { queue, .. } => drop(self.queue(queue)?),
            Message::Enable { queue, is_enabled } => {
                self.queue(queue)?;
                self.pairs.enable(queue as usize, is_enabled);
                self.place_rings();
            }
        }
        Ok(None)
    }

    fn queue(&mut self, number: u32) -> Result<&mut Queue, VhostUserError> {
        let pairs = self.queues.len() / 2;
        self.queues.get_mut(number as usize).ok_or(VhostUserError::Queue { number, pairs })
    }

    /// Finds the rings that have all that they need, and do not run yet, in the memory.
    fn place_rings(&mut self) {
        let has_all_headers = self.features & (VERSION_1 | MERGEABLE) != 0;
        let features = RingFeatures {
            header: if has_all_headers { 12 } else { 10 },
            is_mergeable: self.features & MERGEABLE != 0,
            by_index: self.features & EVENT_INDEX != 0,
            has_tables: self.features & INDIRECT != 0,
            offloads: OffloadFeatures::new(self.features),
        };
        self.misplaced = None;
        for (number, queue) in self.queues.iter().enumerate().filter(|(_, queue)| queue.is_started) {
            if let (Some(place), 1..) = (&queue.place, queue.size)
                && !self.pairs.has_ring(number)
            {
                match Ring::new(&self.memory, place, queue.size, features) {
                    Ok(ring) => drop(self.pairs.set_ring(number, Some(ring))),
                    // It waits for other memory, or for another place.
                    Err(_) => self.misplaced = self.misplaced.or(Some(number)),
                }
            }
        }
    }

    /// Stops all rings, until they are placed in the present memory.
    fn stop_rings(&self) {
        self.pairs.exchange_memory(&self.memory, Some(&self.bells));
    }

    /// Stops a ring, and forgets its descriptors.
    fn stop(&mut self, number: usize) {
        self.forget_kick(number);
        self.pairs.set_ring(number, None);
        self.misplaced.take_if(|queue| *queue == number);
        if let Some(queue) = self.queues.get_mut(number) {
            queue.is_started = false;
        }
        // Without a descriptor, no thread is started.
        let _ = self.bells.set(number, None);
    }

    /// Removes a descriptor from the set: it would stay there as long as the peer has it.
    fn forget_kick(&mut self, number: usize) {
        if let Some(kick) = self.queues.get_mut(number).and_then(|queue| queue.kick.take()) {
            unwatch(self.pairs.epoll_of(number), &kick);
        }
    }

    /// The next message with its descriptors, if all of it has come.
    fn next_message(&mut self) -> Result<Option<Arrived>, VhostUserError> {
        loop {
            let header = self.input.first_chunk::<HEADER>().map(Header::read).transpose()?;
            let wanted = header.map_or(HEADER, |header| HEADER + header.size);
            match header {
                Some(header) if self.input.len() == wanted => {
                    let payload = self.input.split_off(HEADER);
                    self.input.clear();
                    return Ok(Some((header, payload, take(&mut self.descriptors))));
                }
                _ if !self.read(wanted - self.input.len())? => return Ok(None),
                _ => {}
            }
        }
    }

    /// Reads up to `most` bytes, with their descriptors. Returns false if there are none now.
    fn read(&mut self, most: usize) -> Result<bool, VhostUserError> {
        let mut bytes = [0u8; HEADER + MAX_PAYLOAD];
        // Words, because control messages are aligned to them.
        let mut control = [0u64; CONTROL.div_ceil(8)];
        let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: most.min(bytes.len()) };
        // SAFETY: all-zero bytes are a valid message. It points to live arrays of the stated lengths, which the kernel
        // fills. The control messages are read by the macros for it, and each descriptor is owned once.
        unsafe {
            let mut message: libc::msghdr = zeroed();
            (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
            (message.msg_control, message.msg_controllen) =
                (control.as_mut_ptr().cast(), size_of_val(&control) as _);
            let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
            let read = check(libc::recvmsg(self.socket.as_raw_fd(), &mut message, flags));
            let mut at = if read.is_ok() { libc::CMSG_FIRSTHDR(&message) } else { null_mut() };
            while let Some(found) = at.as_ref() {
                if (found.cmsg_level, found.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                    let count = (found.cmsg_len - libc::CMSG_LEN(0) as usize) / size_of::<i32>();
                    for number in 0..count {
                        let descriptor = libc::CMSG_DATA(at).cast::<i32>().add(number).read_unaligned();
                        self.descriptors.push(OwnedFd::from_raw_fd(descriptor));
                    }
                }
                at = libc::CMSG_NXTHDR(&message, at);
            }
            let is_cut = message.msg_flags & libc::MSG_CTRUNC != 0 || self.descriptors.len() > MAX_REGIONS;
            match read {
                Ok(_) if is_cut => Err(VhostUserError::Message(0)),
                Ok(0) => Err(VhostUserError::Closed),
                Ok(length) => {
                    self.input.extend_from_slice(bytes.get(..length).unwrap_or_default());
                    Ok(true)
                }
                Err(error) if not_now(&error) => Ok(false),
                Err(error) if error.raw_os_error() == Some(libc::ECONNRESET) => Err(VhostUserError::Closed),
                Err(error) => Err(error.into()),
            }
        }
    }

    /// Sends an answer.
    fn answer(&mut self, request: u32, value: u64) -> Result<(), VhostUserError> {
        let bytes = messages::answer(request, value);
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: the kernel reads a live array.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
        match check(sent) {
            Ok(length) if length == bytes.len() => Ok(()),
            Ok(_) => Err(VhostUserError::NotRead),
            Err(error) if not_now(&error) => Err(VhostUserError::NotRead),
            // The next message says the same.
            Err(_) => Err(VhostUserError::Closed),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.pairs.clear();
        for number in 0..self.queues.len() {
            self.forget_kick(number);
        }
        unwatch(self.pairs.epoll(0), &self.socket);
    }
}

/// Adds a descriptor to a set.
pub(super) fn watch(epoll: &OwnedFd, member: &OwnedFd, events: libc::c_int) -> Result<(), VhostUserError> {
    let mut event = libc::epoll_event { events: events as u32, u64: 0 };
    let (set, member) = (epoll.as_raw_fd(), member.as_raw_fd());
    // SAFETY: the kernel reads a live value.
    check(unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, member, &mut event) } as isize)?;
    Ok(())
}

/// Removes a descriptor from a set, if it is a member.
pub(super) fn unwatch(epoll: &OwnedFd, member: &OwnedFd) {
    // SAFETY: the kernel reads nothing but the arguments.
    unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_DEL, member.as_raw_fd(), null_mut()) };
}

/// A set of descriptors to wait for.
pub(super) fn epoll() -> std::io::Result<OwnedFd> {
    // SAFETY: the call returns a descriptor that nothing else owns.
    unsafe {
        let descriptor = check(libc::epoll_create1(libc::EPOLL_CLOEXEC) as isize)?;
        Ok(OwnedFd::from_raw_fd(descriptor as i32))
    }
}

/// Forgets what a set has reported: entries that report each event once report the next one.
pub(super) fn harvest(epoll: &OwnedFd) {
    let mut events = [MaybeUninit::<libc::epoll_event>::uninit(); 2 + MAX_PAIRS];
    // SAFETY: the kernel writes at most as many events as the array has. The call does not wait.
    unsafe { libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr().cast(), events.len() as i32, 0) };
}
