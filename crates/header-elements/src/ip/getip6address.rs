//! `GetIP6Address`: copies an IPv6 address from the packet to the destination annotation.

use core::net::Ipv6Addr;

use element::prelude::*;

/// Copies an IPv6 address from each packet to the IPv6 destination annotation.
///
/// The address is the 16 bytes at OFFSET; 24 is the offset of the destination in an IPv6 header.
/// ```click
/// InfiniteSource(DATA \<6000000000003b4020010db800000000000000000000000120010db8000000000000000000000002>, LIMIT 2, STOP true)
///     -> GetIP6Address(24)
///     -> routes :: LookupIP6Route(2001:db8::2/128 0, ::/0 1);
/// routes[0] -> right :: Counter -> Discard;
/// routes[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// right.count = 2
/// wrong.count = 0
/// ```
/// ## Differences
/// If the packet is too short, the address is `::`.
#[derive(Args)]
#[element(
    name = "GetIP6Address",
    group = "ip",
    order_insensitive,
    shards = "independent",
    see = "LookupIP6Route, IP6NDSolicitor, GetIPAddress"
)]
pub struct GetIP6AddressArgs {
    /// Offset of the address from the start of the packet, in bytes.
    #[arg(position)]
    offset: u32,
}

pub struct GetIP6Address {
    offset: usize,
}

impl Filter for GetIP6Address {
    type Args = GetIP6AddressArgs;

    fn new(args: GetIP6AddressArgs, _: &mut Setup) -> Result<GetIP6Address, SetupError> {
        Ok(GetIP6Address { offset: args.offset as usize })
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let address = packet.data().get(self.offset..).and_then(|rest| rest.first_chunk::<16>()).copied();
        packet.set_destination_ip6(Ipv6Addr::from(address.unwrap_or_default()));
        Verdict::Pass(packet)
    }
}
