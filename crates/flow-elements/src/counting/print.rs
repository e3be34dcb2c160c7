//! `Print`: logs packets.

use core::fmt::Write;

use element::number_format;
use element::prelude::*;

use super::dump::{self, ContentsFormat};

/// Logs a line for each packet: LABEL, length and up to MAXLENGTH bytes.
///
/// CONTENTS selects the format of the bytes. TIMESTAMP adds the timestamp before the length; HEADROOM adds headroom and
/// tailroom, and PRINTANNO the annotations, after it.
///
/// ## Differences
///
/// Headroom and tailroom are those of Clickbox's buffers.
/// ```click
/// InfiniteSource(DATA \<01 02 03 04 05>, LIMIT 2, STOP true) -> p :: Print(ok, 3) -> d :: Discard;
/// ```
/// ```expect
/// p.active = true
/// d.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "Print",
    group = "counting",
    ports = "1/1",
    processing = "a/a",
    logs,
    see = "IPPrint, Counter"
)]
pub struct PrintArgs {
    /// Text at the start of each line.
    #[arg(position, default = "")]
    label: String,
    /// Maximum number of bytes to print; negative for all.
    #[arg(position, default = "24")]
    maxlength: i32,
    /// Older name of MAXLENGTH.
    #[arg(deprecated)]
    length: Option<i32>,
    /// Older name of MAXLENGTH.
    #[arg(deprecated)]
    nbytes: Option<i32>,
    /// Format of the bytes: HEX, ASCII or NONE.
    #[arg(default = "HEX")]
    contents: ContentsFormat,
    /// Print the timestamp.
    #[arg(default = "false")]
    timestamp: bool,
    /// Print the annotations.
    #[arg(default = "false")]
    printanno: bool,
    /// Print headroom and tailroom.
    #[arg(default = "false")]
    headroom: bool,
    /// Whether it prints.
    #[arg(default = "true")]
    active: bool,
}

pub struct Print {
    args: PrintArgs,
}

impl Print {
    /// The line for a packet.
    fn line(&self, packet: &Packet) -> String {
        let args = &self.args;
        let mut line = args.label.clone();
        let mut separator = if line.is_empty() { "" } else { ": " };
        if args.timestamp {
            line.push_str(separator);
            line.push_str(&number_format::timestamp(packet.timestamp()));
            separator = ": ";
        }
        // Writing to a string does not fail.
        let _ = write!(line, "{separator}{:4}", packet.len());
        if args.headroom {
            let _ = write!(line, " (h{} t{})", packet.headroom(), packet.tailroom());
        }
        if args.printanno {
            line.push_str(" | ");
            dump::hex(&mut line, packet.annotations(), |_| "");
        }
        let bytes = dump::first(packet.data(), args.maxlength);
        if args.contents != ContentsFormat::Nothing && !bytes.is_empty() {
            line.push_str(" | ");
        }
        match args.contents {
            ContentsFormat::Nothing => {}
            ContentsFormat::Hex => {
                dump::hex(&mut line, bytes, |at| if at > 0 && at % 4 == 0 { " " } else { "" });
            }
            ContentsFormat::Ascii => dump::ascii(&mut line, bytes, |at| if at % 8 == 0 { " " } else { "" }),
        }
        line
    }
}

impl Filter for Print {
    type Args = PrintArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("active", "Whether it prints.", |print| print.args.active.to_string()),
        Handler::setting("active", "Turns printing on or off.", |print, cx, value| {
            print.args.active = cx.data(value)?;
            Ok(())
        }),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(mut args: PrintArgs, setup: &mut Setup) -> Result<Print, SetupError> {
        // Lines of several of these come in the order in which packets pass them.
        setup.logs_packets = true;
        args.maxlength = args.nbytes.or(args.length).unwrap_or(args.maxlength);
        Ok(Print { args })
    }

    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict {
        if self.args.active {
            cx.log(&self.line(&packet));
        }
        Verdict::Pass(packet)
    }
}
