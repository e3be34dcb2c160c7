//! `KernelTap`: a virtual Ethernet interface of the host, connected to the router.

use element::prelude::*;

use super::tunnel::{CommonArguments, TunnelArguments, TunnelDevice};

/// Exchanges Ethernet frames with the host's kernel through a tap interface that it creates.
///
/// The host's side has the address ADDR and the Ethernet address ETHER. Frames that the host sends leave by output 0;
/// frames that enter the element reach the host. GATEWAY sets the host's default route. The interface exists as long as
/// the router.
/// ```click
/// // Pings the host, whose Ethernet address an ARPQuerier finds out.
/// ICMPPingSource(10.9.0.2, 10.9.0.1, INTERVAL 0.1, LIMIT 3, VERBOSE false)
///     -> arp :: ARPQuerier(10.9.0.2/24, 2:2:2:2:2:2);
/// arp -> tap :: KernelTap(10.9.0.1/24) -> kind :: Classifier(12/0806 20/0002, 12/0800, -);
/// kind[0] -> [1]arp;
/// kind[1] -> Strip(14) -> CheckIPHeader -> replies :: Counter -> Discard;
/// kind[2] -> Discard;
/// ```
/// ```expect
/// tap.packets = 4
/// replies.count = 3
/// ```
/// ## Differences
/// Every task run reads all packets that have arrived. HEADROOM is at least 28.
#[derive(Args)]
#[element(
    name = "KernelTap",
    group = "devices",
    ports = "0-1/1-2",
    processing = "a/h",
    flow = "x/y",
    task,
    phase = "receiver",
    logs,
    see = "KernelTun, FromDevice, ToDevice",
    drops = "too_short, exceeds_mtu, not_sent, closed",
    fates = "received, delivered"
)]
pub struct KernelTapArgs {
    #[arg(flatten)]
    tunnel: CommonArguments,
    /// Whether the interface carries Ethernet frames.
    #[arg(default = "true")]
    tap: bool,
}

pub type KernelTap = TunnelDevice<KernelTapArgs>;

impl TunnelArguments for KernelTapArgs {
    fn into_common(self) -> (CommonArguments, bool) {
        (self.tunnel, self.tap)
    }
}
