//! `KernelTun`: a virtual IP interface of the host, connected to the router.

use element::prelude::*;

use super::tunnel::{Kind, TunnelArguments, Tunnelled};

/// Exchanges IP packets with the host's kernel through a tun interface that it creates.
///
/// The host's side has the address ADDR. Packets that the host sends to other addresses of that network leave by output
/// 0; anything else than IP leaves by output 1. Packets that enter the element must have their network header marked;
/// everything before it is removed. GATEWAY sets the host's default route. The interface exists as long as the router.
/// ```click
/// // KernelTun(10.9.0.1/24) -> Discard; answers whoever pings 10.9.0.1, and sees pings of 10.9.0.2.
/// InfiniteSource(LIMIT 1, STOP true) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 1
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
    see = "KernelTap, FromDevice, ToDevice",
    drops = "too_short, bad_version, no_ip_header, no_network_header, exceeds_mtu, not_sent, closed"
)]
pub struct KernelTunArgs {
    #[arg(flatten)]
    tunnel: TunnelArguments,
    /// Whether the interface carries Ethernet frames.
    #[arg(default = "false")]
    tap: bool,
}

/// The element.
pub type KernelTun = Tunnelled<KernelTunArgs>;

impl Kind for KernelTunArgs {
    fn tunnel(self) -> (TunnelArguments, bool) {
        (self.tunnel, self.tap)
    }
}
