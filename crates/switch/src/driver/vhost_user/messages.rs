//! The messages of a vhost-user front end, as bytes and as values.
//!
//! A message has a header of three words (request, flags, length of the payload) and a payload. Descriptors come with its
//! first byte. The layout is that of "Vhost-user Protocol" in QEMU's documentation.

use super::error::VhostUserError;

/// Bytes of a header.
pub(super) const HEADER: usize = 12;
/// Maximum number of memory regions: what a front end without `CONFIGURE_MEM_SLOTS` sends at most.
pub(super) const MAX_REGIONS: usize = 8;
/// Maximum bytes of a payload: a table of that many regions.
pub(super) const MAX_PAYLOAD: usize = 8 + 32 * MAX_REGIONS;

/// Bits of the flags: the version, and whether it is an answer or wants one.
const VERSION: u32 = 1;
const VERSION_BITS: u32 = 3;
const REPLY: u32 = 1 << 2;
const NEEDS_REPLY: u32 = 1 << 3;

/// In the number of a queue, the bit that says that no descriptor comes with the message.
const NO_DESCRIPTOR: u64 = 1 << 8;

/// Numbers of requests.
pub(super) const GET_FEATURES: u32 = 1;
const SET_FEATURES: u32 = 2;
const SET_OWNER: u32 = 3;
const RESET_OWNER: u32 = 4;
const SET_MEM_TABLE: u32 = 5;
const SET_VRING_NUM: u32 = 8;
const SET_VRING_ADDR: u32 = 9;
const SET_VRING_BASE: u32 = 10;
const GET_VRING_BASE: u32 = 11;
const SET_VRING_KICK: u32 = 12;
const SET_VRING_CALL: u32 = 13;
const SET_VRING_ERR: u32 = 14;
const GET_PROTOCOL_FEATURES: u32 = 15;
const SET_PROTOCOL_FEATURES: u32 = 16;
const GET_QUEUE_NUM: u32 = 17;
const SET_VRING_ENABLE: u32 = 18;
const SET_BACKEND_REQ_FD: u32 = 21;

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The number of the request.
    pub(super) request: u32,
    flags: u32,
    /// Bytes of the payload.
    pub(super) size: usize,
}

impl Header {
    /// Reads a header, and checks version, direction and length.
    pub(super) fn read(bytes: &[u8; HEADER]) -> Result<Self, VhostUserError> {
        let [request, flags, size] = [0, 4, 8].map(|at| word(bytes, at));
        let size = size as usize;
        let is_request = flags & VERSION_BITS == VERSION && flags & REPLY == 0;
        if !is_request || size > MAX_PAYLOAD {
            return Err(VhostUserError::Message(request));
        }
        Ok(Self { request, flags, size })
    }

    /// Whether the peer waits for an answer to a request that has none of its own.
    pub(super) fn needs_reply(&self) -> bool {
        self.flags & NEEDS_REPLY != 0
    }
}

/// A region of the peer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RegionPlace {
    /// Its address in the guest: buffers are named by such addresses.
    pub(super) guest: u64,
    /// Bytes.
    pub(super) size: u64,
    /// Its address in the peer: rings are named by such addresses.
    pub(super) user: u64,
    /// Its start in the file.
    pub(super) offset: u64,
}

/// Where a ring has its parts, as addresses in the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RingPlace {
    pub(super) descriptors: u64,
    pub(super) used: u64,
    pub(super) available: u64,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    GetFeatures,
    SetFeatures(u64),
    SetOwner,
    Reset,
    SetMemory(Vec<RegionPlace>),
    SetSize {
        queue: u32,
        size: u32,
    },
    SetRing {
        queue: u32,
        place: RingPlace,
    },
    SetBase {
        queue: u32,
        base: u32,
    },
    GetBase(u32),
    /// The descriptors of these three come with the message, unless the peer has none.
    SetKick {
        queue: u32,
        has_descriptor: bool,
    },
    SetCall {
        queue: u32,
        has_descriptor: bool,
    },
    SetError {
        queue: u32,
        has_descriptor: bool,
    },
    GetProtocolFeatures,
    SetProtocolFeatures(u64),
    /// How many queue pairs there are at most.
    GetPairs,
    Enable {
        queue: u32,
        is_enabled: bool,
    },
    /// Its descriptor is for requests of the back end.
    SetChannel,
}

impl Message {
    /// Reads a message. `descriptors`: how many came with it.
    pub(super) fn read(header: Header, payload: &[u8], descriptors: usize) -> Result<Self, VhostUserError> {
        let malformed = VhostUserError::Message(header.request);
        let number = || payload.try_into().map(u64::from_le_bytes).ok();
        let state = || (payload.len() == 8).then(|| (word(payload, 0), word(payload, 4)));
        let mut expected = 0;
        let mut event = |make: fn(u32, bool) -> Self| {
            let number = number()?;
            let has_descriptor = number & NO_DESCRIPTOR == 0;
            expected = usize::from(has_descriptor);
            Some(make((number & 0xff) as u32, has_descriptor))
        };
        let nothing = |message| payload.is_empty().then_some(message);
        let message = match header.request {
            GET_FEATURES => nothing(Self::GetFeatures),
            SET_FEATURES => number().map(Self::SetFeatures),
            SET_OWNER => nothing(Self::SetOwner),
            RESET_OWNER => nothing(Self::Reset),
            SET_MEM_TABLE => {
                let regions = regions(payload);
                expected = regions.as_ref().map_or(0, Vec::len);
                regions.map(Self::SetMemory)
            }
            SET_VRING_NUM => state().map(|(queue, size)| Self::SetSize { queue, size }),
            SET_VRING_ADDR => (payload.len() == 40).then(|| {
                // After the queue and flags, which concern a log of writes; at the end, the place of that log.
                let [descriptors, used, available] = [8, 16, 24].map(|at| long(payload, at));
                Self::SetRing { queue: word(payload, 0), place: RingPlace { descriptors, used, available } }
            }),
            SET_VRING_BASE => state().map(|(queue, base)| Self::SetBase { queue, base }),
            GET_VRING_BASE => state().map(|(queue, _)| Self::GetBase(queue)),
            SET_VRING_KICK => event(|queue, has_descriptor| Self::SetKick { queue, has_descriptor }),
            SET_VRING_CALL => event(|queue, has_descriptor| Self::SetCall { queue, has_descriptor }),
            SET_VRING_ERR => event(|queue, has_descriptor| Self::SetError { queue, has_descriptor }),
            GET_PROTOCOL_FEATURES => nothing(Self::GetProtocolFeatures),
            SET_PROTOCOL_FEATURES => number().map(Self::SetProtocolFeatures),
            GET_QUEUE_NUM => nothing(Self::GetPairs),
            SET_VRING_ENABLE => state().map(|(queue, on)| Self::Enable { queue, is_enabled: on != 0 }),
            SET_BACKEND_REQ_FD => {
                expected = 1;
                nothing(Self::SetChannel)
            }
            request => return Err(VhostUserError::Unsupported(request)),
        };
        message.filter(|_| descriptors == expected).ok_or(malformed)
    }
}

/// An answer with a number.
pub(super) fn answer(request: u32, value: u64) -> [u8; HEADER + 8] {
    let mut bytes = [0; HEADER + 8];
    let words = [request, VERSION | REPLY, 8, value as u32, (value >> 32) as u32];
    for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// The regions of a table.
fn regions(payload: &[u8]) -> Option<Vec<RegionPlace>> {
    let (head, entries) = payload.split_at_checked(8)?;
    let count = word(head, 0) as usize;
    // User-mode Linux sends a table of a fixed length, of which it uses a part.
    let entries = entries.get(..count.checked_mul(32)?)?;
    if count > MAX_REGIONS {
        return None;
    }
    let region = |bytes: &[u8]| {
        let [guest, size, user, offset] = [0, 8, 16, 24].map(|at| long(bytes, at));
        RegionPlace { guest, size, user, offset }
    };
    Some(entries.chunks_exact(32).map(region).collect())
}

/// The word at an offset, or 0 outside the bytes.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_le_bytes(*word))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(request: u32, flags: u32, size: u32) -> Result<Header, VhostUserError> {
        let mut bytes = [0; HEADER];
        for (to, word) in bytes.chunks_exact_mut(4).zip([request, flags, size]) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        Header::read(&bytes)
    }

    fn read(request: u32, words: &[u64], descriptors: usize) -> Option<Message> {
        let payload: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let header = header(request, VERSION, payload.len() as u32).unwrap();
        Message::read(header, &payload, descriptors).ok()
    }

    #[test]
    fn headers_are_checked() {
        for (flags, size, is_valid) in
            [(1, 0, true), (9, 264, true), (1, 265, false), (0, 0, false), (2, 0, false), (5, 0, false)]
        {
            assert_eq!(header(1, flags, size).is_ok(), is_valid, "{flags} {size}");
        }
        assert!(header(1, 9, 0).unwrap().needs_reply() && !header(1, 1, 0).unwrap().needs_reply());
    }

    #[test]
    fn messages_have_one_length_and_number_of_descriptors() {
        let place = RingPlace { descriptors: 2, used: 3, available: 4 };
        let region = |n| RegionPlace { guest: n, size: n + 1, user: n + 2, offset: n + 3 };
        let cases: [(u32, &[u64], usize, Message); 18] = [
            (1, &[], 0, Message::GetFeatures),
            (2, &[7 << 32], 0, Message::SetFeatures(7 << 32)),
            (3, &[], 0, Message::SetOwner),
            (4, &[], 0, Message::Reset),
            (5, &[0], 0, Message::SetMemory(vec![])),
            (5, &[2, 1, 2, 3, 4, 9, 10, 11, 12], 2, Message::SetMemory(vec![region(1), region(9)])),
            (8, &[1 | 256 << 32], 0, Message::SetSize { queue: 1, size: 256 }),
            (9, &[1 << 32, 2, 3, 4, 5], 0, Message::SetRing { queue: 0, place }),
            (10, &[1 | 9 << 32], 0, Message::SetBase { queue: 1, base: 9 }),
            (11, &[1], 0, Message::GetBase(1)),
            (12, &[1], 1, Message::SetKick { queue: 1, has_descriptor: true }),
            (13, &[0x101], 0, Message::SetCall { queue: 1, has_descriptor: false }),
            (14, &[0], 1, Message::SetError { queue: 0, has_descriptor: true }),
            (15, &[], 0, Message::GetProtocolFeatures),
            (16, &[8], 0, Message::SetProtocolFeatures(8)),
            (17, &[], 0, Message::GetPairs),
            (18, &[1 | 1 << 32], 0, Message::Enable { queue: 1, is_enabled: true }),
            (21, &[], 1, Message::SetChannel),
        ];
        for (request, words, descriptors, message) in cases {
            assert_eq!(read(request, words, descriptors), Some(message.clone()), "{request}");
            assert_eq!(read(request, words, descriptors + 1), None, "{request}: a descriptor too many");
            let longer = read(request, &[words, &[0]].concat(), descriptors);
            // A table may be longer than its regions.
            let expected = (request == 5).then_some(message);
            assert_eq!(longer, expected, "{request}: too long");
            let shorter = words.split_last().map(|(_, shorter)| read(request, shorter, descriptors));
            assert_eq!(shorter.flatten(), None, "{request}: too short");
        }
        assert_eq!(read(5, &[9], 0), None);
        let unknown = Message::read(header(6, VERSION, 0).unwrap(), &[], 0);
        assert!(matches!(unknown, Err(VhostUserError::Unsupported(6))), "{unknown:?}");
        assert_eq!(answer(11, 0x0000_0009_0000_0001)[..12], [11, 0, 0, 0, 5, 0, 0, 0, 8, 0, 0, 0]);
    }
}
