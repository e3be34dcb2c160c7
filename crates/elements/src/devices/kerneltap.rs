//! `KernelTap`: a virtual Ethernet interface of the host, connected to the router.

use element::prelude::*;

use super::tunnel::{Kind, TunnelArguments, Tunnelled};

/// Exchanges Ethernet frames with the host's kernel through a tap interface that it creates.
///
/// The host's side has the address ADDR and the Ethernet address ETHER. Frames that the host sends leave by output 0;
/// frames that enter the element reach the host. GATEWAY sets the host's default route. The interface exists as long as
/// the router.
/// ```click
/// // KernelTap(10.9.0.1/24) -> Discard; answers whoever pings 10.9.0.1, and sees pings of 10.9.0.2.
/// InfiniteSource(LIMIT 1, STOP true) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 1
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
