//! `IP6Print`: logs IPv6 packets.

use core::fmt::Write;

use element::prelude::*;
use packet::{Ip6Text, Ip6View};

use super::dump;

/// Logs a line for each IPv6 packet: LABEL, addresses, payload length, next header and hop limit.
///
/// With CONTENTS true, it adds up to NBYTES bytes of the packet in hexadecimal. Packets without a complete IPv6 header
/// pass without a line.
/// ```click
/// InfiniteSource(DATA \<60000000 00003b40 fe800000 00000000 00000000 00000001 ff020000 00000000 00000000 00000001>,
///   LIMIT 1, STOP true) -> MarkIP6Header -> IP6Print(ok) -> d :: Discard;
/// ```
/// ```expect
/// d.count = 1
/// ```
#[derive(Args)]
#[element(
    name = "IP6Print",
    group = "counting",
    ports = "1/1",
    processing = "a/a",
    logs,
    see = "Print, IPPrint"
)]
pub struct IP6PrintArgs {
    /// Text at the start of each line.
    #[arg(position, default = "")]
    label: String,
    /// Print the bytes of the packet.
    #[arg(default = "false")]
    contents: bool,
    /// Maximum number of bytes to print.
    #[arg(default = "1500")]
    nbytes: u32,
}

pub struct IP6Print {
    args: IP6PrintArgs,
}

impl IP6Print {
    fn line(&self, packet: &Packet) -> Option<String> {
        let args = &self.args;
        let ip = Ip6View::new(packet.network())?;
        let mut line = String::new();
        // Writing to a string does not fail.
        if !args.label.is_empty() {
            let _ = write!(line, "{}: ", args.label);
        }
        let (source, destination) = (Ip6Text(ip.source()), Ip6Text(ip.destination()));
        let (length, next, hops) = (ip.payload_length(), ip.next_header(), ip.hop_limit());
        let _ = write!(line, "{source} -> {destination} plen {length}, next {next}, hlim {hops}");
        if args.contents {
            line.push_str("\n  ");
            let bytes = dump::first(packet.data(), i32::try_from(args.nbytes).unwrap_or(-1));
            for (index, byte) in bytes.iter().enumerate() {
                let end = match index {
                    _ if index % 24 == 23 => "\n  ",
                    _ if index % 4 == 3 => " ",
                    _ => "",
                };
                let _ = write!(line, "{byte:02x}{end}");
            }
        }
        Some(line)
    }
}

impl Filter for IP6Print {
    type Args = IP6PrintArgs;

    fn new(args: IP6PrintArgs, setup: &mut Setup) -> Result<IP6Print, SetupError> {
        // Lines of several of these come in the order in which packets pass them.
        setup.logs_packets = true;
        Ok(IP6Print { args })
    }

    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict {
        if let Some(line) = self.line(&packet) {
            cx.log(&line);
        }
        Verdict::Pass(packet)
    }
}
