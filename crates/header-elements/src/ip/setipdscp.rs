//! `SetIPDSCP`: sets the DSCP of IPv4 packets.

use element::arguments::ArgumentError;
use element::prelude::*;

use super::typeofservice::set_bits;

/// Sets the differentiated services code point (RFC 2474), and updates the checksum.
///
/// The code point is the upper six bits of the type-of-service byte. A packet without a marked header is dropped as
/// `no_ip_header`.
/// ```click
/// InfiniteSource(LENGTH 8, LIMIT 2, STOP true)
///     -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000)
///     -> s :: SetIPDSCP(46) -> c :: CheckIPHeader -> Discard;
/// ```
/// ```expect
/// s.dscp = 46
/// c.drops = 0
/// ```
#[derive(Args)]
#[element(
    name = "SetIPDSCP",
    group = "ip",
    order_insensitive,
    shards = "independent",
    see = "SetIPECN",
    drops = "no_ip_header",
    fates = "changed"
)]
pub struct SetIPDSCPArgs {
    /// Code point, 0 to 63.
    #[arg(position)]
    dscp: CodePoint,
}

/// A code point, and its text in the arguments.
struct CodePoint {
    value: u8,
    text: String,
}

impl FromArgument for CodePoint {
    const KIND: &'static str = "integer";

    fn from_argument(text: &str, setup: &Setup) -> Result<CodePoint, ArgumentError> {
        let value = u32::from_argument(text, setup)?;
        if value > 63 {
            return Err(ArgumentError::semantic("diffserv code point out of range"));
        }
        Ok(CodePoint { value: value as u8, text: text.to_string() })
    }
}

pub struct SetIPDSCP {
    dscp: CodePoint,
}

impl Filter for SetIPDSCP {
    type Args = SetIPDSCPArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("dscp", "The code point as it was written.", |element| element.dscp.text.clone()),
        Handler::argument("dscp", (Some(0), "DSCP"), "Sets the code point.", |element, cx, value| {
            element.dscp = cx.argument(value)?;
            Ok(())
        }),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: SetIPDSCPArgs, _: &mut Setup) -> Result<SetIPDSCP, SetupError> {
        Ok(SetIPDSCP { dscp: args.dscp })
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, packet: Packet) -> Verdict {
        set_bits(packet, 0xfc, self.dscp.value << 2)
    }
}
