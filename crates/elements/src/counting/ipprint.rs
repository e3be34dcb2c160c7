//! `IPPrint`: writes IPv4 packets to the log, as tcpdump does.

use core::fmt::Write;

use element::arguments::{ArgumentError, FileName, FromArgument, Word};
use element::number_format;
use element::prelude::*;
use packet::{TcpView, protocol};

use super::dump::{self, Contents};
use super::ipline::Subject;
use super::journal::Journal;

/// The length of a UDP header.
const UDP_LENGTH: usize = 8;

/// Writes a line for each IPv4 packet to the log: LABEL, time, addresses, ports and what its protocol tells.
///
/// ID, TTL, TOS, LENGTH, AGGREGATE and PAINT add the field or annotation. CONTENTS (of the packet) or PAYLOAD (of what
/// is behind the transport header) adds up to MAXLENGTH bytes as `HEX` or `ASCII`. Packets without a network header
/// pass unseen.
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
    /// What each line begins with.
    #[arg(position, default = "")]
    label: String,
    /// How to show the bytes of the packet: HEX, ASCII or NONE.
    #[arg(default = "NONE")]
    contents: Contents,
    /// How to show the bytes behind the transport header: HEX, ASCII or FALSE.
    #[arg(default = "FALSE")]
    payload: Payload,
    /// The most bytes to show; negative for all.
    #[arg(default = "1500")]
    maxlength: i32,
    /// An older name of MAXLENGTH.
    nbytes: Option<i32>,
    /// Whether to show the identification.
    #[arg(default = "false")]
    id: bool,
    /// Whether to show the time of the packet.
    #[arg(default = "true")]
    timestamp: bool,
    /// Whether to show the colour.
    #[arg(default = "false")]
    paint: bool,
    /// Whether to show the type of service.
    #[arg(default = "false")]
    tos: bool,
    /// Whether to show the time to live.
    #[arg(default = "false")]
    ttl: bool,
    /// Whether ICMP numbers are in network byte order.
    #[arg(default = "true")]
    swap: bool,
    /// Whether to show the length in the IP header.
    #[arg(default = "false")]
    length: bool,
    /// Whether to show the aggregate number.
    #[arg(default = "false")]
    aggregate: bool,
    /// Whether it prints at all.
    #[arg(default = "true")]
    active: bool,
    /// A file to write to instead of the log.
    outfile: Option<FileName>,
    /// Taken for Click's sake; there is one log.
    channel: Option<Word>,
}

/// How to show the bytes behind the transport header, which has other words than `Contents`.
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

/// The element.
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

/// What stands before byte `at`, in lines of `line` bytes and words of `word`.
fn space(at: usize, line: usize, word: usize) -> &'static str {
    match (at % line, at % word) {
        (0, _) => "\n  ",
        (_, 0) => " ",
        _ => "",
    }
}

/// The bytes behind the transport header, as far as it is known.
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
        Handler::write("active", "Starts or stops printing.", |print, cx, value| {
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
