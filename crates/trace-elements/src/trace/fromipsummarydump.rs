//! `FromIPSummaryDump`: creates packets from an IP summary dump.

use super::multipacket::{Multipacket, extra_packets};
use super::playback::Playback;
use super::summary::{Item, Reader};
use super::trace_file::TraceFile;
use element::Direction;
use element::arguments::{FileName, Raw, Real};
use element::prelude::*;

/// Creates packets from the lines of an IP summary dump.
///
/// Fields that the dump does not contain are zero, except IP version, header lengths, protocol (PROTO), time to live
/// (100) and total length, which are always set. The extra length annotation holds the number of bytes that a line
/// claims beyond the packet's data, unless CHECKSUM creates them.
///
/// ## Differences
///
/// Fields that the dump does not contain are zero even with ZERO false. If `ip_len` exceeds the headers and the
/// payload, options fill the difference. FLOWID and `!flowid` lines set addresses and ports; in Click they have no
/// effect.
/// ```click
/// FromIPSummaryDump(STOP true, DATA "!data src sport dst dport proto
/// 10.0.0.1 1000 10.0.0.2 80 T
/// 10.0.0.2 80 10.0.0.1 1000 T") -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 2
/// c.byte_count = 80
/// ```
#[derive(Args)]
#[element(
    name = "FromIPSummaryDump",
    group = "trace",
    ports = "0/1",
    processing = "/a",
    task,
    notifies = "empty",
    logs,
    see = "ToIPSummaryDump, FromDump",
    fates = "received, copied, discarded, waiting"
)]
pub struct FromIPSummaryDumpArgs {
    /// Dump file; `-` for standard input.
    #[arg(position, input_file)]
    filename: Option<FileName>,
    /// Stop the driver at the end.
    #[arg(default = "false")]
    stop: bool,
    /// Whether packets are sent from the start.
    #[arg(default = "true")]
    active: bool,
    /// Accepted for compatibility with Click: fields that the dump lacks are always zero.
    #[arg(keyword = "ZERO")]
    _zero: Option<bool>,
    /// Replay packets with their original timing.
    #[arg(default = "false")]
    timing: bool,
    /// Create packets in full length with correct checksums.
    #[arg(default = "false")]
    checksum: bool,
    /// Probability with which each packet is sent.
    #[arg(default = "1")]
    sample: Real,
    /// Protocol of packets whose line does not give one.
    #[arg(default = "6")]
    proto: u8,
    /// Create several packets from a line that counts several.
    #[arg(default = "false")]
    multipacket: bool,
    /// Fields of a dump that does not name them.
    fields: Option<Raw>,
    /// The same as FIELDS.
    contents: Option<Raw>,
    /// The same as FIELDS.
    default_fields: Option<Raw>,
    /// The same as FIELDS.
    default_contents: Option<Raw>,
    /// Source, port, destination, port and optionally protocol for packets whose line does not give them.
    flowid: Option<Raw>,
    /// The same as FLOWID.
    default_flowid: Option<Raw>,
    /// Accept a missing or empty file.
    #[arg(default = "false")]
    allow_nonexistent: bool,
    /// The dump itself, instead of a file.
    data: Option<String>,
}

pub struct FromIPSummaryDump {
    args: FromIPSummaryDumpArgs,
    playback: Playback,
    reader: Reader,
    input: TraceFile,
    /// The next packet, if it is not due yet.
    held: Option<Packet>,
    /// Since when a packet is held.
    since: Timestamp,
    /// The rest of a packet that represents several.
    several: Option<Multipacket>,
    exhausted: bool,
}

/// The result of reading.
enum ReadResult {
    Packet(Packet),
    /// The packet is not due yet.
    Wait,
    End,
}

impl Element for FromIPSummaryDump {
    type Args = FromIPSummaryDumpArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("sampling_prob", "Sampling probability.", |dump| dump.playback.sampling()),
        Handler::read("active", "Whether packets are sent.", |dump| dump.playback.active.to_string()),
        Handler::setting("active", "Starts or stops sending.", |dump, cx, value| {
            let active = cx.argument(value)?;
            dump.playback.set_active(cx, active);
            Ok(())
        }),
        Handler::read("encap", "Link type of the packets, as in ToDump's ENCAP.", |_| "IP".into()),
        Handler::action("stop", "Stops sending, and stops the driver.", |dump, cx, _| {
            dump.playback.set_active(cx, false);
            cx.stop();
            Ok(())
        }),
        Handler::read("filename", "Name of the file.", |dump| dump.input.name.clone()),
        Handler::read("filesize", "Size of the file in bytes; `-` if unknown or completely read.", |dump| {
            if dump.exhausted { "-".into() } else { dump.input.size() }
        }),
        Handler::read("filepos", "Bytes of the file read so far.", |dump| dump.input.position().to_string()),
    ];

    fn new(args: FromIPSummaryDumpArgs, setup: &mut Setup) -> Result<FromIPSummaryDump, SetupError> {
        match (&args.filename, &args.data) {
            (Some(_), Some(_)) => return Err(SetupError::new("FILENAME and DATA conflict")),
            (None, None) => return Err(SetupError::new("FILENAME: required argument missing")),
            _ => {}
        }
        let mut reader = Reader::new();
        reader.protocol = args.proto;
        reader.checksums = args.checksum;
        let fields = [&args.fields, &args.contents, &args.default_fields, &args.default_contents];
        if let Some(Raw(fields)) = fields.into_iter().flatten().next() {
            reader.set_fields(fields);
        }
        if let Some(Raw(flow)) = args.flowid.as_ref().or(args.default_flowid.as_ref()) {
            reader.set_flow(flow);
        }
        while let Some(Item::Notice { text, .. }) = reader.item() {
            setup.warn(text);
        }
        let playback = Playback::new(args.active, args.timing, args.sample.0, setup);
        let input = TraceFile::empty();
        let (held, several, since) = (None, None, Timestamp::ZERO);
        Ok(FromIPSummaryDump { args, playback, reader, input, held, since, several, exhausted: false })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        match self.open(cx) {
            Err(problem) if !self.args.allow_nonexistent => return Err(problem),
            Err(_) => self.input = TraceFile::empty(),
            Ok(()) => {
                if let Some(text) = self.reader.begin() {
                    cx.warn_of(&format!("{}:0", self.input.name), &text);
                }
            }
        }
        if self.playback.active {
            self.playback.wake(cx);
        } else {
            self.playback.set_active(cx, false);
        }
        Ok(())
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        if !self.playback.active {
            return false;
        }
        let most = cx.take_turns().min(cx.batch_limit()).max(1);
        let mut batch = cx.batch();
        let mut more = true;
        while batch.len() < most {
            match self.next(cx) {
                ReadResult::Packet(packet) => batch.push(packet),
                // The driver stops in the next turn, when the emitted packets have arrived.
                ReadResult::End if !batch.is_empty() => break,
                ReadResult::End => {
                    more = false;
                    if self.args.stop {
                        cx.stop();
                    }
                    break;
                }
                ReadResult::Wait => {
                    more = false;
                    break;
                }
            }
        }
        let worked = !batch.is_empty();
        cx.emit(0, batch);
        if more {
            cx.schedule();
        }
        worked
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        let mut pulled = 0;
        while pulled < most && self.playback.active {
            match self.next(cx) {
                ReadResult::Packet(packet) => {
                    into.push(packet);
                    pulled += 1;
                }
                ReadResult::End if pulled > 0 => break,
                ReadResult::End => {
                    cx.set_signal(Direction::Empty, false);
                    if self.args.stop {
                        cx.stop();
                    }
                    break;
                }
                ReadResult::Wait => {
                    cx.set_signal(Direction::Empty, false);
                    break;
                }
            }
        }
    }

    fn waiting(&self, waiting: &mut Waiting) {
        waiting.add(usize::from(self.held.is_some()), Some(self.since));
        waiting.add(usize::from(self.several.is_some()), Some(self.since));
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        self.playback.wake(cx);
    }

    fn inherit(&mut self, old: &mut FromIPSummaryDump, _: &mut Context) {
        if old.args.filename == self.args.filename && old.args.data == self.args.data {
            core::mem::swap(&mut self.input, &mut old.input);
            core::mem::swap(&mut self.reader, &mut old.reader);
            (self.held, self.since) = (old.held.take(), old.since);
            self.several = old.several.take();
            self.exhausted = old.exhausted;
        }
    }
}

impl FromIPSummaryDump {
    /// Opens the dump and reads its first bytes.
    fn open(&mut self, cx: &Context) -> Result<(), SetupError> {
        self.input = match (&self.args.data, &self.args.filename) {
            (Some(data), _) => TraceFile::text(data.clone().into_bytes()),
            (None, path) => {
                let path = path.as_ref().map_or("-", |path| path.0.as_str());
                TraceFile::open(cx.environment(), path)
                    .map_err(|error| SetupError::new(format!("{path}: {error}")))?
            }
        };
        let first = self.input.next().map_err(SetupError::new)?;
        if first.is_empty() && self.args.data.is_none() {
            return Err(SetupError::at_location(format_args!("{}:0", self.input.name), "empty file"));
        }
        self.reader.feed(first);
        Ok(())
    }

    /// The next packet in the sample, if it is due.
    fn next(&mut self, cx: &mut Context) -> ReadResult {
        loop {
            let packet = if let Some(held) = self.held.take() {
                held
            } else if let Some(several) = self.several.take() {
                let (packet, rest) = several.next(cx);
                self.several = rest;
                let Some(packet) = packet else { continue };
                packet
            } else {
                let Some(packet) = self.read(cx) else { return ReadResult::End };
                if self.args.multipacket && extra_packets(&packet) > 0 {
                    self.several = Some(Multipacket::new(packet));
                    continue;
                }
                packet
            };
            if !self.playback.is_due(cx, &packet) {
                (self.held, self.since) = (Some(packet), cx.steady());
                return ReadResult::Wait;
            }
            if self.playback.is_sampled(cx) {
                return ReadResult::Packet(packet);
            }
            cx.end(packet, Fate::Discarded);
        }
    }

    /// Reads a packet from the dump, and logs problems of the dump.
    fn read(&mut self, cx: &mut Context) -> Option<Packet> {
        loop {
            match self.reader.item() {
                Some(Item::Packet(builder)) => {
                    let packet = cx.begin(Fate::Received, builder.packet(cx.pool()));
                    if packet.is_some() {
                        return packet;
                    }
                }
                Some(Item::Notice { number, binary, error, text }) => {
                    let record = if binary { "record " } else { "" };
                    let warning = if error { "" } else { "warning: " };
                    cx.log(&format!("{}:{record}{number}: {warning}{text}", self.input.name));
                }
                None if self.exhausted => return None,
                None => match self.input.next() {
                    Ok([]) => {
                        self.exhausted = true;
                        self.reader.finish();
                    }
                    Ok(bytes) => self.reader.feed(bytes),
                    Err(error) => {
                        cx.log(&format!("{}: {error}", self.input.name));
                        self.exhausted = true;
                    }
                },
            }
        }
    }
}
