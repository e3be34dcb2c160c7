//! `KernelTap`: a virtual interface whose other side is the router.

use element::prelude::*;

use super::tunnel::{Kind, TunnelArguments, Tunnelled};

/// Exchanges Ethernet frames with the host's kernel, over a virtual interface that it makes.
///
/// The host's end has the address of ADDR and the Ethernet address ETHER. Frames that the host sends come out of output
/// 0; frames that go in reach the host. GATEWAY is set as the host's default route. The interface goes when the router
/// does.
/// ```click
/// // KernelTap(10.9.0.1/24) -> Discard; answers whoever pings 10.9.0.1, and sees pings of 10.9.0.2.
/// InfiniteSource(LIMIT 1, STOP true) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 1
/// ```
/// ## Differences
/// All packets that have arrived are read at a turn. HEADROOM is at least 28.
#[derive(Args)]
#[element(
    name = "KernelTap",
    group = "devices",
    ports = "0-1/1-2",
    processing = "a/h",
    flow = "x/y",
    task,
    phase = "receiver",
    see = "KernelTun, FromDevice, ToDevice",
    drops = "too_short, exceeds_mtu, not_sent, closed"
)]
pub struct KernelTapArgs {
    #[arg(flatten)]
    tunnel: TunnelArguments,
    /// Whether the interface carries Ethernet frames.
    #[arg(default = "true")]
    tap: bool,
}

/// The element.
pub type KernelTap = Tunnelled<KernelTapArgs>;

impl Kind for KernelTapArgs {
    fn tunnel(self) -> (TunnelArguments, bool) {
        (self.tunnel, self.tap)
    }
}
