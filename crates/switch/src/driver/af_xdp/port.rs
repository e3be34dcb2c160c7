//! A port whose other end is a network device, through XDP sockets.
//!
//! The port takes the frames of the device's receive queues: the host does not see them. Several drivers may have a part of the
//! queues each. A driver receives from all of its queues, and sends through the first one.

use super::checksum;
use super::device::Device;
use super::error::XdpError;
use super::limits::{MAX_UNTAGGED, fits};
use super::program::SocketMap;
use super::socket::{self, Losses, Rings};
use super::umem::Umem;
use crate::batch::Batch;
use crate::device::{PacketSocket, PacketSocketSettings};
use crate::driver::af_packet::link_state;
use crate::driver::contract::{Driver, DriverError, LinkState, Received, Sent};
use crate::driver::kernel::{check, not_now};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How a packet socket watches the device: it makes it promiscuous, and reports when it is down or removed. It receives nothing.
const WATCH: PacketSocketSettings =
    PacketSocketSettings { promiscuous: true, outbound: false, snap: 0, receive: 0, gso: false, fits: false };

/// The place of the first socket among the descriptors, behind those of the watch, the memory and the link.
const FIRST_SOCKET: usize = 3;

/// The kernel frees what a device had a moment after its last user closed it: how often, and at which distance, to try again.
const TRIES: usize = 50;
const TRY_INTERVAL: Duration = Duration::from_millis(2);

/// The fewest frames that the kernel takes from the send ring in one call, if there are as many.
const SEND_BATCH: usize = 32;

/// While somebody watches a socket, the kernel looks after each sent frame whether to tell them that there is room. From this number
/// of frames on, it is cheaper not to watch it until the next sleep.
const UNWATCHED_FRAMES: usize = 16;

/// A device that is used through XDP sockets, or some of its queues.
#[derive(Debug)]
pub struct AfXdp {
    device: Arc<Attached>,
    queues: Vec<Queue>,
    /// The queue to look at first.
    first: usize,
    /// Buffers to send from that are free.
    free: Vec<u64>,
    /// Buffers to send from in all.
    send_buffers: usize,
    /// What becomes readable when frames arrive or the device goes down.
    epoll: OwnedFd,
    /// Whether the socket that sends is a member of it.
    is_watched: bool,
    /// Whether it always has to be.
    stays_watched: bool,
    /// The device's driver reads and writes the buffers itself.
    is_zero_copy: bool,
    /// Frames wait in the send ring for a system call.
    is_late: bool,
    /// The frames of the last call that were too long.
    skipped: Vec<u32>,
}

/// What all drivers of a device have in common.
#[derive(Debug)]
struct Attached {
    watch: PacketSocket,
    /// Keeps the program attached, also to a device that moves to another network namespace. `None` if the device is gone.
    link: Mutex<Option<OwnedFd>>,
    /// The device was found to be removed.
    is_gone: AtomicBool,
    /// Its MTU when it was last looked at; 0 if it is gone. The kernel drops longer frames without a word.
    mtu: AtomicUsize,
}

impl Attached {
    fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    /// Looks at the MTU.
    fn look_at_mtu(&self) -> usize {
        let mtu = self.watch.mtu();
        self.mtu.store(mtu, Ordering::Relaxed);
        mtu
    }

    /// Finds out whether the device was removed, or moved to another network namespace. The program would take the frames of a
    /// device that moved, for sockets that the kernel has unbound from it, and allow no other program: so it is detached.
    fn look(&self) -> bool {
        if self.is_gone() {
            return true;
        }
        let is_gone = self.watch.is_gone();
        if is_gone {
            drop(self.link.lock().unwrap_or_else(PoisonError::into_inner).take());
            self.is_gone.store(true, Ordering::Relaxed);
        }
        is_gone
    }

    /// Returns an error if the device was removed: the sockets are then useless, whereas a device that is down may come up
    /// again.
    fn check(&self) -> Result<(), DriverError> {
        match self.look() {
            true => Err(io::Error::from_raw_os_error(libc::ENODEV).into()),
            false => Ok(()),
        }
    }
}

/// A receive queue, with its socket.
#[derive(Debug)]
struct Queue {
    socket: OwnedFd,
    rings: Rings,
    umem: Umem,
    /// What was reported of the losses.
    reported: Losses,
}

/// Tries again for a moment while something is busy.
fn when_free<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..TRIES {
        match attempt() {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => thread::sleep(TRY_INTERVAL),
            result => return result,
        }
    }
    attempt()
}

impl AfXdp {
    /// Opens a device in promiscuous mode. `queues`: how many of its receive queues to use, from the first one on; `None`: all.
    pub fn open(device: &str, queues: Option<u32>) -> Result<Self, XdpError> {
        Self::from_descriptors(Self::open_descriptors(device, queues, 1)?)
    }

    /// The part of [`open`](Self::open) that needs privileges, for up to this number of drivers. The program is attached, and
    /// takes frames, as long as the descriptors are open; frames that arrive before the other part are lost, and counted as missed.
    pub fn open_descriptors(
        device: &str,
        queues: Option<u32>,
        drivers: usize,
    ) -> Result<Vec<OwnedFd>, XdpError> {
        let (descriptors, map) = Self::open_parts(device, queues, drivers, true)?;
        for (queue, socket) in (0..).zip(&descriptors[FIRST_SOCKET..]) {
            map.insert(queue, socket).map_err(XdpError::Socket)?;
        }
        Ok(descriptors)
    }

    /// The descriptors, and the map from queues to sockets, which has no sockets yet: all frames go on to the host.
    pub(super) fn open_parts(
        device: &str,
        queues: Option<u32>,
        drivers: usize,
        promiscuous: bool,
    ) -> Result<(Vec<OwnedFd>, SocketMap), XdpError> {
        let settings = PacketSocketSettings { promiscuous, ..WATCH };
        let watch = PacketSocket::open_descriptor(device, settings).map_err(XdpError::Device)?;
        let Device { index, queues, senders } = Device::find(&watch, device, queues)?;
        let senders = drivers.clamp(1, queues.min(senders) as usize);
        let memory = Umem::create(queues as usize, senders).map_err(XdpError::Memory)?;
        let map = SocketMap::create(queues).map_err(XdpError::Program)?;
        // Some drivers can do without copies only if a program is attached.
        let link = when_free(|| map.attach(index)).map_err(XdpError::Program)?;
        let mut descriptors = vec![watch, memory, link];
        for queue in 0..queues {
            let umem = Umem::map(&descriptors[1], queue as usize, senders).map_err(XdpError::Memory)?;
            let socket = when_free(|| socket::open(index, queue, &umem)).map_err(XdpError::Socket)?;
            descriptors.push(socket);
        }
        Ok((descriptors, map))
    }

    /// The other part, without privileges: uses what another process opened, and no process has used yet.
    pub fn from_descriptors(descriptors: Vec<OwnedFd>) -> Result<Self, XdpError> {
        Self::divide_descriptors(descriptors, 1)?.pop().ok_or(XdpError::Descriptors)
    }

    /// The same with several drivers, at most as many as given, among which the queues are divided.
    pub fn divide_descriptors(descriptors: Vec<OwnedFd>, drivers: usize) -> Result<Vec<Self>, XdpError> {
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or(XdpError::Descriptors);
        let (watch, memory, link) = (next()?, next()?, next()?);
        let sockets: Vec<OwnedFd> = descriptors.collect();
        let senders = Umem::senders(&memory, sockets.len()).ok_or(XdpError::Descriptors)?;
        let watch = PacketSocket::from_descriptor(watch, WATCH).map_err(XdpError::Device)?;
        watch.watch().map_err(XdpError::Device)?;
        let (is_gone, mtu) = (AtomicBool::new(false), AtomicUsize::new(watch.mtu()));
        let device = Arc::new(Attached { watch, link: Mutex::new(Some(link)), is_gone, mtu });
        // The first queue of each driver is one that sends.
        let count = drivers.clamp(1, senders);
        let mut parts: Vec<Vec<Queue>> = (0..count).map(|_| Vec::new()).collect();
        for (number, socket) in sockets.into_iter().enumerate() {
            let queue = Queue::new(socket, &memory, number, senders)?;
            if let Some(part) = parts.get_mut(number % count) {
                part.push(queue);
            }
        }
        parts.into_iter().map(|queues| Self::new(device.clone(), queues)).collect()
    }

    fn new(device: Arc<Attached>, queues: Vec<Queue>) -> Result<Self, XdpError> {
        let epoll = epoll(&device.watch, &queues).map_err(XdpError::Socket)?;
        let first = queues.first().ok_or(XdpError::Descriptors)?;
        let free: Vec<u64> = first.umem.send_buffers().rev().collect();
        Ok(Self {
            is_zero_copy: socket::is_zero_copy(&first.socket),
            device,
            queues,
            first: 0,
            send_buffers: free.len(),
            free,
            epoll,
            is_watched: true,
            stays_watched: false,
            is_late: false,
            skipped: Vec::new(),
        })
    }

    /// Lets the descriptor report frames also after others were sent, without [`prepare_sleep`](Driver::prepare_sleep).
    pub(super) fn keep_watching(&mut self) {
        self.stays_watched = true;
    }

    /// Adds the socket that sends to what the descriptor reports, or removes it.
    fn watch_sender(&mut self, is_watched: bool) -> io::Result<()> {
        if let Some(queue) = self.queues.first().filter(|_| self.is_watched != is_watched) {
            let operation = if is_watched { libc::EPOLL_CTL_ADD } else { libc::EPOLL_CTL_DEL };
            change_member(&self.epoll, operation, queue.socket.as_fd(), libc::EPOLLIN)?;
            self.is_watched = is_watched;
        }
        Ok(())
    }

    /// Looks at the MTU of the device, which may have changed: frames that are longer than it allows are dropped from now on.
    pub(super) fn look_at_mtu(&self) -> usize {
        self.device.look_at_mtu()
    }

    /// Whether the device was removed, or moved to another network namespace.
    pub(super) fn is_gone(&self) -> bool {
        self.device.look()
    }

    /// Whether the device's driver reads and writes the buffers itself. Otherwise the kernel copies frames.
    pub fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }

    /// The packet socket that watches the device.
    pub(super) fn watch(&self) -> &PacketSocket {
        &self.device.watch
    }

    /// The sockets of the queues, in order.
    pub(super) fn sockets(&self) -> impl Iterator<Item = &OwnedFd> {
        self.queues.iter().map(|queue| &queue.socket)
    }

    /// Takes the last frames back, at most `most`, if they wait in the send ring for a system call. Returns their number.
    pub(super) fn withdraw_late(&mut self, most: usize) -> Result<usize, XdpError> {
        let Some(Queue { rings: Rings { send: Some(send), .. }, .. }) = self.queues.first_mut() else {
            return Ok(0);
        };
        // A driver without copies may be reading the ring.
        if !self.is_late || self.is_zero_copy {
            return Ok(0);
        }
        let pending = send.pending()? as usize;
        for _ in 0..most.min(pending) {
            let [offset, _] = send.withdraw();
            self.free.push(offset);
        }
        send.submit();
        self.is_late = pending > most;
        Ok(most.min(pending))
    }

    /// Takes the buffers back that were sent.
    fn reclaim(&mut self) -> Result<(), XdpError> {
        let Self { queues, free, .. } = self;
        let Some(Queue { rings: Rings { completion, .. }, umem, .. }) = queues.first_mut() else {
            return Ok(());
        };
        let waiting = completion.waiting()?;
        for _ in 0..waiting {
            let [offset] = completion.take();
            // The kernel returns what it was given; anything else is not used again.
            free.extend(umem.send_buffer(offset).filter(|_| free.len() < free.capacity()));
        }
        if waiting > 0 {
            completion.release();
        }
        Ok(())
    }

    /// Has the kernel send what is in the send ring. Returns how many of the last `frames` ones could not be sent because the
    /// device is down: these are taken back.
    fn flush(&mut self, frames: usize) -> Result<Option<usize>, DriverError> {
        let Some(Queue { socket, rings: Rings { send: Some(send), .. }, .. }) = self.queues.first_mut()
        else {
            return Ok(None);
        };
        let mut pending = send.pending()?;
        for _ in 0..=frames / SEND_BATCH + 1 {
            if pending == 0 || !send.needs_wakeup() {
                break;
            }
            let result = socket::wake_sender(socket);
            let left = send.pending()?;
            match result {
                Ok(()) => {}
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENETDOWN | libc::ENXIO)) => {
                    let mut taken_back = 0;
                    // A driver without copies may be reading the ring: then the frames stay, and leave when the device comes up.
                    while !self.is_zero_copy && taken_back < frames.min(left as usize) {
                        let [offset, _] = send.withdraw();
                        self.free.push(offset);
                        taken_back += 1;
                    }
                    send.submit();
                    self.device.watch.note_down();
                    self.device.check()?;
                    return Ok(Some(taken_back));
                }
                Err(error) if not_now(&error) || error.raw_os_error() == Some(libc::EBUSY) => {
                    if left == pending {
                        break;
                    }
                }
                Err(error) => return Err(error.into()),
            }
            pending = left;
        }
        self.is_late = send.pending()? > 0 && send.needs_wakeup();
        Ok(None)
    }
}

impl Queue {
    fn new(socket: OwnedFd, memory: &OwnedFd, number: usize, senders: usize) -> Result<Self, XdpError> {
        let umem = Umem::map(memory, number, senders).map_err(XdpError::Memory)?;
        let mut rings = Rings::map(&socket, umem.send_buffers().next().is_some())?;
        Umem::receive_buffers().for_each(|offset| rings.fill.add([offset]));
        rings.fill.submit();
        Ok(Self { socket, rings, umem, reported: Losses::default() })
    }

    /// Adds received frames to a batch.
    fn receive(
        &mut self,
        batch: &mut Batch,
        received: &mut Received,
        completes: bool,
    ) -> Result<(), XdpError> {
        let Self { rings: Rings { fill, received: ring, .. }, umem, .. } = self;
        let most = ring.waiting()?.min(batch.room() as u32).min(fill.room()?);
        for _ in 0..most {
            let [offset, word] = ring.take();
            let length = length(word);
            let buffer = Umem::receive_buffer(offset);
            let frame = batch.space().and_then(|space| space.get_mut(..length)).filter(|_| buffer.is_some());
            let is_copied = frame.is_some_and(|frame| {
                let is_copied = umem.read(offset, frame);
                if is_copied && completes {
                    checksum::complete(frame);
                }
                is_copied
            });
            if is_copied {
                batch.commit(length);
            }
            received.faulty += u64::from(!is_copied);
            if let Some(buffer) = buffer {
                fill.add([buffer]);
            }
        }
        if most > 0 {
            ring.release();
            fill.submit();
        }
        if fill.needs_wakeup() {
            socket::wake_receiver(&self.socket);
        }
        Ok(())
    }
}

impl Driver for AfXdp {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        if self.device.is_gone() {
            self.device.check()?;
        }
        if self.is_late {
            self.flush(0)?;
        }
        let mut received = Received::default();
        let (count, first) = (self.queues.len(), self.first);
        // No queue is always the last one.
        self.first = if first + 1 < count { first + 1 } else { 0 };
        let (before, after) = self.queues.split_at_mut(first);
        for queue in after.iter_mut().chain(before) {
            queue.receive(batch, &mut received, !self.is_zero_copy)?;
        }
        Ok(received)
    }

    fn is_ready(&mut self) -> bool {
        let mut queues = self.queues.iter();
        self.device.is_gone()
            || self.is_late
            || queues.any(|queue| {
                !matches!(queue.rings.received.waiting(), Ok(0)) || queue.rings.fill.needs_wakeup()
            })
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        self.reclaim()?;
        if !self.device.watch.can_send() {
            self.skipped.clear();
            self.device.check()?;
            return Ok(Sent { down: true, ..Sent::default() });
        }
        if frames.len() >= UNWATCHED_FRAMES && !self.stays_watched {
            self.watch_sender(false)?;
        }
        let mut sent = Sent::default();
        let mut added = 0;
        let Self { queues, free, skipped, device, .. } = self;
        skipped.clear();
        let mtu = device.mtu.load(Ordering::Relaxed);
        let Some(Queue { rings: Rings { send: Some(send), .. }, umem, .. }) = queues.first_mut() else {
            return Ok(sent);
        };
        let mut room = send.room()?;
        for number in frames {
            let Some(frame) = batch.frame(*number as usize) else { continue };
            let Some(buffer) = free.pop_if(|_| room > 0) else { break };
            if !fits(frame, mtu) || !umem.write(buffer, frame) {
                free.push(buffer);
                sent.too_big += 1;
                skipped.push(*number);
                continue;
            }
            send.add([buffer, word(frame.len())]);
            added += 1;
            room -= 1;
            sent.frames += 1;
            sent.bytes += frame.len() as u64;
        }
        if added > 0 {
            send.submit();
        }
        if let Some(taken_back) = self.flush(added)? {
            sent.down = true;
            let kept = (sent.frames as usize).saturating_sub(taken_back);
            let passed = frames.iter().filter(|number| !self.skipped.contains(number));
            let lost = passed.filter_map(|number| batch.frame(*number as usize));
            let lost = lost.take(sent.frames as usize).skip(kept);
            sent.bytes -= lost.map(|frame| frame.len() as u64).sum::<u64>().min(sent.bytes);
            sent.frames = kept as u64;
        }
        sent.is_crowded = self.free.len() < self.send_buffers / 4;
        Ok(sent)
    }

    fn skipped(&self) -> Vec<u32> {
        self.skipped.clone()
    }

    fn is_crowded(&mut self) -> bool {
        // An impossible index shows itself when frames are sent.
        let _ = self.reclaim();
        self.free.len() < self.send_buffers / 4
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        // A device that went down polls as ready until its error is read, which would keep the runner awake. It may
        // come up again.
        // Another driver may have read it.
        if self.device.watch.take_error().is_some() || self.device.is_gone() {
            self.device.check()?;
        }
        self.device.watch.note_sleep();
        if self.is_late {
            self.flush(0)?;
        }
        if self.watch_sender(true).is_err() {
            // The kernel has no memory for the watch, or allows no more of them: without it, the port is polled.
            return Ok(false);
        }
        for queue in &self.queues {
            if queue.rings.received.waiting()? > 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.epoll.as_fd())
    }

    fn queues(&self) -> u32 {
        self.queues.len() as u32
    }

    fn link_state(&self) -> Option<LinkState> {
        Some(link_state(&self.device.watch, MAX_UNTAGGED))
    }

    fn take_missed(&mut self) -> u64 {
        // Also checked here, so that a runner that never sleeps notices it.
        self.device.look();
        self.device.look_at_mtu();
        let losses = self.queues.iter_mut().map(|queue| {
            let missed = socket::losses(&queue.socket).missed;
            let news = missed.saturating_sub(queue.reported.missed);
            queue.reported.missed += news;
            news
        });
        losses.sum()
    }

    fn take_lost(&mut self) -> u64 {
        let losses = self.queues.iter_mut().map(|queue| {
            let refused = socket::losses(&queue.socket).refused;
            let news = refused.saturating_sub(queue.reported.refused);
            queue.reported.refused += news;
            news
        });
        losses.sum()
    }
}

impl From<XdpError> for DriverError {
    fn from(error: XdpError) -> Self {
        Self::System(error.into())
    }
}

/// The length in the second word of an entry.
#[inline(always)]
fn length(word: u64) -> usize {
    let [a, b, c, d, ..] = word.to_ne_bytes();
    u32::from_ne_bytes([a, b, c, d]) as usize
}

/// The second word of an entry: a length, and no options.
#[inline(always)]
fn word(length: usize) -> u64 {
    let [a, b, c, d] = (length as u32).to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0])
}

/// A set of descriptors with those that wake the port.
fn epoll(watch: &PacketSocket, queues: &[Queue]) -> io::Result<OwnedFd> {
    // SAFETY: the call returns a descriptor that nothing else owns.
    let set =
        unsafe { OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC) as isize)? as i32) };
    let sockets = queues.iter().map(|queue| (queue.socket.as_fd(), libc::EPOLLIN));
    // Errors are always reported.
    for (member, events) in sockets.chain([(watch.as_fd(), 0)]) {
        change_member(&set, libc::EPOLL_CTL_ADD, member, events)?;
    }
    Ok(set)
}

/// Adds a descriptor to a set, or removes it.
fn change_member(set: &OwnedFd, operation: i32, member: BorrowedFd<'_>, events: i32) -> io::Result<()> {
    let mut event = libc::epoll_event { events: events as u32, u64: 0 };
    // SAFETY: the kernel reads a live value.
    check(unsafe { libc::epoll_ctl(set.as_raw_fd(), operation, member.as_raw_fd(), &mut event) } as isize)
        .map(drop)
}
