//! The capture that both programs read.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use capture::{CaptureError, Decoder, LinkType, PcapEncoder};
use random::Random;

use super::flow::{Flow, Zipf, generate_flows};
use super::frame::{self, Variation};

/// Maximum size of a capture in bytes: it must stay in the page cache.
const CAPTURE_BYTES: u64 = 1 << 30;

/// Length in bytes of a record header.
const RECORD_HEADER: u64 = 16;

/// Maximum number of flows of a capture file that rules and routes are drawn from.
const FILE_FLOWS: usize = 1 << 20;

/// Size in bytes of one read or write.
const CHUNK: usize = 1 << 18;

/// The frame sizes of an Internet mix: seven small, four medium, one large.
const INTERNET_MIX: [usize; 12] = [64, 594, 64, 64, 594, 64, 1514, 64, 594, 64, 594, 64];

/// The source of the packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Many flows, drawn by Zipf's law, generated from a seed.
    Mixed,
    /// One packet, repeated.
    Constant,
    /// A capture file.
    File(PathBuf),
}

impl FromStr for Traffic {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "mixed" => Self::Mixed,
            "constant" => Self::Constant,
            path => Self::File(path.into()),
        })
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mixed => f.write_str("mixed"),
            Self::Constant => f.write_str("constant"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// The sizes of the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameSize {
    /// The same size for all, in bytes.
    Bytes(u16),
    /// Of twelve frames, seven have 64 bytes, four 594, and one 1,514.
    InternetMix,
    /// The sizes in the capture file.
    AsCaptured,
}

impl FrameSize {
    fn of(self, number: u64) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.into(),
            Self::InternetMix | Self::AsCaptured => {
                INTERNET_MIX[(number % INTERNET_MIX.len() as u64) as usize]
            }
        }
    }

    fn mean(self) -> u64 {
        let count = INTERNET_MIX.len() as u64;
        (0..count).map(|number| self.of(number) as u64).sum::<u64>() / count
    }
}

/// A text that is not a frame size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameSizeError;

impl fmt::Display for FrameSizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a number from 60 to 1514, or imix")
    }
}

impl std::error::Error for FrameSizeError {}

impl FromStr for FrameSize {
    type Err = FrameSizeError;

    fn from_str(text: &str) -> Result<Self, FrameSizeError> {
        if text == "imix" {
            return Ok(Self::InternetMix);
        }
        match text.parse() {
            Ok(bytes @ 60..=1514) => Ok(Self::Bytes(bytes)),
            _ => Err(FrameSizeError),
        }
    }
}

impl fmt::Display for FrameSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::InternetMix => f.write_str("imix"),
            Self::AsCaptured => f.write_str("as captured"),
        }
    }
}

impl serde::Serialize for FrameSize {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bytes(bytes) => serializer.serialize_u16(*bytes),
            Self::InternetMix => serializer.serialize_str("imix"),
            Self::AsCaptured => serializer.serialize_str("captured"),
        }
    }
}

/// Why traffic can't be read or written.
#[derive(Debug)]
pub enum TrafficError {
    /// The file can't be read or written.
    File(PathBuf, io::Error),
    /// The file is not a capture, or is damaged.
    Decode(PathBuf, CaptureError),
    /// The capture has no frames.
    NoFrames(PathBuf),
    /// The capture has frames that are not Ethernet frames.
    NotEthernet(PathBuf),
}

impl fmt::Display for TrafficError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, _) => write!(f, "the capture {} can't be read or written", path.display()),
            Self::Decode(path, _) => write!(f, "{} is not a valid capture", path.display()),
            Self::NoFrames(path) => write!(f, "the capture {} has no frames", path.display()),
            Self::NotEthernet(path) => {
                write!(f, "the capture {} has frames that are not Ethernet frames", path.display())
            }
        }
    }
}

impl std::error::Error for TrafficError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(_, error) => Some(error),
            Self::Decode(_, error) => Some(error),
            Self::NoFrames(_) | Self::NotEthernet(_) => None,
        }
    }
}

/// A capture file and a description of its contents.
#[derive(Clone, Debug)]
pub struct Capture {
    /// The file.
    pub path: PathBuf,
    /// Number of frames.
    pub frames: u64,
    /// The flows of its IPv4 packets; in a generated capture, most frequent first.
    pub(crate) flows: Vec<Flow>,
}

impl Capture {
    /// Writes a capture of at most `packets` frames of mixed traffic, or of one repeated frame if there is one flow.
    /// With a number of PPPoE sessions, they are PPPoE frames. The same seed gives the same bytes.
    pub fn make(
        path: &Path,
        seed: u64,
        flows: u32,
        is_constant: bool,
        size: FrameSize,
        sessions: Option<u16>,
        packets: u64,
    ) -> Result<Self, TrafficError> {
        let failed = |error| TrafficError::File(path.into(), error);
        let mut random = Random::new(seed);
        let flows = generate_flows(if is_constant { 1 } else { flows.max(1) as usize }, &mut random);
        let zipf = Zipf::new(flows.len());
        let frames = packets.min(CAPTURE_BYTES / (size.mean() + RECORD_HEADER)).max(1);
        let mut file = BufWriter::with_capacity(CHUNK, File::create(path).map_err(failed)?);
        let encoder = PcapEncoder::new(LinkType::ETHERNET).nanoseconds(false);
        let (mut bytes, mut frame) = (encoder.file_header().to_vec(), Vec::new());
        for number in 0..frames {
            let (rank, variation) = if is_constant {
                (0, Variation::PLAIN)
            } else {
                (zipf.draw(&mut random), Variation::draw(&mut random))
            };
            frame::build(&flows[rank], &variation, size.of(number), sessions, &mut frame);
            encoder.record(time(number), frame.len() as u32, &frame, &mut bytes);
            file.write_all(&bytes).map_err(failed)?;
            bytes.clear();
        }
        file.flush().map_err(failed)?;
        Ok(Self { path: path.into(), frames, flows })
    }

    /// Writes the frames of a capture to another one, repeatedly, until it has `packets` frames or reaches the maximum
    /// size.
    pub fn extend(from: &Path, to: &Path, packets: u64) -> Result<Self, TrafficError> {
        let failed = |error| TrafficError::File(to.into(), error);
        let mut output = BufWriter::with_capacity(CHUNK, File::create(to).map_err(failed)?);
        let encoder = PcapEncoder::new(LinkType::ETHERNET).nanoseconds(false);
        let mut bytes = encoder.file_header().to_vec();
        let mut known = HashSet::new();
        let mut capture = Self { path: to.into(), frames: 0, flows: Vec::new() };
        let mut written = 0;
        let is_full = |frames: u64, written: u64| frames >= packets || written >= CAPTURE_BYTES;
        while !is_full(capture.frames, written) {
            let before = capture.frames;
            frames(from, |frame| {
                if is_full(capture.frames, written) {
                    return Ok(false);
                }
                let flow = frame::flow_of(frame).filter(|_| before == 0 && known.len() < FILE_FLOWS);
                if let Some(flow) = flow.filter(|flow| known.insert(*flow)) {
                    capture.flows.push(flow);
                }
                encoder.record(time(capture.frames), frame.len() as u32, frame, &mut bytes);
                capture.frames += 1;
                written += bytes.len() as u64;
                output.write_all(&bytes).map_err(failed)?;
                bytes.clear();
                Ok(true)
            })?;
            if capture.frames == before {
                return Err(TrafficError::NoFrames(from.into()));
            }
        }
        output.flush().map_err(failed)?;
        Ok(capture)
    }
}

/// The timestamp of a frame in a generated capture, in nanoseconds since 1970: one frame per microsecond.
fn time(number: u64) -> i64 {
    1_700_000_000_000_000_000 + number as i64 * 1_000
}

/// Calls `each` with the frames of a capture until it returns false.
fn frames(
    path: &Path,
    mut each: impl FnMut(&[u8]) -> Result<bool, TrafficError>,
) -> Result<(), TrafficError> {
    let failed = |error| TrafficError::File(path.into(), error);
    let mut file = File::open(path).map_err(failed)?;
    let mut chunk = vec![0; CHUNK];
    let mut decoder = Decoder::new();
    loop {
        let count = file.read(&mut chunk).map_err(failed)?;
        if count == 0 {
            return Ok(());
        }
        decoder.feed(&chunk[..count]);
        while let Some(record) = decoder.record().map_err(|error| TrafficError::Decode(path.into(), error))? {
            if record.link != LinkType::ETHERNET {
                return Err(TrafficError::NotEthernet(path.into()));
            }
            if !each(record.bytes)? {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_capture_has_the_same_frames_and_flows() {
        let folder = std::env::temp_dir().join(format!("clickbox-capture-test-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let [path, copy] = ["mixed.pcap", "copy.pcap"].map(|name| folder.join(name));
        let make = |is_constant, size, packets| {
            Capture::make(&path, 1, 500, is_constant, size, None, packets).expect("a capture")
        };
        let made = make(false, FrameSize::InternetMix, 3_000);
        let read = Capture::extend(&path, &copy, 3_000).expect("a capture");
        assert_eq!((made.frames, read.frames), (3_000, 3_000));
        assert!(read.flows.iter().all(|flow| made.flows.contains(flow)));
        assert!(read.flows.len() > 300, "{} of 500 flows came", read.flows.len());
        let bytes = std::fs::read(&path).expect("a file");
        // 3,000 frames are 250 times the mix.
        assert_eq!(bytes.len(), 24 + 3_000 * 16 + 250 * (7 * 64 + 4 * 594 + 1514));
        assert!(std::fs::read(&copy).expect("a file") == bytes, "a copy of as many frames is the same");
        make(false, FrameSize::InternetMix, 3_000);
        assert!(std::fs::read(&path).expect("a file") == bytes, "the same seed gives the same bytes");
        let longer = Capture::extend(&path, &copy, 7_000).expect("a capture");
        assert_eq!((longer.frames, longer.flows.len()), (7_000, read.flows.len()));
        make(true, FrameSize::Bytes(64), 10);
        let constant = Capture::extend(&path, &copy, 10).expect("a capture");
        assert_eq!((constant.frames, constant.flows.len()), (10, 1));
        std::fs::write(&path, "no capture").expect("a file");
        assert!(matches!(Capture::extend(&path, &copy, 10), Err(TrafficError::Decode(..))));
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn sizes_are_parsed() {
        assert_eq!("imix".parse(), Ok(FrameSize::InternetMix));
        assert_eq!("1514".parse(), Ok(FrameSize::Bytes(1514)));
        for wrong in ["59", "1515", "", "large"] {
            assert!(wrong.parse::<FrameSize>().is_err(), "{wrong}");
        }
        assert_eq!(FrameSize::InternetMix.mean(), (7 * 64 + 4 * 594 + 1514) / 12);
    }
}
