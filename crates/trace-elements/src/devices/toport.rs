//! `ToPort`: sends packets out of a port of the switch.

use element::NextHop;
use element::prelude::*;

use super::steered::{SteeredArguments, SteeredElement};

/// Sends packets out of a port of the steering switch, and out of their chain.
///
/// The service of this box must be allowed to send there: `clickbox service create --may-send-to port:NAME`.
/// ```click
/// InfiniteSource(LIMIT 3) -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> sent :: Counter -> ToPort(mirror);
/// ```
/// ```expect
/// sent.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "ToPort",
    group = "devices",
    ports = "1/0",
    processing = "h/h",
    notifies = "full",
    phase = "sender",
    logs,
    see = "ToNext, ToService, ToChain, ToLookup",
    drops = "not_sent, full, too_long",
    fates = "delivered"
)]
pub struct ToPortArgs {
    /// Name of the port.
    #[arg(position)]
    name: String,
    /// Number of the box's port that packets are sent through.
    #[arg(default = "0")]
    port: u8,
}

pub type ToPort = SteeredElement<ToPortArgs>;

impl SteeredArguments for ToPortArgs {
    fn into_place(self) -> Result<(u8, NextHop), SetupError> {
        match self.name.is_empty() {
            true => Err(SetupError::new("port not set")),
            false => Ok((self.port, NextHop::Port(self.name))),
        }
    }
}
