//! `ARPFaker`: sends unsolicited ARP replies.

use core::net::Ipv4Addr;

use element::prelude::*;
use packet::MacAddr;

use super::arp::{Endpoint, reply};

/// Sends a gratuitous ARP reply every 10 seconds: it tells DSTIP at DSTETH that SRCIP has the Ethernet address SRCETH.
///
/// The first reply leaves after one second. To answer ARP requests, use `ARPResponder`.
/// ```click
/// ARPFaker(1.0.0.1, 1:1:1:1:1:1, 1.0.0.2, 2:2:2:2:2:2) -> c :: Counter -> Discard;
/// Script(wait 12s, stop);
/// ```
/// ```expect
/// c.count = 2
/// c.byte_count = 84
/// ```
#[derive(Args)]
#[element(
    name = "ARPFaker",
    group = "ethernet",
    ports = "0/1",
    processing = "h/h",
    shards = "independent",
    see = "ARPQuerier, ARPResponder",
    fates = "made"
)]
pub struct ARPFakerArgs {
    /// IP address of the receiver.
    #[arg(position)]
    dstip: Ipv4Addr,
    /// Ethernet address of the receiver.
    #[arg(position)]
    dsteth: MacAddr,
    /// Advertised IP address.
    #[arg(position)]
    srcip: Ipv4Addr,
    /// Advertised Ethernet address.
    #[arg(position)]
    srceth: MacAddr,
}

/// Delay before the first reply.
const FIRST_DELAY: Timestamp = Timestamp::from_parts(1, 0);
/// Interval between replies.
const PERIOD: Timestamp = Timestamp::from_parts(10, 0);

pub struct ARPFaker {
    sender: Endpoint,
    target: Endpoint,
}

impl Element for ARPFaker {
    type Args = ARPFakerArgs;

    fn new(args: ARPFakerArgs, _: &mut Setup) -> Result<ARPFaker, SetupError> {
        let sender = Endpoint { mac: args.srceth, ip: args.srcip };
        Ok(ARPFaker { sender, target: Endpoint { mac: args.dsteth, ip: args.dstip } })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        cx.set_timer_after(0, FIRST_DELAY);
        Ok(())
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        if let Some(packet) = reply(cx, self.sender, self.target) {
            cx.send(0, packet);
        }
        cx.set_timer_after(0, PERIOD);
    }
}
