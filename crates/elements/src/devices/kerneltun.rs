//! `KernelTun`: a virtual interface whose other side is the router.

use element::prelude::*;

use super::tunnel::{Kind, TunnelArguments, Tunnelled};

/// Exchanges IP packets with the host's kernel, over a virtual interface that it makes.
///
/// The host's end has the address of ADDR; packets that the host sends to others of that network come out of output 0,
/// what is not IP out of output 1. Packets that go in must have their network header marked; what is in front of it is
/// taken off. GATEWAY is set as the host's default route. The interface goes when the router does.
/// ```click
/// // KernelTun(10.9.0.1/24) -> Discard; answers whoever pings 10.9.0.1, and sees pings of 10.9.0.2.
/// InfiniteSource(LIMIT 1, STOP true) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 1
/// ```
/// ## Differences
/// All packets that have arrived are read at a turn. HEADROOM is at least 28.
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
