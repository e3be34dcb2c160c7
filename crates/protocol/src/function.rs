//! The conversation between a fabric and a network function that attaches itself to a service, over the service's socket.
//!
//! The function may be written in any language, so the messages have a fixed layout in little-endian order instead of an
//! encoding with names. The socket keeps message boundaries (`SOCK_SEQPACKET`). Each message begins with its kind (16 bits),
//! 16 bits of zeros, and its length with this header (32 bits). `clickbox.h` describes the same messages.
//!
//! 1. The function sends [`Register`](FromFunction::Register).
//! 2. The fabric answers with [`Welcome`](ToFunction::Welcome), which comes with two descriptors, or three, or with
//!    [`Refused`](ToFunction::Refused), after which it closes the connection.
//! 3. From then on both may send messages. The function leaves the service by closing the connection. To lose no packet, it sends
//!    [`Leave`](FromFunction::Leave) before, waits for [`Leaving`](ToFunction::Leaving), and answers what its rings hold.
//! 4. A function that has said so when it registered hands the state of its flows over before [`Leaving`](ToFunction::Leaving), and
//!    takes over that of others at any time: it answers each [`States`](ToFunction::States) with one
//!    [`States`](FromFunction::States) of the same number.

use model::{BoxName, Destination, ServiceName};
use std::fmt;

/// The version of this conversation, and of the layout of the region.
pub const VERSION: u16 = 1;

/// Bytes of a token: hexadecimal digits.
pub const TOKEN_BYTES: usize = 32;

/// Bytes of a whole message, in either direction.
pub const MAX_MESSAGE: usize = 8192;

/// Bytes that a function may send to another one at once.
pub const MAX_PAYLOAD: usize = 4096;

/// Counters that a function may publish.
pub const MAX_COUNTERS: usize = 32;

/// Bytes of the name of such a counter.
pub const COUNTER_NAME: usize = 24;

/// Bytes of the place for a name.
const NAME: usize = 64;

/// Bytes of the header of a message.
pub const HEADER: usize = 8;

/// Bytes of a request for the state of flows, or of the answer, behind its number.
pub const MAX_STATES: usize = MAX_MESSAGE - HEADER - 8;

/// A message of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromFunction {
    /// The first message.
    Register {
        /// The version that it speaks.
        version: u16,
        /// The slots that its rings should have; 0 leaves the choice to the fabric.
        slots: u16,
        /// Whether it hands over the state of flows. Earlier libraries do not.
        hands_over: bool,
        /// What it read from the service's file.
        token: [u8; TOKEN_BYTES],
    },
    /// Its counters, in place of those that it published before.
    Counters(Vec<(String, u64)>),
    /// Bytes for the functions of another service.
    Message {
        /// The place of the service in the list of destinations.
        destination: u16,
        /// The bytes.
        payload: Vec<u8>,
    },
    /// It is about to leave: it asks for no more packets.
    Leave,
    /// The answer to a request for the state of flows.
    States {
        /// The number of the request.
        number: u32,
        /// The answer, encoded as that of a box.
        reply: Vec<u8>,
    },
}

/// What a function is to do with the state of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatesRequest {
    /// List flows with state.
    List,
    /// Hand over the state of flows, and forget it.
    Export,
    /// Take over the state of flows.
    Import,
}

/// A message to a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToFunction {
    /// The function is an instance of its service now. The memory file of its region and its end of the doorbell come with
    /// the message, then the memory file of its owner's packet pool, if it joins that.
    Welcome(Welcome),
    /// It is not.
    Refused(RefusedReason),
    /// Bytes from a function of another service.
    Message {
        /// The service.
        from: ServiceName,
        /// The bytes.
        payload: Vec<u8>,
    },
    /// Its rings get no packets from now on: what they hold is all.
    Leaving,
    /// A request for the state of flows.
    States {
        /// What it asks for.
        kind: StatesRequest,
        /// Its number.
        number: u32,
        /// The request, encoded as that to a box.
        request: Vec<u8>,
    },
}

/// What a function learns when it is accepted. Places are bytes from the start of the region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Its name.
    pub instance: BoxName,
    /// The service.
    pub service: ServiceName,
    /// The slots of each ring.
    pub slots: u16,
    /// Bytes of the region.
    pub region: u64,
    /// The place of the buffers: in the region, or in the pool if there is one.
    pub buffers: u64,
    /// The number of buffers, of 2,048 bytes each.
    pub buffer_count: u32,
    /// Whether the fabric understands [`Leave`](FromFunction::Leave). Earlier ones do not.
    pub lets_leave: bool,
    /// Whether the fabric asks for the state of flows before it lets the function leave.
    pub hands_over: bool,
    /// The places of the rings of each face: to the function, and from it. The inner face is the first.
    pub faces: Vec<[u32; 2]>,
    /// What the service may send packets to. An answer names a destination by its place in this list.
    pub destinations: Vec<Destination>,
}

/// Why a function is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedReason {
    /// It speaks another version.
    Version,
    /// Its token is not that of the service.
    Token,
    /// The service has as many instances as it may have.
    Full,
    /// Its message is malformed.
    Malformed,
    /// It took too long.
    Late,
    /// The fabric has no memory or descriptors left, or the service is being removed.
    Unavailable,
}

impl RefusedReason {
    const ALL: [Self; 6] =
        [Self::Version, Self::Token, Self::Full, Self::Malformed, Self::Late, Self::Unavailable];

    /// What to do, for the user of the function.
    pub fn text(self) -> &'static str {
        match self {
            Self::Version => "the function was built for another version of clickbox: build it again",
            Self::Token => {
                "the token is not that of the service: read the file `token` beside the socket again"
            }
            Self::Full => {
                "the service has as many functions as it may have: stop one, or give it more places (`--places`, at most 128)"
            }
            Self::Malformed => "the message is malformed: use the library of this version of clickbox",
            Self::Late => "the function did not register within 5 s of connecting",
            Self::Unavailable => "the fabric has no memory left, or the service is being removed: try again",
        }
    }
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// Its length is not the one that its header states, or not one that its kind can have.
    Length,
    /// Its kind is unknown.
    Kind(u16),
    /// It has more counters than allowed, or a name that is no text.
    Counters,
    /// A name is not that of an object.
    Name,
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length => f.write_str("a message does not have the length that it states"),
            Self::Kind(kind) => write!(f, "a message has the unknown kind {kind}"),
            Self::Counters => f.write_str("a message has counters that are too many or have no name"),
            Self::Name => f.write_str("a message has a name that is none"),
        }
    }
}

impl std::error::Error for MessageError {}

const REGISTER: u16 = 1;
const COUNTERS: u16 = 2;
const MESSAGE: u16 = 3;
const LEAVE: u16 = 4;
const STATES: u16 = 5;
const WELCOME: u16 = 0x101;
const REFUSED: u16 = 0x102;
const MESSAGE_FROM: u16 = 0x103;
const LEAVING: u16 = 0x104;
const LIST_STATES: u16 = 0x105;
const EXPORT_STATES: u16 = 0x106;
const IMPORT_STATES: u16 = 0x107;

/// What functions and fabrics can do: bits in [`Register`](FromFunction::Register) and [`Welcome`].
const LETS_LEAVE: u32 = 1;
const HANDS_OVER: u32 = 2;

/// Reads fields of a message in turn.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let (first, rest) = self.0.split_first_chunk().ok_or(MessageError::Length)?;
        self.0 = rest;
        Ok(*first)
    }

    fn u16(&mut self) -> Result<u16, MessageError> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, MessageError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, MessageError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A text that is padded with zeros.
    fn text<const N: usize>(&mut self) -> Result<String, MessageError> {
        let bytes = self.array::<N>()?;
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(N);
        let text = bytes.get(..length).unwrap_or_default();
        String::from_utf8(text.to_vec()).map_err(|_| MessageError::Name)
    }

    fn name<T: std::str::FromStr>(&mut self) -> Result<T, MessageError> {
        self.text::<NAME>()?.parse().map_err(|_| MessageError::Name)
    }

    fn end<T>(self, value: T) -> Result<T, MessageError> {
        if self.0.is_empty() { Ok(value) } else { Err(MessageError::Length) }
    }
}

/// The kind and the contents of a message.
fn open(bytes: &[u8]) -> Result<(u16, Fields<'_>), MessageError> {
    let mut fields = Fields(bytes);
    let (kind, _) = (fields.u16()?, fields.u16()?);
    match fields.u32()? {
        length if length as usize == bytes.len() && bytes.len() <= MAX_MESSAGE => Ok((kind, fields)),
        _ => Err(MessageError::Length),
    }
}

/// Starts a message, whose length [`finish`] fills in.
fn start(kind: u16) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.resize(HEADER, 0);
    bytes
}

fn padded(bytes: &mut Vec<u8>, text: &str, size: usize) {
    let end = bytes.len() + size;
    bytes.extend(text.bytes().take(size));
    bytes.resize(end, 0);
}

fn finish(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = (bytes.len() as u32).to_le_bytes();
    if let Some(place) = bytes.get_mut(4..HEADER) {
        place.copy_from_slice(&length);
    }
    bytes
}

/// The bit of an ability, if there is that ability.
fn abilities(can: bool, bit: u32) -> u32 {
    if can { bit } else { 0 }
}

impl FromFunction {
    /// The message in these bytes, which a stranger may have written.
    ///
    /// # Errors
    ///
    /// They are not exactly one message.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let (kind, mut fields) = open(bytes)?;
        match kind {
            REGISTER => {
                let (version, slots, abilities) = (fields.u16()?, fields.u16()?, fields.u32()?);
                let (hands_over, token) = (abilities & HANDS_OVER != 0, fields.array()?);
                fields.end(Self::Register { version, slots, hands_over, token })
            }
            COUNTERS => {
                let (count, _, _) = (usize::from(fields.u16()?), fields.u16()?, fields.u32()?);
                if count > MAX_COUNTERS {
                    return Err(MessageError::Counters);
                }
                let mut counters = Vec::new();
                for _ in 0..count {
                    let name = fields.text::<COUNTER_NAME>().map_err(|error| match error {
                        MessageError::Name => MessageError::Counters,
                        other => other,
                    })?;
                    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
                    if name.is_empty() || !name.bytes().all(is_plain) {
                        return Err(MessageError::Counters);
                    }
                    counters.push((name, fields.u64()?));
                }
                fields.end(Self::Counters(counters))
            }
            MESSAGE => {
                let (destination, _, _) = (fields.u16()?, fields.u16()?, fields.u32()?);
                let payload = fields.0.to_vec();
                if payload.len() > MAX_PAYLOAD {
                    return Err(MessageError::Length);
                }
                Ok(Self::Message { destination, payload })
            }
            LEAVE => fields.end(Self::Leave),
            STATES => {
                let (number, _) = (fields.u32()?, fields.u32()?);
                Ok(Self::States { number, reply: fields.0.to_vec() })
            }
            other => Err(MessageError::Kind(other)),
        }
    }

    /// The bytes of the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes;
        match self {
            Self::Register { version, slots, hands_over, token } => {
                bytes = start(REGISTER);
                bytes.extend(version.to_le_bytes());
                bytes.extend(slots.to_le_bytes());
                bytes.extend(abilities(*hands_over, HANDS_OVER).to_le_bytes());
                bytes.extend(token);
            }
            Self::Counters(counters) => {
                bytes = start(COUNTERS);
                bytes.extend((counters.len() as u16).to_le_bytes());
                bytes.extend([0; 6]);
                for (name, value) in counters {
                    padded(&mut bytes, name, COUNTER_NAME);
                    bytes.extend(value.to_le_bytes());
                }
            }
            Self::Message { destination, payload } => {
                bytes = start(MESSAGE);
                bytes.extend(destination.to_le_bytes());
                bytes.extend([0; 6]);
                bytes.extend(payload);
            }
            Self::Leave => bytes = start(LEAVE),
            Self::States { number, reply } => {
                bytes = start(STATES);
                bytes.extend(number.to_le_bytes());
                bytes.extend([0; 4]);
                bytes.extend(reply);
            }
        }
        finish(bytes)
    }
}

impl ToFunction {
    /// The bytes of the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes;
        match self {
            Self::Welcome(welcome) => {
                bytes = start(WELCOME);
                bytes.extend(VERSION.to_le_bytes());
                bytes.extend(welcome.slots.to_le_bytes());
                bytes.extend((welcome.faces.len() as u16).to_le_bytes());
                bytes.extend((welcome.destinations.len() as u16).to_le_bytes());
                bytes.extend(welcome.region.to_le_bytes());
                bytes.extend(welcome.buffers.to_le_bytes());
                bytes.extend(welcome.buffer_count.to_le_bytes());
                let can =
                    abilities(welcome.lets_leave, LETS_LEAVE) | abilities(welcome.hands_over, HANDS_OVER);
                bytes.extend(can.to_le_bytes());
                padded(&mut bytes, welcome.instance.as_str(), NAME);
                padded(&mut bytes, welcome.service.as_str(), NAME);
                for place in welcome.faces.iter().flatten() {
                    bytes.extend(place.to_le_bytes());
                }
                for destination in &welcome.destinations {
                    let (kind, name) = match destination {
                        Destination::Service(name) => (1u16, name.as_str()),
                        Destination::Port(name) => (2, name.as_str()),
                        Destination::Chain(name) => (3, name.as_str()),
                    };
                    bytes.extend(kind.to_le_bytes());
                    bytes.extend([0; 6]);
                    padded(&mut bytes, name, NAME);
                }
            }
            Self::Refused(reason) => {
                bytes = start(REFUSED);
                let number = RefusedReason::ALL.iter().position(|known| known == reason).unwrap_or_default();
                bytes.extend((number as u16 + 1).to_le_bytes());
                bytes.extend([0; 6]);
                bytes.extend(reason.text().bytes());
            }
            Self::Message { from, payload } => {
                bytes = start(MESSAGE_FROM);
                padded(&mut bytes, from.as_str(), NAME);
                bytes.extend(payload);
            }
            Self::Leaving => bytes = start(LEAVING),
            Self::States { kind, number, request } => {
                bytes = start(match kind {
                    StatesRequest::List => LIST_STATES,
                    StatesRequest::Export => EXPORT_STATES,
                    StatesRequest::Import => IMPORT_STATES,
                });
                bytes.extend(number.to_le_bytes());
                bytes.extend([0; 4]);
                bytes.extend(request);
            }
        }
        finish(bytes)
    }

    /// The message in these bytes.
    ///
    /// # Errors
    ///
    /// They are not exactly one message.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let (kind, mut fields) = open(bytes)?;
        match kind {
            WELCOME => {
                let (_, slots) = (fields.u16()?, fields.u16()?);
                let (face_count, destination_count) = (fields.u16()?, fields.u16()?);
                let (region, buffers) = (fields.u64()?, fields.u64()?);
                let (buffer_count, abilities) = (fields.u32()?, fields.u32()?);
                let (instance, service) = (fields.name()?, fields.name()?);
                let mut faces = Vec::new();
                for _ in 0..face_count {
                    faces.push([fields.u32()?, fields.u32()?]);
                }
                let mut destinations = Vec::new();
                for _ in 0..destination_count {
                    let (kind, _, _) = (fields.u16()?, fields.u16()?, fields.u32()?);
                    destinations.push(match kind {
                        1 => Destination::Service(fields.name()?),
                        2 => Destination::Port(fields.name()?),
                        3 => Destination::Chain(fields.name()?),
                        other => return Err(MessageError::Kind(other)),
                    });
                }
                fields.end(Self::Welcome(Welcome {
                    instance,
                    service,
                    slots,
                    region,
                    buffers,
                    buffer_count,
                    lets_leave: abilities & LETS_LEAVE != 0,
                    hands_over: abilities & HANDS_OVER != 0,
                    faces,
                    destinations,
                }))
            }
            REFUSED => {
                let number = fields.u16()?;
                let reason = RefusedReason::ALL.get(usize::from(number).wrapping_sub(1));
                reason.map(|reason| Self::Refused(*reason)).ok_or(MessageError::Kind(number))
            }
            MESSAGE_FROM => {
                let from = fields.name()?;
                Ok(Self::Message { from, payload: fields.0.to_vec() })
            }
            LEAVING => fields.end(Self::Leaving),
            LIST_STATES | EXPORT_STATES | IMPORT_STATES => {
                let (number, _) = (fields.u32()?, fields.u32()?);
                let kind = match kind {
                    LIST_STATES => StatesRequest::List,
                    EXPORT_STATES => StatesRequest::Export,
                    _ => StatesRequest::Import,
                };
                Ok(Self::States { kind, number, request: fields.0.to_vec() })
            }
            other => Err(MessageError::Kind(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn register(hands_over: bool) -> FromFunction {
        FromFunction::Register { version: VERSION, slots: 512, hands_over, token: [b'a'; TOKEN_BYTES] }
    }

    fn messages() -> Vec<FromFunction> {
        vec![
            register(false),
            register(true),
            FromFunction::Counters(vec![("passed".into(), 7), ("x".repeat(COUNTER_NAME), u64::MAX)]),
            FromFunction::Counters(Vec::new()),
            FromFunction::Message { destination: 3, payload: vec![9; MAX_PAYLOAD] },
            FromFunction::Message { destination: 0, payload: Vec::new() },
            FromFunction::Leave,
            FromFunction::States { number: 7, reply: vec![1; MAX_STATES] },
        ]
    }

    #[test]
    fn messages_are_read_as_written_and_not_in_part() {
        for message in messages() {
            let bytes = message.encode();
            assert_eq!(FromFunction::decode(&bytes), Ok(message));
            for length in 0..bytes.len() {
                assert!(FromFunction::decode(&bytes[..length]).is_err(), "{length}");
            }
            assert_eq!(FromFunction::decode(&[&bytes[..], &[0]].concat()), Err(MessageError::Length));
        }
        let welcome = Welcome {
            instance: "nf-1".parse().unwrap(),
            service: "nf".parse().unwrap(),
            slots: 512,
            region: 1 << 21,
            buffers: 4096,
            buffer_count: 2048,
            lets_leave: true,
            hands_over: true,
            faces: vec![[1, 2], [3, 4]],
            destinations: ["port:wan", "ids", "chain:web"].map(|text| text.parse().unwrap()).into(),
        };
        let largest = Welcome {
            lets_leave: false,
            destinations: (0..model::MAX_DESTINATIONS).map(|n| format!("d{n}").parse().unwrap()).collect(),
            ..welcome.clone()
        };
        let refused = RefusedReason::ALL.map(ToFunction::Refused);
        let others = [
            ToFunction::Welcome(welcome),
            ToFunction::Welcome(largest),
            ToFunction::Message { from: "nf".parse().unwrap(), payload: vec![1, 2] },
            ToFunction::Leaving,
        ];
        let states = [StatesRequest::List, StatesRequest::Export, StatesRequest::Import];
        let states = states.map(|kind| ToFunction::States { kind, number: u32::MAX, request: vec![3; 9] });
        for message in others.into_iter().chain(states).chain(refused) {
            assert_eq!(ToFunction::decode(&message.encode()), Ok(message));
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let counters = |count: u16, name: &[u8]| {
            let mut bytes = start(COUNTERS);
            bytes.extend(count.to_le_bytes());
            bytes.extend([0; 6]);
            let mut place = name.to_vec();
            place.resize(COUNTER_NAME, 0);
            bytes.extend(place);
            bytes.extend([0; 8]);
            FromFunction::decode(&finish(bytes))
        };
        assert_eq!(counters(1, b"ok"), Ok(FromFunction::Counters(vec![("ok".into(), 0)])));
        for (count, name) in [(1, &b""[..]), (1, b"\xff"), (1, b"a b"), (33, b"ok"), (u16::MAX, b"ok")] {
            assert_eq!(counters(count, name), Err(MessageError::Counters), "{count} {name:?}");
        }
        assert_eq!(FromFunction::decode(&finish(start(77))), Err(MessageError::Kind(77)));
        let long = FromFunction::Message { destination: 0, payload: vec![0; MAX_PAYLOAD + 1] };
        assert_eq!(FromFunction::decode(&long.encode()), Err(MessageError::Length));
        let mut lies = start(MESSAGE);
        lies.extend([0; 8]);
        lies[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(FromFunction::decode(&lies), Err(MessageError::Length));
    }
}
