//! `FromDump`: reads packets from a capture file.

use super::link;
use super::playback::Playback;
use super::trace_file::TraceFile;
use capture::{Decoder, LinkType, MAX_CAPTURED, RECORD_HEADER_LENGTH, Record, RecordPlace};
use element::arguments::{FileName, HandlerCall, Real};
use element::prelude::*;
use element::{Direction, FileView};
use packet::{Ip4View, SharedBytes};

/// Reads packets from a pcap or pcapng capture file.
///
/// Packets keep their capture times. The extra length annotation holds the number of bytes that were cut off at
/// capture. With FORCE_IP, or if the file contains IP packets without link headers, only packets with a valid IPv4 or
/// IPv6 header pass, with that header marked; others go to output 1, or are dropped as `no_ip_header`. Give at most one
/// of START and START_AFTER, and one of END, END_AFTER and INTERVAL. At the end of the file or of the time span,
/// END_CALL is written, or with STOP the driver is stopped.
///
/// ## Differences
///
/// It also reads pcapng. Only pcap with short packets is read in place. The `filepos` handler cannot be written. What `extend_interval` adds to END_AFTER or
/// INTERVAL also counts if it is written before the first packet, and stays after `reset_timing`. BURST is an argument of FastClick,
/// where it is 32 by default. A BURST above 4096 is spread over several task runs.
/// ```click
/// FromDump(testdata/mix.pcap, STOP true, FORCE_IP true) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 2476
/// FromDump@1.losses = no_ip_header 24
/// ```
#[derive(Args)]
#[element(
    name = "FromDump",
    group = "trace",
    ports = "0/1-2",
    processing = "/ah",
    task,
    notifies = "empty",
    shards = "sum",
    sums = "count, filepos",
    see = "ToDump, FromIPSummaryDump",
    drops = "no_ip_header",
    fates = "received, discarded, waiting"
)]
pub struct FromDumpArgs {
    /// Whether short packets of a large file are read in place, where they can be.
    #[arg(default = "true")]
    mmap: bool,
    /// Capture file; `-` for standard input.
    #[arg(position, input_file)]
    filename: FileName,
    /// Replay packets with their original timing.
    #[arg(position, default = "false")]
    timing: bool,
    /// Stop the driver at the end.
    #[arg(default = "false")]
    stop: bool,
    /// Whether packets are sent from the start.
    #[arg(default = "true")]
    active: bool,
    /// Probability with which each packet is sent.
    #[arg(default = "1")]
    sample: Real,
    /// Send only IP packets, with their headers marked.
    #[arg(default = "false")]
    force_ip: bool,
    /// Skip packets before this time.
    start: Option<Timestamp>,
    /// Skip this much time from the first packet on.
    start_after: Option<Timestamp>,
    /// Stop reading at the first packet at or after this time.
    end: Option<Timestamp>,
    /// Stop reading this long after the first packet of the file.
    end_after: Option<Timestamp>,
    /// Stop reading this long after the first packet sent.
    interval: Option<Timestamp>,
    /// Handler to write at the end, with its value.
    end_call: Option<HandlerCall>,
    /// Offset of the first record to read, in the uncompressed file.
    #[arg(default = "0")]
    filepos: u64,
    /// Maximum packets per task run.
    #[arg(default = "1")]
    burst: u32,
}

pub struct FromDump {
    args: FromDumpArgs,
    playback: Playback,
    file: TraceFile,
    /// The file, while its records are read in place.
    view: Option<Box<dyn FileView>>,
    /// Whether records may be read in place, which is decided when some have been read.
    may_view: bool,
    decoder: Decoder,
    /// Link type of the file's packets, once known.
    link: Option<LinkType>,
    /// The packet that was read but not emitted yet.
    held: Option<(Packet, LinkType)>,
    /// Since when a packet is held.
    since: Timestamp,
    /// Whether the held packet has reached the end time and the end was reported.
    end_reported: bool,
    /// Times between which packets are emitted. Relative times are resolved at the first packet.
    start: Option<Timestamp>,
    end: Timestamp,
    /// Whether an end time is set and has not been reached.
    ends: bool,
    times_known: bool,
    /// Whether the file has been read to its end.
    exhausted: bool,
    /// The error that ended the packets, before it is logged.
    problem: Option<String>,
    count: u64,
}

/// Records read per packet that a turn may emit, so that other elements can run while a file has no matching packets.
const RECORDS_PER_PACKET: usize = 16;

/// Number of records whose length decides whether the others are read in place.
const JUDGED_RECORDS: usize = 16;

/// Mean length in bytes of records that are read in place. The processor brings longer ones sooner from a buffer that a system call
/// has filled than from the pages of the file: a packet of 64 bytes took 18 ns in place and 22 from the buffer, one of 256 bytes 42 and
/// 43, and one of 512 bytes 90 and 76.
const MAX_MEAN_IN_PLACE: u64 = 256;

/// Bytes of the longest record.
const LONGEST_RECORD: usize = RECORD_HEADER_LENGTH + MAX_CAPTURED as usize;

/// Highest number of packets that a task run sends.
const MAX_BURST: usize = 4096;

/// The result of reading.
enum ReadResult {
    Packet(Packet),
    /// No packet: the record was skipped, or its packet left by another output.
    Nothing,
    /// The packet is not due yet.
    Wait,
    /// The packet is at or after the end time.
    Reached,
    /// There are no more packets.
    End,
}

impl Element for FromDump {
    type Args = FromDumpArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("sampling_prob", "Sampling probability.", |dump| dump.playback.sampling()),
        Handler::read("active", "Whether packets are sent.", |dump| dump.playback.active.to_string()),
        Handler::setting("active", "Starts or stops sending.", |dump, cx, value| {
            let active = cx.argument(value)?;
            dump.playback.set_active(cx, active);
            Ok(())
        }),
        Handler::read("encap", "Link type of the packets, as in ToDump's ENCAP.", |dump| {
            dump.link.map_or_else(|| "<none>".into(), link::name)
        }),
        Handler::action("stop", "Stops sending, and stops the driver.", |dump, cx, _| {
            dump.playback.set_active(cx, false);
            cx.stop();
            Ok(())
        }),
        Handler::read("packet_filepos", "Offset of the last record in the uncompressed file.", |dump| {
            dump.decoder.record_position().to_string()
        }),
        Handler::edit("extend_interval", "Moves the end by a time.", |dump, cx, value| {
            let span: Timestamp = cx
                .argument(value)
                .map_err(|_| HandlerError::new("'extend_interval' takes a time interval"))?;
            dump.extend(cx, span);
            if dump.has_end_action() {
                dump.ends = true;
                dump.playback.set_active(cx, true);
            }
            Ok(())
        }),
        Handler::read("count", "Packets sent.", |dump| dump.count.to_string()),
        Handler::action("reset_counts", "Resets `count`.", |dump, _, _| {
            dump.count = 0;
            Ok(())
        }),
        Handler::action("reset_timing", "Restarts the timing at the next packet.", |dump, _, _| {
            dump.playback.reset_timing();
            dump.times_known = false;
            Ok(())
        }),
        Handler::read("filename", "Name of the file.", |dump| dump.args.filename.0.clone()),
        Handler::read("filesize", "Size of the file in bytes; `-` if unknown.", |dump| dump.file.size()),
        Handler::read("filepos", "Bytes of the uncompressed file read so far.", |dump| {
            let unfinished = if dump.exhausted { dump.decoder.unread() as u64 } else { 0 };
            (dump.decoder.position() + unfinished).to_string()
        }),
    ];

    fn new(mut args: FromDumpArgs, setup: &mut Setup) -> Result<FromDump, SetupError> {
        // A time of zero means not given.
        for time in
            [&mut args.start, &mut args.start_after, &mut args.end, &mut args.end_after, &mut args.interval]
        {
            *time = time.filter(|time| *time != Timestamp::default());
        }
        let given = |options: &[bool]| options.iter().filter(|given| **given).count();
        if given(&[args.start.is_some(), args.start_after.is_some()]) > 1 {
            return Err(SetupError::new("START and START_AFTER are mutually exclusive"));
        } else if given(&[args.end.is_some(), args.end_after.is_some(), args.interval.is_some()]) > 1 {
            return Err(SetupError::new("END, END_AFTER, and INTERVAL are mutually exclusive"));
        } else if args.stop && args.end_call.is_some() {
            return Err(SetupError::new("END_CALL and STOP are mutually exclusive"));
        }
        let relative = [args.start_after, args.end_after, args.interval].iter().any(Option::is_some);
        if args.timing || relative || args.end_call.is_some() || args.filepos > 0 {
            setup.require_one_shard("TIMING, START_AFTER, END_AFTER, INTERVAL, END_CALL or FILEPOS")?;
        }
        let playback = Playback::new(args.active, args.timing, args.sample.0, setup);
        Ok(FromDump {
            playback,
            file: TraceFile::empty(),
            view: None,
            may_view: args.mmap,
            decoder: Decoder::new(),
            link: None,
            held: None,
            since: Timestamp::ZERO,
            end_reported: false,
            start: args.start,
            end: args.end.unwrap_or_default(),
            ends: args.end.is_some(),
            times_known: false,
            exhausted: false,
            problem: None,
            count: 0,
            args,
        })
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.args.end_call.as_ref().map_or(Ok(()), |call| call.resolve(cx, "END_CALL"))
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let path = &self.args.filename.0;
        self.file = TraceFile::open(cx.environment(), path)
            .map_err(|error| SetupError::new(format!("{path}: {error}")))?;
        self.open().map_err(|problem| SetupError::in_file(&self.file.name, problem))?;
        self.decoder.skip_to(self.args.filepos);
        if let Some(call) = &self.args.end_call {
            call.check(cx)?;
        }
        if self.playback.active {
            self.playback.wake(cx);
        } else {
            self.playback.set_active(cx, false);
        }
        Ok(())
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        if !self.is_playing(cx) {
            return false;
        }
        let burst = (self.args.burst as usize).clamp(1, MAX_BURST);
        let mut most = if burst == 1 {
            cx.take_paced_turns().min(cx.batch_limit()).max(1)
        } else {
            burst * cx.take_turns().min(cx.batch_limit() / burst).max(1)
        };
        let mut sent = 0;
        let mut read = 0;
        while sent < most && read < RECORDS_PER_PACKET * most && self.playback.active {
            if sent > 0 {
                cx.deliver_singly();
            }
            if self.sends_all() {
                let (records, packets) = self.send_records(cx, (most - sent).min(cx.batch_limit()));
                read += records;
                sent += packets;
                if sent < most && packets > 0 {
                    continue;
                }
                if sent == most {
                    if burst > 1 {
                        break;
                    }
                    most += cx.more_turns().min(cx.batch_limit());
                    if sent == most {
                        break;
                    }
                    continue;
                }
            }
            read += 1;
            match self.next(cx) {
                ReadResult::Packet(packet) => {
                    cx.send(0, packet);
                    sent += 1;
                }
                ReadResult::Nothing => {}
                // The end is reported in the next turn, when the emitted packets have arrived.
                ReadResult::Reached | ReadResult::End if sent > 0 => break,
                ReadResult::Reached => self.reach_end(cx),
                ReadResult::End => {
                    self.report_end(cx);
                    return false;
                }
                ReadResult::Wait => {
                    self.count += sent as u64;
                    return sent > 0;
                }
            }
        }
        self.count += sent as u64;
        if self.playback.active {
            cx.schedule();
        }
        sent > 0
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        let mut sent = 0;
        while sent < most && self.is_playing(cx) {
            match self.next(cx) {
                ReadResult::Packet(packet) => {
                    into.push(packet);
                    sent += 1;
                }
                ReadResult::Nothing => {}
                ReadResult::Reached | ReadResult::End if sent > 0 => break,
                ReadResult::Reached => {
                    self.reach_end(cx);
                    break;
                }
                ReadResult::End => {
                    cx.set_signal(Direction::Empty, false);
                    self.report_end(cx);
                    break;
                }
                ReadResult::Wait => {
                    cx.set_signal(Direction::Empty, false);
                    break;
                }
            }
        }
        self.count += sent as u64;
    }

    fn waiting(&self, waiting: &mut Waiting) {
        waiting.add(usize::from(self.held.is_some()), Some(self.since));
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        self.playback.wake(cx);
    }

    fn inherit(&mut self, old: &mut FromDump, _: &mut Context) {
        if old.args.filename == self.args.filename {
            core::mem::swap(&mut self.file, &mut old.file);
            core::mem::swap(&mut self.view, &mut old.view);
            self.may_view &= old.may_view;
            core::mem::swap(&mut self.decoder, &mut old.decoder);
            self.link = old.link;
            (self.held, self.since) = (old.held.take(), old.since);
            self.exhausted = old.exhausted;
            self.problem = old.problem.take();
        }
    }

    fn cleanup(&mut self, cx: &mut Context) {
        self.log_problem(cx);
    }
}

impl FromDump {
    /// Moves the end, and the argument that says where it is.
    fn extend(&mut self, cx: &Context, span: Timestamp) {
        self.end += span;
        let FromDumpArgs { end, end_after, interval, .. } = &mut self.args;
        for (keyword, time) in [("END", end), ("END_AFTER", end_after), ("INTERVAL", interval)] {
            if let Some(time) = time {
                *time += span;
                cx.record_argument(None, keyword, &time.to_string());
            }
        }
    }

    /// Reads the file header and checks it against the arguments.
    fn open(&mut self) -> Result<(), String> {
        loop {
            self.link = self.decoder.link_type().map_err(|error| error.to_string())?;
            if self.link.is_some() {
                break;
            }
            let count = self.file.read(self.decoder.space()).map_err(|error| error.to_string())?;
            if count == 0 {
                // A capture without an interface has no packets.
                return match (self.decoder.position(), self.decoder.unread()) {
                    (0, 0) => Err("empty file".into()),
                    (0, _) => Err("not a tcpdump file (too short)".into()),
                    _ => Ok(()),
                };
            }
            self.decoder.filled(count);
        }
        match self.link.filter(|link| self.args.force_ip && !link::can_hold_ip(*link)) {
            Some(link) => Err(format!("unknown linktype {}; can't force IP packets", link.0)),
            None => Ok(()),
        }
    }

    /// Whether playback is active. If reporting the end has stopped it, the packet held at that time is discarded.
    fn is_playing(&mut self, cx: &mut Context) -> bool {
        if core::mem::take(&mut self.end_reported)
            && !self.playback.active
            && let Some((packet, _)) = self.held.take()
        {
            cx.end(packet, Fate::Discarded);
        }
        self.playback.active
    }

    /// Whether the next packets are sent as they are, one after the other.
    fn sends_all(&self) -> bool {
        let is_ip = self.args.force_ip || self.link.is_none_or(|link| link == LinkType::RAW);
        let is_waiting = self.held.is_some() || !self.times_known || self.start.is_some() || self.ends;
        !is_ip && !is_waiting && self.playback.sends_all()
    }

    /// Sends at most `most` packets out of the file or the read buffer. Returns the numbers of records read and of packets sent.
    fn send_records(&mut self, cx: &mut Context, most: usize) -> (usize, usize) {
        let mut batch = cx.batch();
        let read = match self.view.take() {
            Some(view) => self.receive_in_place(cx, view, &mut batch, most),
            None => self.receive_buffered(cx, &mut batch, most),
        };
        let sent = batch.len();
        cx.count_begun(Fate::Received, read, sent);
        cx.emit(0, batch);
        (read, sent)
    }

    /// Adds at most `most` packets to a batch, out of the read buffer. Returns the number of records read. If their packets are short,
    /// the next ones are read in place.
    fn receive_buffered(&mut self, cx: &Context, batch: &mut Batch, most: usize) -> usize {
        let start = self.decoder.position();
        let mut receiving = batch.receive(cx.pool(), most);
        let read = self.decoder.records(most, |place, bytes| {
            annotate(receiving.add(bytes, Timestamp::from_nanos(place.time_ns)), &place);
        });
        if self.may_view && read >= JUDGED_RECORDS {
            self.may_view = false;
            let mean = (self.decoder.position() - start) / read as u64;
            if mean <= MAX_MEAN_IN_PLACE
                && let Some(view) = self.file.view()
            {
                self.decoder.forget_unread();
                self.view = Some(view);
            }
        }
        read
    }

    /// Adds at most `most` packets to a batch, out of the file in place. Returns the number of records read. If there are none, what
    /// comes next is read by the decoder.
    fn receive_in_place(
        &mut self,
        cx: &Context,
        mut view: Box<dyn FileView>,
        batch: &mut Batch,
        most: usize,
    ) -> usize {
        let bytes = view.bytes(self.decoder.position(), LONGEST_RECORD);
        let mut receiving = batch.receive(cx.pool(), most);
        let add = |place: RecordPlace| {
            let bytes = bytes.part(place.offset, place.length).unwrap_or(SharedBytes::EMPTY);
            annotate(receiving.add_shared(bytes, Timestamp::from_nanos(place.time_ns)), &place);
        };
        let read = self.decoder.places(bytes.len(), most, |offset| bytes.chunk(offset), add);
        drop(receiving);
        let problem = if !view.is_intact() {
            batch.clear();
            Some("the file became shorter while it was read".into())
        } else if read == 0 {
            self.file.seek(self.decoder.position()).err().map(|error| error.to_string())
        } else {
            self.view = Some(view);
            None
        };
        match problem {
            Some(problem) => {
                self.fail(problem);
                0
            }
            None => read,
        }
    }

    /// The next packet, if it is due.
    fn next(&mut self, cx: &mut Context) -> ReadResult {
        let (packet, link) = match self.held.take() {
            Some(held) => held,
            None => match self.read(cx) {
                Ok(held) => held,
                Err(next) => return next,
            },
        };
        let reached = self.ends && packet.timestamp() >= self.end;
        if reached || !self.playback.is_due(cx, &packet) {
            (self.held, self.since) = (Some((packet, link)), cx.steady());
            return if reached { ReadResult::Reached } else { ReadResult::Wait };
        }
        if self.args.force_ip || link == LinkType::RAW {
            mark(cx, packet, link)
        } else {
            ReadResult::Packet(packet)
        }
    }

    /// Handles the end time. The handler called may set a new one.
    fn reach_end(&mut self, cx: &mut Context) {
        self.ends = false;
        self.end_reported = true;
        self.report_end(cx);
    }

    /// Ends the packets because of an error. It is logged when those that were sent have arrived.
    fn fail(&mut self, problem: String) {
        self.problem = Some(problem);
        self.exhausted = true;
    }

    fn log_problem(&mut self, cx: &Context) {
        if let Some(problem) = self.problem.take() {
            cx.log_between_packets(&format!("{}: {problem}", self.file.name));
        }
    }

    /// Performs the action for the end of the packets.
    fn report_end(&mut self, cx: &mut Context) {
        self.log_problem(cx);
        if let Some(call) = &self.args.end_call {
            call.defer(cx);
        } else if self.has_end_action() {
            self.playback.set_active(cx, false);
            if self.args.stop {
                cx.stop();
            }
        }
    }

    /// Whether there is an action for the end.
    fn has_end_action(&self) -> bool {
        let FromDumpArgs { stop, end_call, end, end_after, interval, .. } = &self.args;
        *stop || end_call.is_some() || end.is_some() || end_after.is_some() || interval.is_some()
    }

    /// Reads a record that is at or after the start time and in the sample.
    fn read(&mut self, cx: &mut Context) -> Result<(Packet, LinkType), ReadResult> {
        loop {
            let record = match self.decoder.record() {
                Ok(Some(record)) => record,
                Ok(None) if self.exhausted => return Err(ReadResult::End),
                Ok(None) => {
                    match self.file.read(self.decoder.space()) {
                        Ok(0) => self.exhausted = true,
                        Ok(count) => self.decoder.filled(count),
                        Err(error) => self.fail(error.to_string()),
                    }
                    continue;
                }
                Err(_) if self.exhausted => return Err(ReadResult::End),
                Err(error) => {
                    self.fail(error.to_string());
                    return Err(ReadResult::End);
                }
            };
            let time = Timestamp::from_nanos(record.time_ns);
            if !core::mem::replace(&mut self.times_known, true) {
                self.playback.begin(cx, time);
                self.start = self.args.start.or(self.args.start_after.map(|span| time + span));
                let after = self.args.end_after.map(|span| time + span);
                let interval = self.args.interval.map(|span| self.start.unwrap_or(time) + span);
                if let Some(end) = after.or(interval) {
                    (self.end, self.ends) = (end, true);
                }
            }
            if self.start.is_some_and(|start| time < start) {
                return Err(ReadResult::Nothing);
            }
            self.start = None;
            // The end time is checked before sampling, so that it does not depend on which packets are sampled.
            let ends = self.ends && time >= self.end;
            if !ends && !self.playback.is_sampled(cx) {
                return Err(ReadResult::Nothing);
            }
            let packet = cx.begin(Fate::Received, cx.pool().packet(record.bytes));
            let mut packet = packet.ok_or(ReadResult::Nothing)?;
            set_annotations(&mut packet, &record);
            return Ok((packet, record.link));
        }
    }
}

/// Sets what a packet tells about its record.
#[inline]
fn set_annotations(packet: &mut Packet, record: &Record<'_>) {
    packet.set_timestamp(Timestamp::from_nanos(record.time_ns));
    packet.set_extra_length(record.original_length - record.bytes.len() as u32);
    packet.set_mac_to_start();
}

/// Sets how many bytes were cut off at capture. Annotations have a cache line of their own, which most packets need not touch.
#[inline]
fn annotate(packet: Option<&mut Packet>, place: &RecordPlace) {
    if let (Some(packet), length @ 1..) = (packet, place.original_length - place.length as u32) {
        packet.set_extra_length(length);
    }
}

/// Marks the IP header of a packet. A packet without one goes to output 1.
fn mark(cx: &mut Context, mut packet: Packet, link: LinkType) -> ReadResult {
    let Some((offset, length)) = link::ip_header(link, packet.data()) else {
        if cx.outputs() > 1 {
            cx.send(1, packet);
        } else {
            cx.drop(packet, Reason::NO_IP_HEADER);
        }
        return ReadResult::Nothing;
    };
    packet.set_network(offset as isize, length);
    if let Some(ip) = Ip4View::new(packet.network()).filter(|ip| ip.version() == 4) {
        let destination = ip.destination();
        packet.set_destination_ip(destination);
    }
    ReadResult::Packet(packet)
}
