//! `ToService`: diverts packets to another service.

use element::NextHop;
use element::prelude::*;

use super::steered::{SteeredArguments, SteeredElement};

/// Sends packets to an instance of another service, and out of their chain.
///
/// They enter it in the direction of the face at which the box sends them: at its outer face if they leave the box at the inner one,
/// and at its inner face if they leave at the outer one. With one face, they have the direction in which they pass their own chain, or
/// else the forward one.
///
/// An intrusion detection system diverts suspicious flows in this way. Both directions of a flow reach the same instance. The
/// service of this box must be allowed to send to NAME: `clickbox service create --may-send-to`.
/// ```click
/// // Every other packet goes to the service `quarantine`.
/// source :: InfiniteSource(LIMIT 4) -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2)
///     -> half :: RoundRobinSwitch;
/// half[0] -> diverted :: Counter -> ToService(quarantine);
/// half[1] -> passed :: Counter -> ToNext;
/// ```
/// ```expect
/// diverted.count = 2
/// passed.count = 2
/// ```
/// Packets for which the box has no right are not sent: the configuration is refused.
#[derive(Args)]
#[element(
    name = "ToService",
    group = "devices",
    ports = "1/0",
    processing = "h/h",
    notifies = "full",
    phase = "sender",
    logs,
    see = "ToNext, ToPort, ToChain, ToLookup",
    drops = "not_sent, full, too_long",
    fates = "delivered"
)]
pub struct ToServiceArgs {
    /// Name of the service.
    #[arg(position)]
    name: String,
    /// Number of the box's port that packets are sent through.
    #[arg(default = "0")]
    port: u8,
}

pub type ToService = SteeredElement<ToServiceArgs>;

impl SteeredArguments for ToServiceArgs {
    fn into_place(self) -> Result<(u8, NextHop), SetupError> {
        match self.name.is_empty() {
            true => Err(SetupError::new("service not set")),
            false => Ok((self.port, NextHop::Service(self.name))),
        }
    }
}
