//! `ToNext`: lets packets go on in their chain.

use element::NextHop;
use element::prelude::*;

use super::steered::{SteeredArguments, SteeredElement};

/// Sends packets on to the next service of their chain, or out of the chain after the last one.
///
/// This is the same as ToDevice in a box that is an instance of a service. Packets keep their chain only in the buffer in which
/// they came: new and copied packets are looked up in the flows of the switch, or go on from the only place that the service
/// has in a chain. Outside of a service, they go where the switch sends them.
/// ```click
/// InfiniteSource(LIMIT 3) -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> sent :: Counter -> ToNext;
/// ```
/// ```expect
/// sent.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "ToNext",
    group = "devices",
    ports = "1/0",
    processing = "h/h",
    notifies = "full",
    phase = "sender",
    logs,
    see = "ToService, ToPort, ToChain, ToLookup, ToDevice",
    drops = "not_sent, full, too_long",
    fates = "delivered"
)]
pub struct ToNextArgs {
    /// Number of the box's port that packets are sent through.
    #[arg(default = "0")]
    port: u8,
}

pub type ToNext = SteeredElement<ToNextArgs>;

impl SteeredArguments for ToNextArgs {
    fn into_place(self) -> Result<(u8, NextHop), SetupError> {
        Ok((self.port, NextHop::Chain))
    }
}
