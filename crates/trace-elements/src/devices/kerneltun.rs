//! `KernelTun`: a virtual IP interface of the host, connected to the router.

use element::prelude::*;

use super::tunnel::{CommonArguments, TunnelArguments, TunnelDevice};

/// Exchanges IP packets with the host's kernel through a tun interface that it creates.
///
/// The host's side has the address ADDR. Packets that the host sends to other addresses of that network leave by output
/// 0; anything other than IP leaves by output 1. Packets that enter the element must have their network header marked;
/// everything before it is removed. GATEWAY sets the host's default route. The interface exists as long as the router.
/// ```click
/// // Pings the host.
/// ICMPPingSource(10.9.0.2, 10.9.0.1, INTERVAL 0.1, LIMIT 3, VERBOSE false) -> tun :: KernelTun(10.9.0.1/24)
///     -> replies :: IPClassifier(src host 10.9.0.1 and icmp type echo-reply, -);
/// replies[0] -> c :: Counter -> Discard;
/// replies[1] -> Discard;
/// ```
/// ```expect
/// tun.packets = 3
/// c.count = 3
/// ```
/// ## Differences
/// Every task run reads all packets that have arrived. HEADROOM is at least 28.
#[derive(Args)]
#[element(
    name = "KernelTun",
    group = "devices",
    ports = "0-1/1-2",
    processing = "a/h",
    flow = "x/y",
    task,
    phase = "receiver",
    logs,
    see = "KernelTap, FromDevice, ToDevice",
    drops = "bad_version, no_ip_header, no_network_header, exceeds_mtu, not_sent, closed",
    fates = "received, delivered"
)]
pub struct KernelTunArgs {
    #[arg(flatten)]
    tunnel: CommonArguments,
    /// Whether the interface carries Ethernet frames.
    #[arg(default = "false")]
    tap: bool,
}

pub type KernelTun = TunnelDevice<KernelTunArgs>;

impl TunnelArguments for KernelTunArgs {
    fn into_common(self) -> (CommonArguments, bool) {
        (self.tunnel, self.tap)
    }
}
