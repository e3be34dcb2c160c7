//! `Clipboard`: copies bytes from one packet to others.

use element::Message;
use element::arguments::Raw;
use element::prelude::*;

/// Copies byte ranges from the packets of input 0 into the packets of input 1.
///
/// Each RANGE is OFFSET/LENGTH in bytes. Packets leave by the output with the number of their input. A packet of input
/// 1 that is too short for a range passes unchanged.
///
/// ## Differences
/// Until the first packet arrives at input 0, zeros are written. From a packet of input 0 that is too short, only the
/// existing bytes are copied.
/// ```click
/// TimedSource(0.1, "ab", LIMIT 1) -> [0]p :: Clipboard(0/1, 1/1);
/// TimedSource(0.2, "xyz", LIMIT 1, STOP true) -> [1]p;
/// p[0] -> Discard;
/// p[1] -> c :: Classifier(0/61627a, -);
/// c[0] -> right :: Counter -> Discard;
/// c[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// right.count = 1
/// wrong.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "Clipboard",
    group = "changing",
    ports = "2/2",
    processing = "aa/aa",
    flow = "#/#",
    see = "StoreData, Strip, Unstrip",
    fates = "changed"
)]
pub struct ClipboardArgs {
    /// Bytes to copy: OFFSET/LENGTH.
    #[arg(rest)]
    range: Vec<Raw>,
}

/// Bytes of a packet.
#[derive(Clone, Copy)]
pub(super) struct Range {
    offset: usize,
    length: usize,
}

/// Maximum bytes of the clipboard: those of the longest packet. A longer range never fits a packet.
const MAX_BYTES: usize = 1 << 16;

impl Range {
    fn parse(text: &str, setup: &mut Setup) -> Result<Range, SetupError> {
        let (offset, length) = text
            .split_once('/')
            .filter(|(offset, length)| !offset.is_empty() && !length.is_empty())
            .ok_or_else(|| SetupError::new("expected ‘/’ between offset and length"))?;
        let mut problems = SetupError::default();
        let mut number = |keyword, text: &str| match u32::from_argument(text, setup) {
            Ok(number) => number as usize,
            Err(problem) => {
                problems.merge(SetupError::argument(keyword, problem));
                0
            }
        };
        let range = Range { offset: number("OFFSET", offset), length: number("LENGTH", length) };
        if range.offset > MAX_BYTES || range.length > MAX_BYTES || !problems.messages.is_empty() {
            problems.merge(SetupError::new("invalid offset or length"));
        }
        problems.into_result().map(|()| range)
    }
}

pub struct Clipboard {
    ranges: Vec<Range>,
    bytes: Vec<u8>,
    /// Length of a packet that fits all ranges.
    least: usize,
}

impl Clipboard {
    fn copy(&mut self, packet: &Packet) {
        let mut rest = &mut *self.bytes;
        for range in &self.ranges {
            let Some((target, after)) = rest.split_at_mut_checked(range.length) else { return };
            let data = packet.data().get(range.offset..).unwrap_or(&[]);
            target.iter_mut().zip(data).for_each(|(byte, new)| *byte = *new);
            rest = after;
        }
    }

    fn paste(&self, packet: &mut Packet) {
        if packet.len() < self.least || self.bytes.is_empty() {
            return;
        }
        let data = packet.data_mut();
        let mut rest = &*self.bytes;
        for range in &self.ranges {
            let Some((bytes, after)) = rest.split_at_checked(range.length) else { return };
            if let Some(target) = data.get_mut(range.offset..range.offset + range.length) {
                target.copy_from_slice(bytes);
            }
            rest = after;
        }
    }

    fn handle(&mut self, port: usize, packets: &mut [Packet]) {
        match port {
            0 => packets.iter().for_each(|packet| self.copy(packet)),
            _ => packets.iter_mut().for_each(|packet| self.paste(packet)),
        }
    }
}

impl Element for Clipboard {
    type Args = ClipboardArgs;
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: ClipboardArgs, setup: &mut Setup) -> Result<Clipboard, SetupError> {
        let mut ranges = Vec::new();
        for (index, Raw(text)) in args.range.iter().enumerate() {
            ranges.push(Range::parse(text, setup).map_err(|mut error| {
                // The last message is about the whole range.
                if let Some(last) = error.messages.last_mut() {
                    *last = Message::Other(format!("range {index}: {last}"));
                }
                error
            })?);
        }
        let sum: usize = ranges.iter().map(|range| range.length).sum();
        if sum > MAX_BYTES {
            return Err(SetupError::new("ranges too long"));
        }
        let least = ranges.iter().map(|range| range.offset + range.length).max().unwrap_or(0);
        Ok(Clipboard { ranges, bytes: vec![0; sum], least })
    }

    fn push(&mut self, cx: &mut Context, port: usize, mut batch: Batch) {
        self.handle(port, batch.as_mut_slice());
        cx.emit(port, batch);
    }

    fn pull(&mut self, cx: &mut Context, port: usize, most: usize, into: &mut Batch) {
        let before = into.len();
        cx.pull(port, most, into);
        if let Some(packets) = into.as_mut_slice().get_mut(before..) {
            self.handle(port, packets);
        }
    }
}
