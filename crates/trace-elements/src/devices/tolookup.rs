//! `ToLookup`: has packets looked up in the flows of the switch.

use element::NextHop;
use element::prelude::*;

use super::steered::{SteeredArguments, SteeredElement};

/// Sends packets where the flows of the steering switch say, and out of their chain.
///
/// Use it for packets that a function has changed so that another chain concerns them.
/// ```click
/// InfiniteSource(LIMIT 3) -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> sent :: Counter -> ToLookup;
/// ```
/// ```expect
/// sent.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "ToLookup",
    group = "devices",
    ports = "1/0",
    processing = "h/h",
    notifies = "full",
    phase = "sender",
    logs,
    see = "ToNext, ToService, ToPort, ToChain",
    drops = "not_sent, full, too_long",
    fates = "delivered"
)]
pub struct ToLookupArgs {
    /// Number of the box's port that packets are sent through.
    #[arg(default = "0")]
    port: u8,
}

pub type ToLookup = SteeredElement<ToLookupArgs>;

impl SteeredArguments for ToLookupArgs {
    fn into_place(self) -> Result<(u8, NextHop), SetupError> {
        Ok((self.port, NextHop::LookUp))
    }
}
