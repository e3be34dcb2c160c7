//! `vxlan` and `geneve`: a tunnel to a switch on another host.
//!
//! Frames that are longer than the MTU are dropped. The senders of those that must not be fragmented learn the MTU: the port
//! answers them itself. TCP connections are told smaller segment sizes, so that they rarely need that.

use super::error::OverlayError;
use super::format::{ETHERNET, Encapsulation, HEADER, UDP};
use super::inner::{Inner, source_port};
use super::mtu::TunnelMtu;
use super::reader::{OverlayReader, Read, pseudo_sum};
use super::socket::{BATCH, MAX_REPORTED, Outgoing, OverlayEnds, OverlaySocket, is_reported};
use super::too_big::{AnswerLimit, answer};
use crate::batch::{Batch, MAX_FRAME};
use crate::driver::contract::{Driver, DriverError, LinkState, Received, Sent};
use crate::driver::kernel::not_now;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Maximum answers that wait to be received. A sender could otherwise fill the memory.
const MAX_ANSWERS: usize = 64;

/// How a tunnel is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverlaySettings {
    /// How frames are encapsulated.
    pub encapsulation: Encapsulation,
    /// The UDP port of both hosts.
    pub udp_port: u16,
    /// The virtual network: 24 bits.
    pub vni: u32,
    /// The MTU for packets in the tunnel; `None`: the greatest that the path allows.
    pub mtu: Option<u16>,
}

/// A port for a tunnel.
#[derive(Debug)]
pub struct OverlayPort {
    socket: OverlaySocket,
    ends: OverlayEnds,
    settings: OverlaySettings,
    header: [u8; HEADER],
    reader: OverlayReader,
    mtu: TunnelMtu,
    start: Instant,
    limit: AnswerLimit,
    /// Answers to packets that were too long.
    answers: VecDeque<Vec<u8>>,
    /// Changed copies of frames to send: TCP packets that announce a segment size.
    changed: Vec<u8>,
    /// The frames of the last call that were too long.
    skipped: Vec<u32>,
    /// Why the last packets could not be sent to the other host.
    unreachable: Option<io::Error>,
}

/// A frame to send.
#[derive(Debug)]
struct Ready {
    number: u32,
    place: Place,
    source_port: u16,
    congestion: u8,
}

/// Where a frame to send lies.
#[derive(Debug)]
enum Place {
    Batch,
    Changed(Range<usize>),
}

/// What happened to the next frame of a group.
enum Step {
    Sent(usize),
    TooBig,
    NoRoom,
    Down,
}

impl OverlayPort {
    /// Uses a socket that another process opened with [`OverlayTunnel`](super::OverlayTunnel).
    pub fn from_descriptor(descriptor: OwnedFd, settings: OverlaySettings) -> Result<Self, OverlayError> {
        let socket = OverlaySocket::from_descriptor(descriptor)?;
        let (ends, path) = (socket.ends(), socket.path_mtu()?);
        let most = TunnelMtu::new(ends.remote, path, None).get();
        if let Some(wanted) = settings.mtu.filter(|wanted| *wanted > most) {
            return Err(OverlayError::Mtu { wanted, most, remote: ends.remote });
        }
        let OverlaySettings { encapsulation, udp_port, vni, mtu } = settings;
        Ok(Self {
            socket,
            ends,
            settings,
            header: encapsulation.header(vni),
            reader: OverlayReader::new(ends, encapsulation, vni, udp_port),
            mtu: TunnelMtu::new(ends.remote, path, mtu),
            start: Instant::now(),
            limit: AnswerLimit::default(),
            answers: VecDeque::new(),
            changed: Vec::with_capacity(BATCH * MAX_FRAME),
            skipped: Vec::new(),
            unreachable: None,
        })
    }

    /// The MTU for packets in the tunnel.
    pub fn mtu(&self) -> u16 {
        self.mtu.get()
    }

    /// The UDP and tunnel headers for a frame.
    fn headers(&self, frame: &[u8], source_port: u16) -> [u8; UDP + HEADER] {
        let length = UDP + HEADER + frame.len();
        let [s0, s1] = source_port.to_be_bytes();
        let [d0, d1] = self.settings.udp_port.to_be_bytes();
        let [l0, l1] = (length as u16).to_be_bytes();
        let [h0, h1, h2, h3, h4, h5, h6, h7] = self.header;
        let mut headers = [s0, s1, d0, d1, l0, l1, 0, 0, h0, h1, h2, h3, h4, h5, h6, h7];
        // Over IPv4 it is not needed, and RFC 7348 says that it should be 0.
        if self.ends.remote.is_ipv6() {
            let sum =
                pseudo_sum(self.ends.local, self.ends.remote, length).bytes(&headers).bytes(frame).finish();
            [headers[6], headers[7]] = if sum == 0 { 0xffff } else { sum }.to_be_bytes();
        }
        headers
    }

    /// Answers a frame that is longer than the MTU, if it may be answered.
    fn refuse(&mut self, frame: &[u8], now: Duration) {
        if self.answers.len() < MAX_ANSWERS
            && let Some(answer) = answer(frame, self.mtu.get())
            && self.limit.take(now)
        {
            self.answers.push_back(answer);
        }
    }

    /// Sends the first of these packets. An error that says how long they may be changes the MTU.
    fn step(&mut self, packets: &[Outgoing], now: Duration) -> Result<Step, DriverError> {
        let mut error = None;
        // An error that concerns these packets comes again.
        for _ in 0..MAX_REPORTED {
            match self.socket.send(packets) {
                Ok(sent) => return Ok(Step::Sent(sent)),
                Err(found) if is_reported(&found) => error = Some(found),
                Err(found) => {
                    error = Some(found);
                    break;
                }
            }
        }
        let Some(error) = error else { return Ok(Step::NoRoom) };
        match error.raw_os_error() {
            _ if not_now(&error) => Ok(Step::NoRoom),
            Some(libc::EMSGSIZE) => {
                let Some(first) = packets.first() else { return Ok(Step::NoRoom) };
                let told = self.socket.ask_for_mtu(first)?;
                self.mtu.refuse(first.frame.len(), told, now);
                Ok(Step::TooBig)
            }
            // No route, no neighbour, an interface that is down or lost its address, or a firewall: all may change.
            Some(
                libc::ENETUNREACH
                | libc::EHOSTUNREACH
                | libc::EHOSTDOWN
                | libc::ENONET
                | libc::ENETDOWN
                | libc::ENODEV
                | libc::ENXIO
                | libc::EADDRNOTAVAIL
                | libc::ECONNREFUSED
                | libc::ENOPROTOOPT
                | libc::EPROTO
                | libc::EINVAL
                | libc::EPERM
                | libc::EACCES,
            ) => {
                self.unreachable = Some(error);
                Ok(Step::Down)
            }
            _ => Err(error.into()),
        }
    }

    /// Sends a group of frames in order. Returns false when the others of the batch must wait.
    fn send_group(
        &mut self,
        batch: &Batch,
        group: &[Ready],
        sent: &mut Sent,
        now: Duration,
    ) -> Result<bool, DriverError> {
        let changed = std::mem::take(&mut self.changed);
        let packet = |ready: &Ready| {
            let frame = match &ready.place {
                Place::Batch => batch.frame(ready.number as usize),
                Place::Changed(range) => changed.get(range.clone()),
            };
            let headers = frame.map(|frame| self.headers(frame, ready.source_port));
            Some(Outgoing { headers: headers?, frame: frame?, congestion: ready.congestion })
        };
        let packets: Vec<Outgoing> = group.iter().filter_map(packet).collect();
        let mut left = packets.as_slice();
        let mut result = Ok(true);
        while let Some(first) = left.first() {
            let done = match self.step(left, now) {
                Ok(Step::Sent(count)) => {
                    let (gone, _) = left.split_at(count.min(left.len()));
                    self.unreachable = None;
                    sent.frames += gone.len() as u64;
                    sent.bytes += gone.iter().map(|packet| packet.frame.len() as u64).sum::<u64>();
                    gone.len()
                }
                Ok(Step::TooBig) => {
                    sent.too_big += 1;
                    let at = group.len().saturating_sub(left.len());
                    self.skipped.extend(group.get(at).map(|ready| ready.number));
                    self.refuse(first.frame, now);
                    1
                }
                Ok(Step::NoRoom) => 0,
                Ok(Step::Down) => {
                    sent.down = true;
                    0
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            };
            if done == 0 {
                result = Ok(false);
                break;
            }
            left = left.get(done..).unwrap_or_default();
        }
        self.changed = changed;
        self.changed.clear();
        result
    }
}

impl Driver for OverlayPort {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let mut received = Received::default();
        let mtu = self.mtu.get();
        while batch.room() > 0
            && let Some(answer) = self.answers.pop_front()
        {
            batch.push(&answer);
        }
        let Self { socket, reader, .. } = self;
        // Refused packets count too, so that a flood of them cannot make a visit endless.
        let (mut left, mut is_empty) = (batch.room(), false);
        loop {
            while !reader.is_empty() {
                let Some(length) = batch.space().and_then(|space| reader.take(space)) else {
                    return Ok(received);
                };
                batch.commit(length);
            }
            let most = left.min(batch.room());
            if most == 0 {
                return Ok(received);
            }
            if socket.received() == 0 {
                let wanted = most.min(BATCH);
                let count = if is_empty { 0 } else { socket.fill(wanted)? };
                if count == 0 {
                    return Ok(received);
                }
                is_empty = count < wanted;
            }
            left -= 1;
            let Some((packet, class)) = socket.next() else {
                received.long += 1;
                continue;
            };
            match reader.read(packet, class, mtu) {
                Ok(Read::Frame(range)) => {
                    batch.push(packet.get(range).unwrap_or_default());
                }
                Ok(Read::Segments) => {}
                Ok(Read::Long) => received.long += 1,
                Err(reason) => received.refused.count(reason),
            }
        }
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        let mut sent = Sent::default();
        let now = self.start.elapsed();
        self.mtu.expire(now);
        self.skipped.clear();
        let mut group = Vec::with_capacity(BATCH.min(frames.len()));
        for numbers in frames.chunks(BATCH) {
            let mtu = self.mtu.get();
            for number in numbers {
                let Some(frame) = batch.frame(*number as usize) else { continue };
                if frame.len() > usize::from(mtu) + ETHERNET {
                    sent.too_big += 1;
                    self.skipped.push(*number);
                    self.refuse(frame, now);
                    continue;
                }
                let inner = Inner::of(frame);
                let congestion = inner.map_or(0, |inner| inner.congestion(frame));
                let announced = inner.and_then(|inner| Some((inner, inner.announced_size(frame)?.1)));
                let place = match announced {
                    None => Place::Batch,
                    Some((inner, size)) => {
                        let most = inner.segment_size(mtu);
                        self.reader.set_segment_size(inner.reverse_hash(frame), size.min(most));
                        if size <= most {
                            Place::Batch
                        } else {
                            let start = self.changed.len();
                            self.changed.extend_from_slice(frame);
                            inner.lower_segment_size(self.changed.get_mut(start..).unwrap_or_default(), mtu);
                            Place::Changed(start..start + frame.len())
                        }
                    }
                };
                let source_port = source_port(frame, inner.as_ref());
                group.push(Ready { number: *number, place, source_port, congestion });
            }
            let goes_on = self.send_group(batch, &group, &mut sent, now)?;
            group.clear();
            if !goes_on {
                break;
            }
        }
        Ok(sent)
    }

    fn skipped(&self) -> Vec<u32> {
        self.skipped.clone()
    }

    fn link_state(&self) -> Option<LinkState> {
        Some(match &self.unreachable {
            Some(error) => LinkState::Waiting(format!("{} can't be reached: {error}", self.ends.remote)),
            None => LinkState::Up,
        })
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        self.socket.clear_error();
        let has_none = self.answers.is_empty() && self.reader.is_empty() && self.socket.received() == 0;
        Ok(has_none && !self.socket.is_readable())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn take_missed(&mut self) -> u64 {
        self.socket.take_drops()
    }
}
