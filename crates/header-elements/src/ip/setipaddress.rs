//! `SetIPAddress`: sets the destination annotation.

use core::net::Ipv4Addr;

use element::arguments::Annotation;
use element::prelude::*;

/// Sets the destination annotation, or another annotation, of every packet to one IPv4 address.
/// ```click
/// InfiniteSource(LENGTH 20, LIMIT 2, STOP true)
///     -> s :: SetIPAddress(10.0.0.2)
///     -> UDPIPEncap(10.0.0.1, 1000, DST_ANNO, 2000)
///     -> c :: CheckIPHeader(BADSRC 10.0.0.1, GOODDST 10.0.0.2)
///     -> Discard;
/// ```
/// ```expect
/// s.addr = 10.0.0.2
/// c.drops = 0
/// ```
#[derive(Args)]
#[element(
    name = "SetIPAddress",
    group = "ip",
    order_insensitive,
    see = "StoreIPAddress, GetIPAddress",
    shards = "independent"
)]
pub struct SetIPAddressArgs {
    /// Address to set.
    #[arg(position)]
    ipaddr: Ipv4Addr,
    /// Annotation to set.
    #[arg(default = "0")]
    anno: Annotation<4>,
}

pub struct SetIPAddress {
    args: SetIPAddressArgs,
}

impl Filter for SetIPAddress {
    type Args = SetIPAddressArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("addr", "Address to set.", |element| element.args.ipaddr.to_string()),
        Handler::setting("addr", "Sets the address.", |element, cx, value| {
            element.args.ipaddr = cx.data(value)?;
            Ok(())
        }),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: SetIPAddressArgs, _: &mut Setup) -> Result<SetIPAddress, SetupError> {
        Ok(SetIPAddress { args })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        packet.set_annotation_u32(self.args.anno.0, u32::from_ne_bytes(self.args.ipaddr.octets()));
        true
    }
}
