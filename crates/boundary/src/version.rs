//! The ELF note by which a host recognises an image that it can run.

use crate::codec::Decoder;
use core::fmt;

/// Version of everything in this crate that both sides must agree on. Any change of a layout or of a message requires a
/// new version.
pub const PROTOCOL: u32 = 13;

/// Name of the ELF note, including its terminating zero.
pub const NOTE_NAME: &[u8; 9] = b"Clickbox\0";

/// Type of the ELF note.
pub const NOTE_TYPE: u32 = 1;

/// The contents of the image's ELF note.
///
/// The note's description is four 64-bit words: the protocol, and the fields in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionNote {
    /// Address of 32 fault entries of 16 bytes, one per exception vector.
    pub fault_table: u64,
    /// The initial stack pointer of the fault entries; the stack grows down from it.
    pub fault_stack: u64,
    /// Minimum stack size of the image in bytes.
    pub stack_size: u64,
}

/// Why an image is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteError {
    /// It has no note of this project.
    Missing,
    /// Its note ends too early.
    Damaged,
    /// It uses another protocol version.
    Version {
        /// Its protocol version.
        found: u64,
    },
}

impl fmt::Display for NoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(f, "the image is not a box image: it has no version note"),
            Self::Damaged => write!(f, "the image's version note is damaged"),
            Self::Version { found } => {
                write!(
                    f,
                    "the image has version {found} of the interface between boxes and host, this program has version {PROTOCOL}: build it again with the sources of this program"
                )
            }
        }
    }
}

impl core::error::Error for NoteError {}

impl VersionNote {
    /// Finds and checks the note in the bytes of an ELF note segment.
    pub fn find(segment: &[u8]) -> Result<Self, NoteError> {
        let mut rest = Decoder(segment);
        loop {
            let (Ok(name_size), Ok(size), Ok(kind)) = (rest.u32(), rest.u32(), rest.u32()) else {
                return Err(NoteError::Missing);
            };
            let name = take_padded(&mut rest, name_size).ok_or(NoteError::Missing)?;
            let description = take_padded(&mut rest, size).ok_or(NoteError::Damaged)?;
            if name == NOTE_NAME && kind == NOTE_TYPE {
                return Self::decode(description);
            }
        }
    }

    fn decode(description: &[u8]) -> Result<Self, NoteError> {
        let mut fields = Decoder(description);
        let found = fields.u64().map_err(|_| NoteError::Damaged)?;
        if found != u64::from(PROTOCOL) {
            return Err(NoteError::Version { found });
        }
        match (fields.u64(), fields.u64(), fields.u64()) {
            (Ok(fault_table), Ok(fault_stack), Ok(stack_size)) => {
                Ok(Self { fault_table, fault_stack, stack_size })
            }
            _ => Err(NoteError::Damaged),
        }
    }
}

/// Takes `size` bytes and the padding to a multiple of four.
fn take_padded<'a>(rest: &mut Decoder<'a>, size: u32) -> Option<&'a [u8]> {
    let size = size as usize;
    let (taken, after) = rest.0.split_at_checked(size)?;
    rest.0 = after.get(size.next_multiple_of(4) - size..).unwrap_or_default();
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Encoder;
    use crate::memory::hostile::edge;
    use alloc::vec::Vec;
    use random::Random;

    fn note(name: &[u8], words: &[u64]) -> Vec<u8> {
        let mut bytes = Encoder::default();
        bytes.u32(name.len() as u32).u32(8 * words.len() as u32).u32(NOTE_TYPE);
        bytes.0.extend_from_slice(name);
        bytes.0.resize(bytes.0.len().next_multiple_of(4), 0);
        for word in words {
            bytes.u64(*word);
        }
        bytes.0
    }

    #[test]
    fn notes_are_found_and_checked() {
        let good = VersionNote { fault_table: 2, fault_stack: 3, stack_size: 4 };
        let (ours, other) = ([u64::from(PROTOCOL), 2, 3, 4], u64::from(PROTOCOL) + 1);
        let both = [note(b"GNU\0", &[9]), note(NOTE_NAME, &ours)].concat();
        let cases = [
            (note(NOTE_NAME, &ours), Ok(good)),
            (both, Ok(good)),
            (note(NOTE_NAME, &[other, 2, 3, 4]), Err(NoteError::Version { found: other })),
            (note(NOTE_NAME, &ours[..3]), Err(NoteError::Damaged)),
            (note(b"GNU\0", &ours), Err(NoteError::Missing)),
            (Vec::new(), Err(NoteError::Missing)),
        ];
        for (segment, expected) in cases {
            assert_eq!(VersionNote::find(&segment), expected);
        }
    }

    #[test]
    fn random_segments_are_refused() {
        let mut random = Random::new(11);
        for _ in 0..20_000 {
            let words = random.next() % 8;
            let segment: Vec<u8> =
                (0..words).flat_map(|_| (edge(&mut random) as u32).to_le_bytes()).collect();
            assert!(VersionNote::find(&segment).is_err());
        }
    }
}
