//! `ToChain`: sends packets, or whole flows, into another chain.

use element::NextHop;
use element::prelude::*;

use super::steered::{SteeredArguments, SteeredElement};

/// Sends packets into a chain of the steering switch.
///
/// They enter it at its begin, in the direction of the face at which the box sends them; with one face, in that in which they pass
/// their own chain. With FLOW, the later packets of their flows take the chain too, in both directions and without coming here: the
/// switch remembers each flow until it has no packets for two minutes, the chain is removed, or a function gives it another chain. So
/// a function can direct flows, as OpenNetVM's flow director does, and needs to see only their first packets. A function gives a flow
/// back by sending it to the chain from which it came.
///
/// The service of this box must be allowed to send to the chain: `clickbox service create --may-send-to chain:NAME`.
///
/// A flow behind a service that translates addresses is another one than where it enters: of such a flow, and of packets whose
/// addresses the box has changed, only the packets themselves go there. A packet does not come back to the instance that sends it:
/// the switch drops one that enters a chain which begins there. If the chain is removed, packets go on as with ToNext, and are
/// counted as overruled.
/// ```click
/// // Suspicious flows are scrubbed from now on.
/// InfiniteSource(LIMIT 4) -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 53)
///     -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> half :: RoundRobinSwitch;
/// half[0] -> suspicious :: Counter -> ToChain(scrubbed, FLOW true);
/// half[1] -> passed :: Counter -> ToNext;
/// ```
/// ```expect
/// suspicious.count = 2
/// passed.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "ToChain",
    group = "devices",
    ports = "1/0",
    processing = "h/h",
    notifies = "full",
    phase = "sender",
    logs,
    see = "ToNext, ToService, ToPort, ToLookup",
    drops = "not_sent, full, too_long",
    fates = "delivered"
)]
pub struct ToChainArgs {
    /// Name of the chain.
    #[arg(position)]
    name: String,
    /// Number of the box's port that packets are sent through.
    #[arg(default = "0")]
    port: u8,
    /// Whether the later packets of their flows take the chain too.
    #[arg(default = "false")]
    flow: bool,
}

pub type ToChain = SteeredElement<ToChainArgs>;

impl SteeredArguments for ToChainArgs {
    fn into_place(self) -> Result<(u8, NextHop), SetupError> {
        let ToChainArgs { name, port, flow } = self;
        match name.is_empty() {
            true => Err(SetupError::new("chain not set")),
            false => Ok((port, NextHop::IntoChain { name, flow })),
        }
    }
}
