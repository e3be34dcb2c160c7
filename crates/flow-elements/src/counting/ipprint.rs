//! `IPPrint`: writes IPv4 packets to the log, as tcpdump does.

use core::fmt::Write;

use element::arguments::{ArgumentError, FileName, FromArgument, Word};
use element::number_format;
use element::prelude::*;
use packet::{TcpView, protocol};

use super::dump::{self, Contents};
use super::ipline::Subject;
use super::journal::Journal;

/// Length of a UDP header.
const UDP_LENGTH: usize = 8;

/// Logs a line for each IPv4 packet: LABEL, timestamp, addresses, ports and protocol details.
///
/// ID, TTL, TOS, LENGTH, AGGREGATE and PAINT add that field or annotation. CONTENTS adds bytes of the packet, PAYLOAD
/// bytes after the transport header: up to MAXLENGTH bytes, as `HEX` or `ASCII`. Packets without a network header pass
/// without a line.
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
    see = "Print, CheckIPHeader"
)]
pub struct IPPrintArgs {
    /// Text at the start of each line.
    #[arg(position, default = "")]
    label: String,
    /// Format of the packet's bytes: HEX, ASCII or NONE.
    #[arg(default = "NONE")]
    contents: Contents,
    /// Format of the bytes after the transport header: HEX, ASCII or FALSE.
    #[arg(default = "FALSE")]
    payload: Payload,
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

/// Format of the bytes after the transport header, which has other keywords than `Contents`.
#[derive(Clone, Copy)]
struct Payload(Contents);

impl FromArgument for Payload {
    const KIND: &'static str = "FALSE, HEX or ASCII";

    fn from_argument(text: &str, setup: &Setup) -> Result<Payload, ArgumentError> {
        match Word::from_argument(text, setup)?.0.to_ascii_uppercase().as_str() {
            "NO" | "FALSE" => Ok(Payload(Contents::Nothing)),
            "YES" | "TRUE" | "HEX" => Ok(Payload(Contents::Hex)),
            "ASCII" => Ok(Payload(Contents::Ascii)),
            upper => Err(ArgumentError::later(format!(
                "bad payload value '{upper}'; should be 'false', 'hex', or 'ascii'"
            ))),
        }
    }
}

pub struct IPPrint {
    args: IPPrintArgs,
    journal: Journal,
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
        let Some(subject) = Subject::new(packet) else {
            line.push_str("truncated-ip");
            return line;
        };
        let ip = &subject.ip;
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
        subject.describe(&mut line, args.swap);
        let Payload(shown) = args.payload;
        let payload = shown != Contents::Nothing;
        let bytes = if payload { behind(packet, &subject) } else { packet.data() };
        let bytes = dump::first(bytes, args.maxlength);
        match if payload { shown } else { args.contents } {
            Contents::Nothing => {}
            Contents::Hex => dump::hex(&mut line, bytes, |at| space(at, 24, 4)),
            Contents::Ascii => dump::ascii(&mut line, bytes, |at| space(at, 48, 8)),
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
fn behind<'a>(packet: &'a Packet, subject: &Subject) -> &'a [u8] {
    let transport = packet.transport();
    let skip = match subject.ip.protocol() {
        _ if !subject.ip.is_first_fragment() => 0,
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
        Handler::write("active", "Turns printing on or off.", |print, cx, value| {
            print.args.active = cx.data(value)?;
            Ok(())
        }),
    ];

    fn new(mut args: IPPrintArgs, setup: &mut Setup) -> Result<IPPrint, SetupError> {
        if args.contents != Contents::Nothing && args.payload.0 != Contents::Nothing {
            return Err(SetupError::new("specify at most one of PAYLOAD and CONTENTS"));
        }
        // There is one log.
        args.channel = None;
        // Lines of several of these come in the order in which packets pass them.
        setup.unbatched = true;
        args.maxlength = args.nbytes.unwrap_or(args.maxlength);
        Ok(IPPrint { args, journal: Journal::default() })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.journal = Journal::open(cx, self.args.outfile.as_ref())?;
        Ok(())
    }

    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict {
        if self.args.active && packet.has_network() {
            self.journal.write(cx, self.line(&packet));
        }
        Verdict::Pass(packet)
    }

    fn cleanup(&mut self, _: &mut Context) {
        self.journal.flush();
    }
}
