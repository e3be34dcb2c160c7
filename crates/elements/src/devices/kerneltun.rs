//! `KernelTun`: a virtual interface whose other side is the router.

use core::net::Ipv4Addr;

use element::prelude::*;
use packet::{Ip4Prefix, MacAddr};

use super::tunnel::{Settings, TunnelArguments, Tunnelled};

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
    see = "KernelTap, FromDevice, ToDevice"
)]
pub struct KernelTunArgs {
    /// The address of the host's end, and its network.
    #[arg(position)]
    addr: Ip4Prefix,
    /// The gateway of the host's default route.
    #[arg(position)]
    gateway: Option<Ipv4Addr>,
    /// Whether the interface carries Ethernet frames.
    #[arg(default = "false")]
    tap: bool,
    /// Bytes in front of packets, at most 8192.
    #[arg(default = "28")]
    headroom: u32,
    /// Packets to write at a turn.
    #[arg(default = "1")]
    burst: i32,
    /// The Ethernet address of the host's end.
    #[arg(default = "00:01:02:03:04:05")]
    ether: MacAddr,
    /// Logs a failure that repeats itself once.
    #[arg(default = "false")]
    ignore_queue_overflows: bool,
    /// Bytes of the largest packet, without an Ethernet header.
    #[arg(default = "1500")]
    mtu: u32,
    /// The name of the interface; the system chooses if there is none.
    devname: Option<String>,
    /// An old name of DEVNAME.
    dev_name: Option<String>,
}

/// The element.
pub type KernelTun = Tunnelled<KernelTunArgs>;

impl TunnelArguments for KernelTunArgs {
    fn settings(self) -> Settings {
        Settings {
            ethernet: self.tap,
            address: self.addr,
            gateway: self.gateway.filter(|gateway| !gateway.is_unspecified()),
            headroom: self.headroom,
            burst: self.burst,
            link: Some(self.ether),
            quiet: self.ignore_queue_overflows,
            mtu: self.mtu,
            name: self.devname.or(self.dev_name).unwrap_or_default(),
        }
    }
}
