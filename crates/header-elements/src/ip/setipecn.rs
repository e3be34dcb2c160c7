//! `SetIPECN`: sets the ECN bits of IPv4 packets.

use element::arguments::ArgumentError;
use element::prelude::*;

use super::typeofservice::set_bits;

/// Sets the ECN bits of IPv4 packets (RFC 3168), and updates the checksum.
///
/// They are the lower two bits of the type-of-service byte. A packet without a marked header is dropped as
/// `no_ip_header`.
/// ```click
/// InfiniteSource(LENGTH 8, LIMIT 2, STOP true)
///     -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000)
///     -> s :: SetIPECN(ce) -> c :: CheckIPHeader -> Discard;
/// ```
/// ```expect
/// s.ecn = ce
/// c.drops = 0
/// ```
#[derive(Args)]
#[element(
    name = "SetIPECN",
    group = "ip",
    order_insensitive,
    shards = "independent",
    see = "SetIPDSCP",
    drops = "no_ip_header",
    fates = "changed"
)]
pub struct SetIPECNArgs {
    /// ECN bits: 0 to 3, or `no`, `ect1` or `ECT(1)`, `ect2` or `ECT(0)`, `ce` or `CE`.
    #[arg(position)]
    ecn: EcnBits,
}

/// The ECN bits, and their text in the arguments.
struct EcnBits {
    value: u8,
    text: String,
}

impl FromArgument for EcnBits {
    const KIND: &'static str = "integer or name";

    fn from_argument(text: &str, _: &Setup) -> Result<EcnBits, ArgumentError> {
        let value = match text {
            // An empty value is rejected later, with the other arguments.
            "" => return Ok(EcnBits { value: 0, text: String::new() }),
            "0" | "no" | "-" => 0,
            "1" | "ect1" | "ECT(1)" => 1,
            "2" | "ect2" | "ECT(0)" => 2,
            "3" | "ce" | "CE" => 3,
            _ => return Err(ArgumentError::semantic(BAD_ECN)),
        };
        Ok(EcnBits { value, text: text.to_string() })
    }
}

impl EcnBits {
    /// The value, unless it is empty.
    fn unless_empty(self) -> Option<EcnBits> {
        Some(self).filter(|notification| !notification.text.is_empty())
    }
}

/// The error for other values.
const BAD_ECN: &str = "bad ECN argument";

pub struct SetIPECN {
    ecn: EcnBits,
}

impl Filter for SetIPECN {
    type Args = SetIPECNArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("ecn", "The bits as they were written.", |element| element.ecn.text.clone()),
        Handler::argument("ecn", (Some(0), "ECN"), "Sets the bits.", |element, cx, value| {
            let ecn: EcnBits = cx.argument(value)?;
            element.ecn = ecn.unless_empty().ok_or(HandlerError::new(BAD_ECN))?;
            Ok(())
        }),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: SetIPECNArgs, _: &mut Setup) -> Result<SetIPECN, SetupError> {
        Ok(SetIPECN { ecn: args.ecn.unless_empty().ok_or(SetupError::new(BAD_ECN))? })
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, packet: Packet) -> Verdict {
        set_bits(packet, 0x03, self.ecn.value)
    }
}
