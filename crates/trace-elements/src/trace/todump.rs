//! `ToDump`: writes packets to a capture file.

use super::link;
use capture::{LinkType, PcapEncoder};
use element::arguments::{FileName, Raw};
use element::prelude::*;
use element::{Signal, Writer, text};

/// Writes packets to a pcap capture file.
///
/// The extra length annotation is recorded as bytes cut off at capture. A packet without a timestamp gets the current
/// time. Packets continue to output 0 if it exists. Without it, the element empties a pull input.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true) -> dump :: ToDump(packets.pcap) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// dump.count = 3
/// c.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "ToDump",
    group = "trace",
    ports = "1/0-1",
    processing = "a/a",
    task,
    phase = "late",
    shards = "sum",
    sums = "count",
    logs,
    see = "FromDump, ToIPSummaryDump",
    drops = "not_sent",
    fates = "delivered"
)]
pub struct ToDumpArgs {
    /// Capture file; `-` for standard output.
    #[arg(position)]
    filename: FileName,
    /// Maximum bytes of a packet to write; 0 for all.
    #[arg(position, default = "2000")]
    snaplen: u32,
    /// Link type: ETHER, IP, FDDI, ATM, 802_11, SLL, AIRONET, HDLC, PPP_HDLC, PPP, SUNATM, PRISM, NULL, or `#` and a
    /// number.
    #[arg(position)]
    encap: Option<Raw>,
    /// Elements whose `encap` handlers give the link type.
    use_encap_from: Option<Raw>,
    /// Record the extra length annotation.
    #[arg(default = "true")]
    extra_length: bool,
    /// Flush the file after every batch.
    #[arg(default = "false")]
    unbuffered: bool,
    /// Write times with nanosecond precision.
    #[arg(default = "true")]
    nano: bool,
}

pub struct ToDump {
    args: ToDumpArgs,
    encoder: PcapEncoder,
    link: LinkType,
    writer: Option<Box<dyn Writer>>,
    /// Whether the file header is written.
    has_header: bool,
    /// Data to write next; kept to reuse its allocation.
    buffer: Vec<u8>,
    signal: Signal,
    count: u64,
}

impl Element for ToDump {
    type Args = ToDumpArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("count", "Packets written.", |dump| dump.count.to_string()),
        Handler::action("reset_counts", "Resets `count`.", |dump, _, _| {
            dump.count = 0;
            Ok(())
        }),
        Handler::read("filename", "Name of the file.", |dump| match dump.args.filename.0.as_str() {
            "-" => "<stdout>".into(),
            name => name.into(),
        }),
    ];

    fn new(args: ToDumpArgs, _: &mut Setup) -> Result<ToDump, SetupError> {
        let mut link = LinkType::ETHERNET;
        match (&args.encap, &args.use_encap_from) {
            (Some(_), Some(_)) => {
                return Err(SetupError::new("specify at most one of 'ENCAP' and 'USE_ENCAP_FROM'"));
            }
            (Some(Raw(name)), None) => {
                link = link::parse(&text::unquote(name))
                    .ok_or_else(|| SetupError::new("bad encapsulation type"))?;
            }
            (None, Some(Raw(names))) if text::words(names).is_empty() => {
                return Err(SetupError::new("element names missing after 'USE_ENCAP_FROM'"));
            }
            _ => {}
        }
        let encoder = PcapEncoder::new(link);
        let (signal, buffer) = (Signal::BUSY, Vec::new());
        Ok(ToDump { args, encoder, link, writer: None, has_header: false, buffer, signal, count: 0 })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        if let Some(Raw(names)) = &self.args.use_encap_from {
            self.link = common_link(cx, names)?;
        }
        let ToDumpArgs { filename: FileName(filename), snaplen, nano, .. } = &self.args;
        self.encoder = PcapEncoder::new(self.link).snapshot_length(*snaplen).nanoseconds(*nano);
        let writer = cx.environment().create(filename, false);
        self.writer = Some(writer.map_err(|error| SetupError::new(format!("{filename}: {error}")))?);
        if !cx.is_push_input(0) && cx.outputs() == 0 {
            self.signal = cx.upstream_signal(0);
            cx.schedule();
        }
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        let written = self.dump(cx, batch.as_slice());
        if cx.outputs() > 0 {
            cx.emit(0, batch);
        } else {
            end(cx, batch, written);
        }
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        let before = into.len();
        cx.pull(0, most, into);
        self.dump(cx, into.as_slice().get(before..).unwrap_or(&[]));
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        if self.writer.is_none() {
            return false;
        }
        let mut batch = cx.batch();
        let most = cx.take_turns().min(cx.batch_limit()).max(1);
        let count = cx.pull(0, most, &mut batch);
        let written = self.dump(cx, batch.as_slice());
        end(cx, batch, written);
        if count > 0 || self.signal.is_active() {
            cx.schedule();
        }
        count > 0
    }

    fn inherit(&mut self, old: &mut ToDump, _: &mut Context) {
        // Continue the previous element's file.
        if old.args.filename == self.args.filename && old.link == self.link && old.writer.is_some() {
            self.writer = old.writer.take();
            self.has_header = old.has_header;
        }
    }

    fn cleanup(&mut self, cx: &mut Context) {
        self.write(cx);
        if let Some(Err(error)) = self.writer.as_mut().map(|writer| writer.flush()) {
            cx.log(&format!("ToDump({}): {error}", self.args.filename.0));
        }
        self.writer = None;
    }
}

impl ToDump {
    /// Writes packets, until an error occurs; returns whether they were written.
    fn dump(&mut self, cx: &mut Context, packets: &[Packet]) -> bool {
        if self.writer.is_none() {
            return false;
        }
        for packet in packets {
            let time = if packet.timestamp().is_zero() { cx.now() } else { packet.timestamp() };
            let extra = if self.args.extra_length { packet.extra_length() } else { 0 };
            let original = (packet.len() as u32).wrapping_add(extra);
            self.encoder.record(time.nanos(), original, packet.data(), &mut self.buffer);
        }
        let written = self.write(cx);
        if written {
            self.count += packets.len() as u64;
        }
        written
    }

    /// Writes the buffer. An error is logged once and ends all writing.
    fn write(&mut self, cx: &Context) -> bool {
        let Some(writer) = &mut self.writer else { return false };
        // The header is not written earlier, because the element may take over a file that has one.
        let mut written = Ok(());
        if !core::mem::replace(&mut self.has_header, true) {
            written = writer.write(&self.encoder.file_header());
        }
        written = written.and_then(|()| writer.write(&self.buffer));
        self.buffer.clear();
        if self.args.unbuffered && written.is_ok() {
            written = writer.flush();
        }
        if let Err(error) = written {
            cx.log(&format!("ToDump({}): {error}", self.args.filename.0));
            self.writer = None;
            return false;
        }
        true
    }
}

/// Ends packets that were written, or could not be.
fn end(cx: &mut Context, batch: Batch, written: bool) {
    match written {
        true => cx.end_batch(batch, Fate::Delivered),
        false => cx.drop_batch(batch, Reason::NOT_SENT),
    }
}

/// The link type that all named elements agree on.
fn common_link(cx: &Context, names: &str) -> Result<LinkType, SetupError> {
    let mut common = None;
    for name in text::words(names) {
        let answer = cx
            .read_handler(&format!("{name}.encap"), "")
            .map_err(|_| SetupError::new(format!("‘{name}’ has no ‘encap’ read handler")))?;
        let link = link::parse(answer.trim()).ok_or_else(|| {
            SetupError::new(format!("‘{name}.encap’ did not return a valid encapsulation type"))
        })?;
        if common.is_some_and(|common| common != link) {
            return Err(SetupError::new("source encapsulation types disagree"));
        }
        common = Some(link);
    }
    common.ok_or_else(|| SetupError::new("element names missing after 'USE_ENCAP_FROM'"))
}
