//! A connection: the messages until both sides share their rings, and afterwards.

use super::bell;
use super::error::MemifError;
use super::memory::{Discarder, MAX_BYTES, MAX_REGIONS, Region};
use super::ring::{self, Buffers, MAX_LOG2_SIZE, Place, Reader, STRIDE, Writer};
use super::wire::{self, AddRing, ETHERNET, Hello, Init, Message, SECRET, VERSION};
use crate::driver::kernel::check;
use std::io;
use std::mem::take;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Slots of the rings that a client makes, as a power of two.
const LOG2_SIZE: u8 = 10;
/// Maximum rings in each direction of a port. Each has 2 MB of buffers and a descriptor.
pub(super) const MAX_QUEUES: u16 = 16;
/// Messages that one look at a connection reads. A peer could otherwise keep the switch busy.
const MESSAGES: usize = 16;

/// What both sides must agree on, and how long a peer may take.
#[derive(Clone, Debug)]
pub struct MemifSettings {
    /// The number of the interface.
    pub id: u32,
    /// What a client must know: at most 23 bytes. The protocol ends it with a zero byte.
    pub secret: Vec<u8>,
    /// How long a peer may take until it is connected.
    pub time_limit: Duration,
    /// Maximum number of rings in each direction: 1 to 16. A peer may have fewer.
    pub queues: u16,
}

impl Default for MemifSettings {
    /// Interface 0 without a secret, 5 seconds, and a ring in each direction.
    fn default() -> Self {
        Self { id: 0, secret: Vec::new(), time_limit: Duration::from_secs(5), queues: 1 }
    }
}

impl MemifSettings {
    fn secret(&self) -> [u8; SECRET] {
        let mut field = [0; SECRET];
        field.iter_mut().take(SECRET - 1).zip(&self.secret).for_each(|(to, from)| *to = *from);
        field
    }
}

/// What a connected peer shares.
#[derive(Debug)]
pub(super) struct Rings {
    pub(super) regions: Vec<Region>,
    /// The rings to this side, with the events that wake it.
    pub(super) incoming: Vec<(Reader, OwnedFd)>,
    /// The rings to the peer, with the events that wake it.
    pub(super) outgoing: Vec<(Writer, OwnedFd)>,
}

/// A ring that was described, with its event.
type Described = (Place, OwnedFd);

/// A connection whose peer has not shared its rings yet.
#[derive(Debug)]
pub(super) struct Handshake {
    pub(super) socket: OwnedFd,
    is_server: bool,
    /// The first message of the peer came.
    has_begun: bool,
    regions: Vec<Region>,
    /// The rings by their numbers: as many places as were offered.
    from_client: Vec<Option<Described>>,
    to_client: Vec<Option<Described>>,
    discarder: Discarder,
    end: Instant,
}

impl Handshake {
    /// Greets a client.
    pub(super) fn server(
        socket: OwnedFd,
        settings: &MemifSettings,
        discarder: &Discarder,
    ) -> Result<Self, MemifError> {
        let hello = Hello {
            min_version: VERSION,
            max_version: VERSION,
            max_region: MAX_REGIONS as u16 - 1,
            max_rings: [settings.queues - 1; 2],
            max_log2_size: MAX_LOG2_SIZE,
        };
        wire::send(&socket, &Message::Hello(hello), None)?;
        Ok(Self::new(socket, true, settings, discarder.clone()))
    }

    /// Waits for the greeting of a server.
    pub(super) fn client(socket: OwnedFd, settings: &MemifSettings) -> Self {
        Self::new(socket, false, settings, Discarder::default())
    }

    fn new(socket: OwnedFd, is_server: bool, settings: &MemifSettings, discarder: Discarder) -> Self {
        Self {
            socket,
            is_server,
            has_begun: false,
            regions: Vec::new(),
            from_client: none(settings.queues),
            to_client: none(settings.queues),
            discarder,
            end: Instant::now() + settings.time_limit,
        }
    }

    /// The time that the peer has left.
    pub(super) fn time_left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Reads and answers the messages that came. Returns the rings after the last one.
    pub(super) fn advance(&mut self, settings: &MemifSettings) -> Result<Option<Rings>, MemifError> {
        self.read(settings).map_err(|error| self.explained(error))
    }

    fn read(&mut self, settings: &MemifSettings) -> Result<Option<Rings>, MemifError> {
        for _ in 0..MESSAGES {
            // A server takes descriptors from clients that know the secret.
            let discarder = Some(&self.discarder).filter(|_| self.is_server && self.has_begun);
            let Some((message, descriptor)) = wire::receive(&self.socket, discarder)? else { break };
            let rings = match self.is_server {
                true => self.answer_client(message, descriptor, settings)?,
                false => self.answer_server(message, settings)?,
            };
            if rings.is_some() {
                return Ok(rings);
            }
        }
        Ok(None)
    }

    /// Why a peer left. One that left before it had read all messages may have said why. Some servers offer more rings than they take, and
    /// leave when they are given them.
    fn explained(&self, error: MemifError) -> MemifError {
        let is_broken = match &error {
            MemifError::System(error) => {
                matches!(error.raw_os_error(), Some(libc::EPIPE | libc::ECONNRESET))
            }
            error => matches!(error, MemifError::Closed),
        };
        // The first look may report the failure once more.
        let look = |_| hear(&self.socket).err().filter(|last| matches!(last, MemifError::Disconnected(_)));
        let error = match is_broken {
            true => (0..2).find_map(look).unwrap_or(MemifError::Closed),
            false => error,
        };
        let described = |rings: &[Option<Described>]| rings.iter().flatten().count();
        let count = self.from_client.len().max(self.to_client.len());
        if self.is_server || described(&self.from_client).max(described(&self.to_client)) <= 1 {
            return error;
        }
        match error {
            MemifError::Closed => MemifError::Rings { count, text: None },
            MemifError::Disconnected(text) if text.contains("ring") => {
                MemifError::Rings { count, text: Some(text) }
            }
            error => error,
        }
    }

    fn answer_client(
        &mut self,
        message: Message,
        descriptor: Option<OwnedFd>,
        settings: &MemifSettings,
    ) -> Result<Option<Rings>, MemifError> {
        match (message, descriptor) {
            (Message::Init(init), None) if !self.has_begun => {
                accept_init(&init, settings)?;
                self.has_begun = true;
            }
            (Message::AddRegion { index, size }, descriptor) if self.has_begun => {
                self.add_region(index, size, descriptor.ok_or(MemifError::NoDescriptor)?)?;
            }
            (Message::AddRing(ring), descriptor) if self.has_begun => {
                self.add_ring(&ring, descriptor.ok_or(MemifError::NoDescriptor)?)?;
            }
            (Message::Connect, None) if self.has_begun => {
                let (from_client, to_client) = (take(&mut self.from_client), take(&mut self.to_client));
                let rings = self.open(from_client, to_client)?;
                wire::send(&self.socket, &Message::Connected, None)?;
                return Ok(Some(rings));
            }
            (Message::Disconnect(text), None) => return Err(MemifError::Disconnected(text)),
            (_, descriptor) => {
                descriptor.into_iter().for_each(|descriptor| self.discarder.discard(descriptor));
                return Err(MemifError::Message);
            }
        }
        wire::send(&self.socket, &Message::Ack, None)?;
        Ok(None)
    }

    fn add_region(&mut self, index: u16, size: u64, file: OwnedFd) -> Result<(), MemifError> {
        let mapped: u64 = self.regions.iter().map(|region| region.size() as u64).sum();
        let refused = if usize::from(index) != self.regions.len() {
            Some(MemifError::Region(index))
        } else if self.regions.len() >= MAX_REGIONS || size > MAX_BYTES - mapped {
            Some(MemifError::TooMuchMemory)
        } else {
            None
        };
        if let Some(error) = refused {
            self.discarder.discard(file);
            return Err(error);
        }
        self.regions.push(Region::map(file, size, &self.discarder)?);
        Ok(())
    }

    fn add_ring(&mut self, ring: &AddRing, event: OwnedFd) -> Result<(), MemifError> {
        // This also finds out whether it is an eventfd. It wakes the client, or this side, once more than needed.
        if let Err(error) = bell::ring(&event) {
            self.discarder.discard(event);
            return Err(match error.raw_os_error() {
                Some(libc::EINVAL) => MemifError::NotAnEvent,
                _ => error.into(),
            });
        }
        if ring.private_header != 0 {
            return Err(MemifError::Message);
        }
        let AddRing { region, offset, log2_size, .. } = *ring;
        let slots = if ring.from_client { &mut self.from_client } else { &mut self.to_client };
        match slots.get_mut(usize::from(ring.index)) {
            Some(slot) if slot.is_none() => {
                *slot = Some((Place { region, offset, log2_size, buffers: Buffers::Peers }, event));
                Ok(())
            }
            _ => Err(MemifError::Ring(ring.index)),
        }
    }

    fn answer_server(
        &mut self,
        message: Message,
        settings: &MemifSettings,
    ) -> Result<Option<Rings>, MemifError> {
        match message {
            Message::Hello(hello) if !self.has_begun => {
                if hello.min_version > VERSION || hello.max_version < VERSION {
                    return Err(MemifError::Version(hello.min_version, hello.max_version));
                }
                self.has_begun = true;
                let offered = |most: u16| settings.queues.min(most.saturating_add(1));
                let [to_client, from_client] = hello.max_rings.map(offered);
                self.describe(hello.max_log2_size.min(LOG2_SIZE), [from_client, to_client], settings)?;
                Ok(None)
            }
            Message::Ack if self.has_begun => Ok(None),
            Message::Connected if self.has_begun => {
                let (from_client, to_client) = (take(&mut self.from_client), take(&mut self.to_client));
                self.open(to_client, from_client).map(Some)
            }
            Message::Disconnect(text) => Err(MemifError::Disconnected(text)),
            _ => Err(MemifError::Message),
        }
    }

    /// Makes the region of a client, and describes it to the server. `counts`: how many rings there are from the client, and to it.
    fn describe(
        &mut self,
        log2_size: u8,
        counts: [u16; 2],
        settings: &MemifSettings,
    ) -> Result<(), MemifError> {
        self.from_client.truncate(counts[0].into());
        self.to_client.truncate(counts[1].into());
        let ring = ring::bytes(log2_size).next_multiple_of(4096);
        let buffers = STRIDE << log2_size;
        let all = usize::from(counts[0]) + usize::from(counts[1]);
        let (region, file) = Region::create(all * (ring + buffers))?;
        let place = |number: usize| Place {
            region: 0,
            offset: (number * ring) as u32,
            log2_size,
            buffers: Buffers::Own(all * ring + number * buffers),
        };
        let socket = &self.socket;
        let (version, id, mode, secret) = (VERSION, settings.id, ETHERNET, settings.secret());
        wire::send(socket, &Message::Init(Init { version, id, mode, secret }), None)?;
        let size = region.size() as u64;
        wire::send(socket, &Message::AddRegion { index: 0, size }, Some(&file))?;
        let from_client = (0..counts[0]).map(|index| (true, index));
        let rings = from_client.chain((0..counts[1]).map(|index| (false, index)));
        for (number, (from_client, index)) in rings.enumerate() {
            let (place, event) = (place(number), event()?);
            // Finds out now whether the host lets this side wake others.
            bell::ring(&event)?;
            ring::create(&region, place);
            let Place { region, offset, log2_size, .. } = place;
            let ring = AddRing { from_client, index, region, offset, log2_size, private_header: 0 };
            wire::send(socket, &Message::AddRing(ring), Some(&event))?;
            let slots = if from_client { &mut self.from_client } else { &mut self.to_client };
            if let Some(slot) = slots.get_mut(usize::from(index)) {
                *slot = Some((place, event));
            }
        }
        wire::send(socket, &Message::Connect, None)?;
        self.regions.push(region);
        Ok(())
    }

    /// Opens the rings to this side, and those to the peer.
    fn open(
        &mut self,
        read: Vec<Option<Described>>,
        written: Vec<Option<Described>>,
    ) -> Result<Rings, MemifError> {
        let regions = take(&mut self.regions);
        let open = |(place, event)| Ok((Reader::open(&regions, place)?, event));
        let incoming: Vec<_> = without_gaps(read)?.map(open).collect::<Result<_, MemifError>>()?;
        let open = |(place, event)| Ok((Writer::open(&regions, place)?, event));
        let outgoing = without_gaps(written)?.map(open).collect::<Result<_, MemifError>>()?;
        incoming.iter().for_each(|(reader, _)| reader.start(&regions));
        Ok(Rings { regions, incoming, outgoing })
    }
}

/// Places for as many rings as were offered.
fn none(queues: u16) -> Vec<Option<Described>> {
    (0..queues).map(|_| None).collect()
}

/// The rings that a peer described: at least one, and those before the last one.
fn without_gaps(rings: Vec<Option<Described>>) -> Result<impl Iterator<Item = Described>, MemifError> {
    let count = rings.iter().flatten().count();
    let has_gap = rings.iter().take(count).any(Option::is_none);
    if count == 0 || has_gap { Err(MemifError::NoRing) } else { Ok(rings.into_iter().flatten()) }
}

/// Reads the messages of a connected peer: there is nothing more to say but that it ends.
pub(super) fn hear(socket: &OwnedFd) -> Result<(), MemifError> {
    for _ in 0..MESSAGES {
        match wire::receive(socket, None)? {
            None => break,
            Some((Message::Ack, _)) => {}
            Some((Message::Disconnect(text), _)) => return Err(MemifError::Disconnected(text)),
            Some(_) => return Err(MemifError::Message),
        }
    }
    Ok(())
}

/// Ends a connection. A peer that does not read its messages does not get the reason.
pub(super) fn refuse(socket: &OwnedFd, why: &MemifError) {
    if !matches!(why, MemifError::Closed | MemifError::Rings { .. } | MemifError::Disconnected(_)) {
        let _ = wire::send(socket, &Message::Disconnect(why.to_string()), None);
    }
}

/// Checks what a client wants.
fn accept_init(init: &Init, settings: &MemifSettings) -> Result<(), MemifError> {
    if init.version != VERSION {
        return Err(MemifError::Version(init.version, init.version));
    }
    if init.id != settings.id {
        return Err(MemifError::Id(init.id));
    }
    if init.mode != ETHERNET {
        return Err(MemifError::Mode(init.mode));
    }
    // Compares all bytes, so that the time tells nothing. Without a secret of its own, a server takes any.
    let differences =
        init.secret.iter().zip(settings.secret()).fold(0, |all, (one, other)| all | (one ^ other));
    if differences != 0 && !settings.secret.is_empty() {
        return Err(MemifError::Secret);
    }
    Ok(())
}

fn event() -> io::Result<OwnedFd> {
    // SAFETY: nothing else owns the new descriptor.
    unsafe {
        let descriptor = check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) as isize)?;
        Ok(OwnedFd::from_raw_fd(descriptor as libc::c_int))
    }
}
