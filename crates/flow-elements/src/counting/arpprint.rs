//! `ARPPrint`: logs ARP packets in the format of tcpdump.

use core::any::Any;
use core::fmt::Write;

use element::arguments::FileName;
use element::number_format;
use element::prelude::*;
use packet::{ArpView, EthernetView, MacAddr};

use super::print_output::PrintOutput;

/// Length of an Ethernet header.
const ETHERNET_LENGTH: isize = 14;
/// ARP protocol type of IPv4.
const PROTOCOL_IP: u16 = 0x0800;
const PROTOCOL_TRAILER: u16 = 0x1000;
/// Length of an ARP packet for IPv4 over Ethernet.
const ARP_LENGTH: usize = 28;
const FIXED_LENGTH: usize = 8;

/// Logs a line for each ARP packet: LABEL, timestamp, and the request or reply.
///
/// With ETHER, it adds the addresses of the Ethernet header. Packets without a network header, and ARP packets for
/// protocols other than IPv4, pass without a line.
/// ```click
/// InfiniteSource(DATA \<0001 0800 06 04 0001 000001020304 0a000001 000000000000 0a000002>, LIMIT 1, STOP true)
///   -> MarkIPHeader -> p :: ARPPrint(ok, TIMESTAMP false) -> d :: Discard;
/// ```
/// ```expect
/// p.active = true
/// d.count = 1
/// ```
#[derive(Args)]
#[element(
    name = "ARPPrint",
    group = "counting",
    ports = "1/1",
    processing = "a/a",
    logs,
    see = "Print, IPPrint"
)]
pub struct ARPPrintArgs {
    /// Text at the start of each line.
    #[arg(position, default = "")]
    label: String,
    /// Print the timestamp.
    #[arg(default = "true")]
    timestamp: bool,
    /// Print the Ethernet addresses.
    #[arg(default = "false")]
    ether: bool,
    /// Whether it prints.
    #[arg(default = "true")]
    active: bool,
    /// File to write to instead of the log.
    outfile: Option<FileName>,
}

pub struct ARPPrint {
    args: ARPPrintArgs,
    output: PrintOutput,
}

/// The Ethernet header before the network header, if the packet has room for one.
fn ethernet(packet: &Packet) -> Option<EthernetView<'_>> {
    let start = packet.mac_offset().unwrap_or(0);
    if start + ETHERNET_LENGTH > packet.network_offset()? {
        return None;
    }
    EthernetView::new(if packet.mac_offset().is_some() { packet.mac() } else { packet.data() })
}

impl ARPPrint {
    /// The line for a packet; `None` if it is not ARP for IPv4.
    fn line(&self, packet: &Packet) -> Option<String> {
        let args = &self.args;
        let mut line = String::new();
        // Writing to a string does not fail.
        if !args.label.is_empty() {
            let _ = write!(line, "{}: ", args.label);
        }
        if args.timestamp {
            let _ = write!(line, "{}: ", number_format::timestamp(packet.timestamp()));
        }
        if args.ether
            && let Some(ethernet) = ethernet(packet)
        {
            let _ = write!(line, "{} > {}: ", ethernet.source(), ethernet.destination());
        }
        // A truncated packet shows the fields that it has. ARP for other protocols is not printed.
        let mut whole = [0; ARP_LENGTH];
        let bytes = packet.network();
        if bytes.len() < FIXED_LENGTH {
            let _ = write!(line, "truncated-arp ({})", bytes.len());
            return Some(line);
        }
        whole.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        let arp = ArpView::new(&whole)?;
        let about_ip = [PROTOCOL_IP, PROTOCOL_TRAILER].contains(&arp.protocol());
        if !about_ip || arp.protocol_length() != 4 || arp.hardware_length() == 0 {
            return None;
        }
        if bytes.len() < ARP_LENGTH {
            let _ = write!(line, "truncated-arp ({})", bytes.len());
            return Some(line);
        }
        if arp.protocol() == PROTOCOL_TRAILER {
            line.push_str("trailer-");
        }
        describe(&arp, &mut line);
        if arp.hardware() != 1 {
            let _ = write!(line, "hardware #{}", arp.hardware());
        }
        Some(line)
    }
}

/// Appends the request or reply.
fn describe(arp: &ArpView, line: &mut String) {
    let (sender, target) = (arp.sender_mac(), arp.target_mac());
    // Writing to a string does not fail.
    let _ = match arp.operation() {
        1 if target == MacAddr([0; 6]) => {
            write!(line, "arp who-has {} tell {}", arp.target_ip(), arp.sender_ip())
        }
        1 => write!(line, "arp who-has {} ({target}) tell {}", arp.target_ip(), arp.sender_ip()),
        2 => write!(line, "arp reply {} is-at {sender}", arp.sender_ip()),
        3 => write!(line, "rarp who-is {target} tell {sender}"),
        4 => write!(line, "rarp reply {target} at {}", arp.target_ip()),
        8 => write!(line, "invarp who-is {target} tell {sender}"),
        9 => write!(line, "invarp reply {target} at {}", arp.target_ip()),
        other => write!(line, "arp-#{other}"),
    };
}

impl Filter for ARPPrint {
    type Args = ARPPrintArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("active", "Whether it prints.", |print| print.args.active.to_string()),
        Handler::setting("active", "Turns printing on or off.", |print, cx, value| {
            print.args.active = cx.data(value)?;
            Ok(())
        }),
    ];

    fn new(args: ARPPrintArgs, setup: &mut Setup) -> Result<ARPPrint, SetupError> {
        // Lines of several of these come in the order in which packets pass them.
        PrintOutput::keep_order(setup, args.outfile.as_ref());
        Ok(ARPPrint { args, output: PrintOutput::default() })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.output = PrintOutput::open(cx, self.args.outfile.as_ref())?;
        Ok(())
    }

    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict {
        if self.args.active
            && packet.has_network()
            && let Some(line) = self.line(&packet)
        {
            self.output.write(cx, line);
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
