//! The traffic of steered chains: frames of many flows, the ports that send and count them, and what is under way.

use super::REPLY_TIMEOUT;
use crate::error::MeasureError;
use random::Random;
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use switch::driver::{Received, Sent};
use switch::{Batch, Driver, DriverError};

/// Slots of the rings of a function.
pub(super) const RING: u32 = 2048;

/// Packets under way: few enough that no ring counts as crowded.
const WINDOW: u64 = RING as u64 * 3 / 4;

/// The fewest frames that the source repeats: more than any cache holds.
const FRAMES: usize = 1 << 18;

/// The sizes of frames that a box may send and receive.
const FRAME_SIZES: std::ops::RangeInclusive<u16> = 60..=1514;

/// Sizes of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketSizes {
    /// All frames have this many bytes.
    Bytes(u16),
    /// The mix of the OpenNetVM paper's traces of HTTP (section 5.3): 44.3 % of the frames have 64 bytes, 18.5 % have 65 to 1023,
    /// and 37.2 % have 1024 to 1514, which with the checksum of Ethernet are the paper's 1518. Sizes within a range are
    /// equally frequent, because the paper does not say more.
    Mix,
}

impl PacketSizes {
    fn choose(self, random: &mut Random) -> u16 {
        match self {
            Self::Bytes(size) => size,
            Self::Mix => match random.below(1000) {
                0..443 => 64,
                443..628 => random.between(65, 1023) as u16,
                _ => random.between(1024, 1514) as u16,
            },
        }
    }
}

impl fmt::Display for PacketSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(size) => size.fmt(f),
            Self::Mix => f.pad("mix"),
        }
    }
}

impl Serialize for PacketSizes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bytes(size) => serializer.serialize_u16(*size),
            Self::Mix => serializer.serialize_str("mix"),
        }
    }
}

impl FromStr for PacketSizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "mix" {
            return Ok(Self::Mix);
        }
        let size = text.parse().ok().filter(|size| FRAME_SIZES.contains(size));
        size.map(Self::Bytes).ok_or_else(|| {
            format!("a size is \"mix\" or a number from {} to {}", FRAME_SIZES.start(), FRAME_SIZES.end())
        })
    }
}

/// Frames, one after the other: the processor fetches them before they are read.
#[derive(Default)]
pub(super) struct Frames {
    /// Where each frame ends.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Frames {
    /// UDP frames of this many flows, in random order: each flow has as many as the others, or one more.
    pub(super) fn new(flows: u32, sizes: PacketSizes) -> Self {
        let mut random = Random::new(7);
        let mut frame = [0; *FRAME_SIZES.end() as usize];
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
        frame[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
        frame[30..34].copy_from_slice(&[10, 9, 9, 9]);
        frame[36..40].copy_from_slice(&[0, 53, 0, 26]);
        let mut frames = Self::default();
        let mut order: Vec<u32> = (0..flows).cycle().take(FRAMES.max(flows as usize)).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, random.below_u64(at as u64 + 1) as usize);
        }
        for flow in order {
            let size = sizes.choose(&mut random);
            frame[16..18].copy_from_slice(&(size - 14).to_be_bytes());
            frame[26..30].copy_from_slice(&(0x0a00_0000 | flow >> 15).to_be_bytes());
            frame[34..36].copy_from_slice(&((1024 + (flow & 0x7fff)) as u16).to_be_bytes());
            frames.push(frame.get(..size.into()).unwrap_or_default());
        }
        frames
    }

    pub(super) fn push(&mut self, frame: &[u8]) {
        self.bytes.extend_from_slice(frame);
        self.ends.push(self.bytes.len());
    }

    fn get(&self, number: usize) -> Option<&[u8]> {
        let start = number.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.bytes.get(start..*self.ends.get(number)?)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).filter_map(|number| self.get(number))
    }

    /// The mean size of a frame, in bytes.
    pub(super) fn mean_size(&self) -> f64 {
        self.bytes.len() as f64 / self.ends.len().max(1) as f64
    }
}

/// A port that sends frames of many flows as often as it may.
struct Source {
    frames: Arc<Frames>,
    next: usize,
    /// Frames that it may still send.
    allowed: Arc<AtomicU64>,
}

impl Driver for Source {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let count = self.allowed.load(Ordering::Relaxed).min(batch.room() as u64);
        for _ in 0..count {
            let Some(frame) = self.frames.get(self.next) else { break };
            batch.push(frame);
            self.next = (self.next + 1) % self.frames.ends.len();
        }
        self.allowed.fetch_sub(count, Ordering::Relaxed);
        Ok(Received::default())
    }

    fn send(&mut self, _: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        Ok(Sent { frames: frames.len() as u64, ..Sent::default() })
    }
}

/// A port that counts what it gets.
struct Sink(Arc<AtomicU64>);

impl Driver for Sink {
    fn receive(&mut self, _: &mut Batch) -> Result<Received, DriverError> {
        Ok(Received::default())
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        self.0.fetch_add(frames.len() as u64, Ordering::Relaxed);
        let bytes = frames.iter().filter_map(|number| batch.split_frame(*number as usize));
        Ok(Sent {
            frames: frames.len() as u64,
            bytes: bytes.map(|frame| frame.length() as u64).sum(),
            ..Sent::default()
        })
    }

    fn accepts_split(&self) -> bool {
        true
    }
}

/// The traffic of one shard.
#[derive(Clone, Default)]
pub(super) struct Lane {
    /// Frames that its source may still send.
    allowed: Arc<AtomicU64>,
    /// Frames that left.
    left: Arc<AtomicU64>,
}

impl Lane {
    /// A port that sends these frames.
    pub(super) fn source(&self, frames: Arc<Frames>) -> Box<dyn Driver> {
        Box::new(Source { frames, next: 0, allowed: self.allowed.clone() })
    }

    /// A port for what leaves.
    pub(super) fn sink(&self) -> Box<dyn Driver> {
        Box::new(Sink(self.left.clone()))
    }

    /// Packets that left.
    pub(super) fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Sends one packet, and waits until it has left.
    pub(super) fn exchange(&self, step: impl FnMut()) -> Result<(), MeasureError> {
        let all = self.left() + 1;
        self.allowed.fetch_add(1, Ordering::Relaxed);
        self.drain(step, all)
    }

    /// Moves packets for a time by calling `step`, with a limited number under way. Returns packets per second that left.
    pub(super) fn forward(&self, mut step: impl FnMut(), time: Duration) -> Result<f64, MeasureError> {
        let (begin, before) = (Instant::now(), self.left());
        let mut sent = 0;
        loop {
            let left = self.left() - before;
            let more = (left + WINDOW).saturating_sub(sent);
            self.allowed.fetch_add(more, Ordering::Relaxed);
            sent += more;
            step();
            let took = begin.elapsed();
            // On a busy machine the time can be over before anything could leave. Where nothing ever does, the wait below ends.
            if took >= time && (left > 0 || took > REPLY_TIMEOUT) {
                // What is under way leaves before the next run.
                let rate = left as f64 / took.as_secs_f64();
                self.drain(step, before + sent)?;
                return Ok(rate);
            }
        }
    }

    /// Moves packets until this many have left.
    fn drain(&self, mut step: impl FnMut(), all: u64) -> Result<(), MeasureError> {
        let begin = Instant::now();
        let mut polls = 0u32;
        while self.left() < all {
            step();
            polls += 1;
            if polls.is_multiple_of(4096) && begin.elapsed() > REPLY_TIMEOUT {
                return Err(MeasureError::Late { what: "the packets of the chain" });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_mix_has_the_sizes_of_the_paper() {
        let frames = Frames::new(1000, PacketSizes::Mix);
        let share = |range: std::ops::RangeInclusive<usize>| {
            frames.iter().filter(|frame| range.contains(&frame.len())).count() as f64 / FRAMES as f64
        };
        for (range, expected) in [(64..=64, 0.443), (65..=1023, 0.185), (1024..=1514, 0.372)] {
            assert!((share(range.clone()) - expected).abs() < 0.005, "{range:?}");
        }
        assert!((frames.mean_size() - 601.0).abs() < 5.0, "{}", frames.mean_size());
        let lengths = frames.iter().map(|frame| usize::from(u16::from_be_bytes([frame[16], frame[17]])));
        assert!(lengths.zip(frames.iter()).all(|(length, frame)| length + 14 == frame.len()));
    }

    #[test]
    fn all_flows_have_frames() {
        for flows in [1, 1000, FRAMES as u32 + 5] {
            let frames = Frames::new(flows, PacketSizes::Bytes(64));
            let all: BTreeSet<_> = frames.iter().map(|frame| (&frame[26..30], &frame[34..36])).collect();
            assert_eq!((all.len(), frames.ends.len()), (flows as usize, FRAMES.max(flows as usize)));
        }
    }

    #[test]
    fn sizes_are_read_and_written() {
        for (text, sizes) in [("mix", PacketSizes::Mix), ("64", PacketSizes::Bytes(64))] {
            assert_eq!(text.parse(), Ok(sizes));
            assert_eq!(sizes.to_string(), text);
        }
        for text in ["", "59", "1515", "imix", "-1"] {
            assert!(text.parse::<PacketSizes>().is_err(), "{text}");
        }
    }
}
