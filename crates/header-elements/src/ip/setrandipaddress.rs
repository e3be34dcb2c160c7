//! `SetRandIPAddress`: sets the destination annotation at random.

use core::net::Ipv4Addr;

use element::arguments::Ip4PrefixOrHost;
use element::prelude::*;

/// Sets the destination annotation of every packet to a random address within PREFIX.
///
/// With LIMIT, it draws that many addresses at the start, and each packet gets one of them.
/// ```click
/// InfiniteSource(LENGTH 20, LIMIT 50, STOP true)
///     -> SetRandIPAddress(10.0.0.4/30)
///     -> UDPIPEncap(1.0.0.1, 1000, DST_ANNO, 2000)
///     -> c :: CheckIPHeader(BADSRC 1.0.0.1, GOODDST 10.0.0.4 10.0.0.5 10.0.0.6 10.0.0.7)
///     -> Discard;
/// ```
/// ```expect
/// c.drops = 0
/// ```
#[derive(Args)]
#[element(name = "SetRandIPAddress", group = "ip", see = "StoreIPAddress, GetIPAddress, SetIPAddress")]
pub struct SetRandIPAddressArgs {
    /// Prefix of the addresses.
    #[arg(position)]
    prefix: Ip4PrefixOrHost,
    /// Number of different addresses; no limit by default.
    #[arg(position, default = "-1")]
    limit: i32,
}

pub struct SetRandIPAddress {
    prefix: Ip4PrefixOrHost,
    limit: usize,
    addresses: Vec<Ipv4Addr>,
}

/// Maximum LIMIT; more addresses would only use memory.
const MAX_ADDRESSES: i32 = 1 << 24;

impl SetRandIPAddress {
    #[inline]
    fn pick(&self, cx: &Context) -> Ipv4Addr {
        let Ip4PrefixOrHost(prefix) = self.prefix;
        // The number's lowest byte comes first, as in Click, so the last byte is below 128.
        Ipv4Addr::from_bits(prefix.network().to_bits() | (cx.random().swap_bytes() & !prefix.mask.to_bits()))
    }
}

impl Filter for SetRandIPAddress {
    type Args = SetRandIPAddressArgs;

    fn new(args: SetRandIPAddressArgs, _: &mut Setup) -> Result<SetRandIPAddress, SetupError> {
        if args.limit > MAX_ADDRESSES {
            return Err(SetupError::argument("LIMIT", format!("out of range, bound {MAX_ADDRESSES}")));
        }
        let limit = usize::try_from(args.limit).unwrap_or(0);
        Ok(SetRandIPAddress { prefix: args.prefix, limit, addresses: Vec::new() })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.addresses = (0..self.limit).map(|_| self.pick(cx)).collect();
        Ok(())
    }

    #[inline(always)]
    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        let address = match self.addresses.as_slice() {
            [] => self.pick(cx),
            addresses => {
                let index = cx.random_between(0, addresses.len() as u32 - 1);
                addresses.get(index as usize).copied().unwrap_or(Ipv4Addr::UNSPECIFIED)
            }
        };
        packet.set_destination_ip(address);
        Verdict::Pass(packet)
    }
}
