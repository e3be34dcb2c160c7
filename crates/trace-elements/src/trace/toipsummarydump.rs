//! `ToIPSummaryDump`: writes a summary line for each packet.

use super::multipacket::{extra_packets, share};
use super::summary::{self, Field};
use element::arguments::{FileName, Raw};
use element::prelude::*;
use element::{Signal, Writer, text};
use packet::annotation;

/// Writes selected fields of each packet to a file, as a line of text or a binary record.
///
/// A field that a packet does not have is printed as a dash. The prefix `ip_` may be omitted. Fields:
///
/// - packet: `timestamp ntimestamp ts_sec ts_usec ts_usec1 first_timestamp count link direction aggregate wire_len`;
/// - Ethernet: `eth_src eth_dst eth_type`;
/// - IP: `ip_src ip_dst ip_tos ip_dscp ip_ecn ip_ttl ip_frag ip_fragoff ip_id ip_sum ip_proto ip_hl ip_len
///   ip_capture_len ip_opt`;
/// - ports: `sport dport`;
/// - TCP: `tcp_seq tcp_ack tcp_off tcp_flags tcp_window tcp_urp tcp_opt tcp_ntopt tcp_sack`;
/// - UDP: `udp_len`;
/// - ICMP: `icmp_type icmp_code icmp_type_name icmp_code_name icmp_flowid icmp_seq icmp_nextmtu`;
/// - payload: `payload payload_len payload_md5 payload_md5_hex`.
///
/// The extra length annotation of each packet is set to the number of bytes that exceed its IP length.
///
/// ## Differences
///
/// `ts_usec1` has its microseconds, and binary `ntimestamp` its seconds and nanoseconds, in the correct order, and binary
/// options are written once; Click has errors in all three. VERBOSE does not name the host.
/// ```click
/// InfiniteSource(DATA \<45 00 001C 0000 0000 40 11 0000 0A000001 0A000002 0007 0035 0008 0000>, LIMIT 3, STOP true)
///     -> MarkIPHeader -> dump :: ToIPSummaryDump(lines.txt, FIELDS ip_src ip_dst dport)
///     -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "ToIPSummaryDump",
    group = "trace",
    ports = "1/0-1",
    processing = "a/h",
    task,
    logs,
    see = "FromIPSummaryDump, ToDump",
    drops = "not_sent",
    fates = "delivered"
)]
pub struct ToIPSummaryDumpArgs {
    /// Output file; `-` for standard output.
    #[arg(position)]
    filename: FileName,
    /// Fields to write, separated by spaces.
    fields: Option<Raw>,
    /// The same as FIELDS.
    contents: Option<Raw>,
    /// The same as FIELDS.
    #[arg(deprecated)]
    data: Option<Raw>,
    /// Write the time of the run at the start.
    #[arg(default = "false")]
    verbose: bool,
    /// Write the lines that describe the dump.
    #[arg(default = "true")]
    header: bool,
    /// Name of the producer, written at the start.
    banner: Option<String>,
    /// Write one line for each packet that the packet-count annotation counts.
    #[arg(default = "false")]
    multipacket: bool,
    /// Write a line about invalid headers before such a packet.
    #[arg(default = "false")]
    bad_packets: bool,
    /// Treat packets shorter than their IP length as invalid.
    #[arg(default = "true")]
    careful_trunc: bool,
    /// Include the extra length annotation in lengths.
    #[arg(default = "true")]
    extra_length: bool,
    /// Write binary records.
    #[arg(default = "false")]
    binary: bool,
}

pub struct ToIPSummaryDump {
    args: ToIPSummaryDumpArgs,
    format: summary::Writer,
    file: Option<Box<dyn Writer>>,
    /// The lines that start the dump, until they are written.
    header: Vec<u8>,
    /// Data to write next; kept to reuse its allocation.
    buffer: Vec<u8>,
    signal: Signal,
}

/// Buffer size at which it is written.
const FLUSH_SIZE: usize = 1 << 16;

impl Element for ToIPSummaryDump {
    type Args = ToIPSummaryDumpArgs;
    const HANDLERS: &'static [Handler<Self>] =
        &[Handler::action("flush", "Flushes the file.", |dump, cx, _| {
            dump.write(cx);
            dump.flush(cx);
            Ok(())
        })];

    fn new(args: ToIPSummaryDumpArgs, setup: &mut Setup) -> Result<ToIPSummaryDump, SetupError> {
        // Not batched, so that lines of several dumps are interleaved by packet on standard output.
        setup.unbatched = args.filename.0 == "-";
        let chosen = args.fields.as_ref().or(args.contents.as_ref()).or(args.data.as_ref());
        let names = chosen.map_or("timestamp ip_src", |Raw(names)| names);
        let mut fields = Vec::new();
        let mut errors = SetupError::default();
        for word in text::words(names) {
            let name = text::unquote(&word);
            match Field::find(&name) {
                Some(field) => fields.push(field),
                None => errors.merge(SetupError::new(format!("unknown content type '{name}'"))),
            }
        }
        if fields.is_empty() {
            errors.merge(SetupError::new("no contents specified"));
        }
        let mut format = summary::Writer::new(fields);
        format.binary = args.binary;
        format.bad_packets = args.bad_packets;
        format.careful = args.careful_trunc;
        format.extra_length = args.extra_length;
        if let Some(field) = format.not_binary().filter(|_| args.binary) {
            errors.merge(SetupError::new(format!("cannot use field {} with BINARY", field.name())));
        }
        errors.into_result()?;
        Ok(ToIPSummaryDump {
            args,
            format,
            file: None,
            header: Vec::new(),
            buffer: Vec::new(),
            signal: Signal::BUSY,
        })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let path = &self.args.filename.0;
        let file = cx.environment().create(path, false);
        self.file = Some(file.map_err(|error| SetupError::new(format!("{path}: {error}")))?);
        if self.args.header {
            let mut comments = Vec::new();
            if let Some(banner) = &self.args.banner {
                comments.push(format!("!creator {}", summary::quoted(banner.as_bytes())));
            }
            if self.args.verbose {
                comments.push(format!("!runtime {}", cx.now()));
            }
            self.format.header(&comments, &mut self.header);
            if path == "-" {
                self.write(cx);
            }
        }
        if !cx.is_push_input(0) {
            self.signal = cx.upstream_signal(0);
            cx.schedule();
        }
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, _: usize, mut batch: Batch) {
        self.dump(cx, &mut batch);
        if cx.outputs() > 0 {
            cx.emit(0, batch);
        } else if self.file.is_some() {
            cx.end_batch(batch, Fate::Delivered);
        } else {
            cx.drop_batch(batch, Reason::NOT_SENT);
        }
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        let mut batch = cx.batch();
        let most = cx.take_turns().min(cx.batch_limit()).max(1);
        let count = cx.pull(0, most, &mut batch);
        self.push(cx, 0, batch);
        if count > 0 || self.signal.is_active() {
            cx.schedule();
        }
        count > 0
    }

    fn inherit(&mut self, old: &mut ToIPSummaryDump, _: &mut Context) {
        // Continue the previous element's file.
        let same = old.args.filename == self.args.filename && old.format.fields == self.format.fields;
        if same && old.format.binary == self.format.binary && old.file.is_some() {
            self.file = old.file.take();
            self.header = core::mem::take(&mut old.header);
        }
    }

    fn cleanup(&mut self, cx: &mut Context) {
        self.write(cx);
        self.flush(cx);
        self.file = None;
    }
}

impl ToIPSummaryDump {
    fn dump(&mut self, cx: &Context, batch: &mut Batch) {
        if self.file.is_none() {
            return;
        }
        let count_is_told = self.format.fields.contains(&Field::Count);
        for packet in batch.as_mut_slice() {
            if self.args.multipacket && !count_is_told && extra_packets(packet) > 0 {
                self.dump_represented(cx, packet);
            } else {
                self.format.packet(packet, &mut self.buffer);
            }
            if self.buffer.len() > FLUSH_SIZE {
                self.write(cx);
            }
        }
        self.write(cx);
    }

    /// Writes a packet once for each packet that it represents, with equal spacing in time and about equal lengths.
    fn dump_represented(&mut self, cx: &Context, packet: &mut Packet) {
        let more = extra_packets(packet);
        let count = u64::from(more) + 1;
        let own = packet.len() as u64;
        let extra = if self.args.extra_length { u64::from(packet.extra_length()) } else { 0 };
        let mut total = (own + extra).max(count * own);
        let end = packet.timestamp();
        let mut delta = Timestamp::ZERO;
        if !packet.first_timestamp().is_zero() {
            delta = share(end - packet.first_timestamp(), more);
            let first = packet.first_timestamp();
            packet.set_timestamp(first);
        }
        let offset = annotation::EXTRA_PACKETS.offset.into();
        packet.set_annotation_u32(offset, 0);
        for left in (1..=count).rev() {
            let length = total / left;
            packet.set_extra_length((length - own) as u32);
            total -= length;
            self.format.packet(packet, &mut self.buffer);
            if self.buffer.len() > FLUSH_SIZE {
                self.write(cx);
            }
            let time = if left == 1 { end } else { packet.timestamp() + delta };
            packet.set_timestamp(time);
        }
    }

    /// Writes the buffer. An error is logged once and ends all writing.
    fn write(&mut self, cx: &Context) {
        let Some(file) = &mut self.file else { return };
        // The header is not written earlier, because the element may take over a file that has one.
        let header = core::mem::take(&mut self.header);
        let written = file.write(&header).and_then(|()| file.write(&self.buffer));
        self.buffer.clear();
        if let Err(error) = written {
            cx.log(&format!("ToIPSummaryDump({}): {error}", self.args.filename.0));
            self.file = None;
        }
    }

    fn flush(&mut self, cx: &Context) {
        if let Some(Err(error)) = self.file.as_mut().map(|file| file.flush()) {
            cx.log(&format!("ToIPSummaryDump({}): {error}", self.args.filename.0));
        }
    }
}
