//! `IPNameInfo`: names of IP protocols, ports and ICMP types.

use element::prelude::*;

/// Stands for the names of IP protocols, ports, and ICMP types and codes. They are built in, so it has no effect.
/// ```click
/// IPNameInfo;
/// InfiniteSource(LENGTH 8, LIMIT 2, STOP true)
///     -> u :: UDPIPEncap(10.0.0.1, ntp, 10.0.0.2, domain) -> Discard;
/// ```
/// ```expect
/// u.sport = 123
/// ```
#[derive(Args)]
#[element(
    name = "IPNameInfo",
    group = "information",
    ports = "0/0",
    phase = "information",
    shards = "independent",
    see = "PortInfo, IPFieldInfo"
)]
pub struct IPNameInfoArgs;

pub struct IPNameInfo;

impl Element for IPNameInfo {
    type Args = IPNameInfoArgs;

    fn new(_: IPNameInfoArgs, _: &mut Setup) -> Result<IPNameInfo, SetupError> {
        Ok(IPNameInfo)
    }
}
