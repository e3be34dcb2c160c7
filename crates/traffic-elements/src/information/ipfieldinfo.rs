//! `IPFieldInfo`: names of header fields.

use element::prelude::*;

/// Stands for the names of IP, ICMP, TCP and UDP header fields in filters. They are built in, so it has no effect.
/// ```click
/// IPFieldInfo;
/// InfiniteSource(LENGTH 8, LIMIT 2, STOP true)
///     -> UDPIPEncap(10.0.0.1, ntp, 10.0.0.2, domain)
///     -> f :: IPClassifier(ip ttl 250, -);
/// f[0] -> c :: Counter -> Discard; f[1] -> Discard;
/// ```
/// ```expect
/// c.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "IPFieldInfo",
    group = "information",
    ports = "0/0",
    phase = "information",
    shards = "independent",
    see = "IPNameInfo, IPClassifier"
)]
pub struct IPFieldInfoArgs;

pub struct IPFieldInfo;

impl Element for IPFieldInfo {
    type Args = IPFieldInfoArgs;

    fn new(_: IPFieldInfoArgs, _: &mut Setup) -> Result<IPFieldInfo, SetupError> {
        Ok(IPFieldInfo)
    }
}
