//! `IPPrint`: logs IPv4 packets in the format of tcpdump.

use core::any::Any;
use core::fmt::Write;

use element::arguments::{ArgumentError, FileName, FromArgument, Word};
use element::number_format;
use element::prelude::*;
use packet::{EthernetView, TcpView, protocol};

use super::dump::{self, ContentsFormat};
use super::ipline::PacketParts;
use super::print_output::PrintOutput;

/// Length of an Ethernet header.
const ETHERNET_LENGTH: usize = 14;
/// Length of a UDP header.
const UDP_LENGTH: usize = 8;

/// Logs a line for each IPv4 packet: LABEL, timestamp, addresses, ports and protocol details.
///
/// ID, TTL, TOS, LENGTH, AGGREGATE, PAINT and ETHER add that field, annotation or header. CONTENTS adds bytes of the packet, PAYLOAD
/// bytes after the transport header: up to MAXLENGTH bytes, as `HEX` or `ASCII`. Packets without a network header pass
/// without a line.
///
/// Several IPPrint and ARPPrint may have the same OUTFILE. Its lines are in the order in which the packets passed, as in the log.
/// For that, the router processes packets one by one, which costs speed. With one element for each file it does not.
/// ```click
/// InfiniteSource(DATA \<4500001c 00010000 40110000 0a000001 0a000002 04d20035 00080000>, LIMIT 1, STOP true)
///   -> MarkIPHeader -> p :: IPPrint(ok, TIMESTAMP false) -> d :: Discard;
/// ```
/// ```expect
/// p.active = true
/// d.count = 1
/// ```
#[derive(Args)]
#[element(
    name = "IPPrint",
    group = "counting",
    ports = "1/1",
    processing = "a/a",
    logs,
    see = "Print, CheckIPHeader"
)]
pub struct IPPrintArgs {
    /// Text at the start of each line.
    #[arg(position, default = "")]
    label: String,
    /// Format of the packet's bytes: HEX, ASCII or NONE.
    #[arg(default = "NONE")]
    contents: ContentsFormat,
    /// Format of the bytes after the transport header: HEX, ASCII or FALSE.
    #[arg(default = "FALSE")]
    payload: PayloadFormat,
    /// Maximum number of bytes to print; negative for all.
    #[arg(default = "1500")]
    maxlength: i32,
    /// Older name of MAXLENGTH.
    nbytes: Option<i32>,
    /// Print the IP identification.
    #[arg(default = "false")]
    id: bool,
    /// Print the timestamp.
    #[arg(default = "true")]
    timestamp: bool,
    /// Print the paint annotation.
    #[arg(default = "false")]
    paint: bool,
    /// Print the type of service.
    #[arg(default = "false")]
    tos: bool,
    /// Print the time to live.
    #[arg(default = "false")]
    ttl: bool,
    /// Print ICMP identifiers and sequence numbers in network byte order.
    #[arg(default = "true")]
    swap: bool,
    /// Print the addresses of the Ethernet header before the IP header, if there is one.
    #[arg(default = "false")]
    ether: bool,
    /// Print the length from the IP header.
    #[arg(default = "false")]
    length: bool,
    /// Print the aggregate annotation.
    #[arg(default = "false")]
    aggregate: bool,
    /// Whether it prints.
    #[arg(default = "true")]
    active: bool,
    /// File to write to instead of the log.
    outfile: Option<FileName>,
    /// Accepted for compatibility with Click; there is one log.
    channel: Option<Word>,
}

/// Format of the bytes after the transport header, which has other keywords than `ContentsFormat`.
#[derive(Clone, Copy)]
struct PayloadFormat(ContentsFormat);

impl FromArgument for PayloadFormat {
    const KIND: &'static str = "FALSE, HEX or ASCII";

    fn from_argument(text: &str, setup: &Setup) -> Result<PayloadFormat, ArgumentError> {
        match Word::from_argument(text, setup)?.0.to_ascii_uppercase().as_str() {
            "NO" | "FALSE" => Ok(PayloadFormat(ContentsFormat::Nothing)),
            "YES" | "TRUE" | "HEX" => Ok(PayloadFormat(ContentsFormat::Hex)),
            "ASCII" => Ok(PayloadFormat(ContentsFormat::Ascii)),
            upper => Err(ArgumentError::semantic(format!(
                "bad payload value '{upper}'; should be 'false', 'hex', or 'ascii'"
            ))),
        }
    }
}

pub struct IPPrint {
    args: IPPrintArgs,
    output: PrintOutput,
}

impl IPPrint {
    fn line(&self, packet: &Packet) -> String {
        let args = &self.args;
        let mut line = String::new();
        // Writing to a string does not fail.
        if !args.label.is_empty() {
            let _ = write!(line, "{}: ", args.label);
        }
        if args.timestamp {
            let _ = write!(line, "{}: ", number_format::timestamp(packet.timestamp()));
        }
        if args.aggregate {
            let _ = write!(line, "#{}", packet.aggregate());
        }
        if args.paint {
            let _ = write!(line, "{}{}", if args.aggregate { "." } else { "paint " }, packet.paint());
        }
        if args.aggregate || args.paint {
            line.push_str(": ");
        }
        if args.ether
            && packet.mac().len() >= packet.network().len() + ETHERNET_LENGTH
            && let Some(ethernet) = EthernetView::new(packet.mac())
        {
            let _ = write!(line, "{} > {}: ", ethernet.source(), ethernet.destination());
        }
        let Some(parts) = PacketParts::new(packet) else {
            line.push_str("truncated-ip");
            return line;
        };
        let ip = &parts.ip;
        for (shown, name, value) in [
            (args.id, "id", ip.identification()),
            (args.ttl, "ttl", ip.ttl().into()),
            (args.tos, "tos", ip.tos().into()),
            (args.length, "length", ip.total_length()),
        ] {
            if shown {
                let _ = write!(line, "{name} {value} ");
            }
        }
        parts.describe(&mut line, args.swap);
        let PayloadFormat(shown) = args.payload;
        let payload = shown != ContentsFormat::Nothing;
        let bytes = if payload { payload_bytes(packet, &parts) } else { packet.data() };
        let bytes = dump::first(bytes, args.maxlength);
        match if payload { shown } else { args.contents } {
            ContentsFormat::Nothing => {}
            ContentsFormat::Hex => dump::hex(&mut line, bytes, |at| space(at, 24, 4)),
            ContentsFormat::Ascii => dump::ascii(&mut line, bytes, |at| space(at, 48, 8)),
        }
        line
    }
}

/// The separator before byte `at`, in lines of `line` bytes and words of `word` bytes.
fn space(at: usize, line: usize, word: usize) -> &'static str {
    match (at % line, at % word) {
        (0, _) => "\n  ",
        (_, 0) => " ",
        _ => "",
    }
}

/// The bytes after the transport header, if its length is known.
fn payload_bytes<'a>(packet: &'a Packet, parts: &PacketParts) -> &'a [u8] {
    let transport = packet.transport();
    let skip = match parts.ip.protocol() {
        _ if !parts.ip.is_first_fragment() => 0,
        protocol::TCP => TcpView::new(transport).map_or(transport.len(), |tcp| tcp.header_length()),
        protocol::UDP => UDP_LENGTH,
        _ => 0,
    };
    transport.get(skip..).unwrap_or(&[])
}

impl Filter for IPPrint {
    type Args = IPPrintArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("active", "Whether it prints.", |print| print.args.active.to_string()),
        Handler::setting("active", "Turns printing on or off.", |print, cx, value| {
            print.args.active = cx.data(value)?;
            Ok(())
        }),
    ];

    fn new(mut args: IPPrintArgs, setup: &mut Setup) -> Result<IPPrint, SetupError> {
        if args.contents != ContentsFormat::Nothing && args.payload.0 != ContentsFormat::Nothing {
            return Err(SetupError::new("specify at most one of PAYLOAD and CONTENTS"));
        }
        // There is one log.
        args.channel = None;
        // Lines of several of these come in the order in which packets pass them.
        PrintOutput::keep_order(setup, args.outfile.as_ref());
        args.maxlength = args.nbytes.unwrap_or(args.maxlength);
        Ok(IPPrint { args, output: PrintOutput::default() })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.output = PrintOutput::open(cx, self.args.outfile.as_ref())?;
        Ok(())
    }

    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict {
        if self.args.active && packet.has_network() {
            self.output.write(cx, self.line(&packet));
        }
        Verdict::Pass(packet)
    }

    fn export(&self) -> Option<Rc<dyn Any>> {
        self.output.export()
    }

    fn cleanup(&mut self, _: &mut Context) {
        self.output.flush();
    }
}
