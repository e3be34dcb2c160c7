//! `PortInfo`: names for TCP and UDP ports.

use element::arguments::{ArgumentError, IpProtocol, Raw};
use element::prelude::*;
use element::{NameKind, text};
use packet::protocol;

use super::problems::Problems;

/// Defines names for TCP and UDP ports. Each argument is `NAME PORT/PROTOCOL [NAME...]`, as in `/etc/services`.
///
/// Without `/tcp` or `/udp`, a name is valid for both. Text after `#` is a comment. A name is valid in the compound
/// element that defines it.
/// ```click
/// PortInfo(game 2600/udp play, web 8080);
/// InfiniteSource(LENGTH 8, LIMIT 2, STOP true)
///     -> u :: UDPIPEncap(10.0.0.1, play, 10.0.0.2, web) -> Discard;
/// ```
/// ```expect
/// u.sport = 2600
/// u.dport = 8080
/// ```
#[derive(Args)]
#[element(
    name = "PortInfo",
    group = "information",
    ports = "0/0",
    phase = "names",
    see = "AddressInfo",
    shards = "independent"
)]
pub struct PortInfoArgs {
    /// Names, each followed by its port.
    #[arg(rest)]
    names: Vec<Raw>,
}

pub struct PortInfo;

impl Element for PortInfo {
    type Args = PortInfoArgs;

    fn new(args: PortInfoArgs, setup: &mut Setup) -> Result<PortInfo, SetupError> {
        let mut problems = Problems::default();
        for Raw(argument) in &args.names {
            let words = text::words(argument);
            let mut words = words.iter().map(String::as_str).take_while(|word| !word.starts_with('#'));
            let Some(name) = words.next() else { continue };
            let (port, transport) = match words.next() {
                Some(word) => word.split_once('/').map_or((word, None), |(port, rest)| (port, Some(rest))),
                None => ("", None),
            };
            // What is too large for a port is found out where it is used.
            let port = match u32::from_argument(port, setup) {
                Ok(port) => port,
                Err(ArgumentError::OutOfRange(_)) => u32::MAX,
                Err(_) => {
                    problems.add("expected ‘NAME PORT/PROTO’");
                    continue;
                }
            };
            let kinds: &[NameKind] = match transport.map(|name| IpProtocol::from_argument(name, setup)) {
                None => &[NameKind::TcpPort, NameKind::UdpPort],
                Some(Ok(IpProtocol(protocol::TCP))) => &[NameKind::TcpPort],
                Some(Ok(IpProtocol(protocol::UDP))) => &[NameKind::UdpPort],
                // Nothing asks for ports of other protocols.
                Some(_) => &[],
            };
            for name in core::iter::once(name).chain(words) {
                for kind in kinds {
                    setup.names().define(*kind, setup.scope(), name, &port.to_be_bytes());
                }
            }
        }
        problems.into_result().map(|()| PortInfo)
    }
}
