//! `ToLookup`: has packets looked up in the flows of the switch.

use element::prelude::*;
use element::{Descriptor, NextHop};

use super::steered::Steered;

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
    see = "ToNext, ToService, ToPort, ToChain",
    drops = "not_sent, full, too_long",
    fates = "delivered"
)]
pub struct ToLookupArgs {
    /// Number of the box's port that packets are sent through.
    #[arg(default = "0")]
    port: u8,
}

pub struct ToLookup(Steered);

impl Element for ToLookup {
    type Args = ToLookupArgs;

    fn new(args: ToLookupArgs, _: &mut Setup) -> Result<ToLookup, SetupError> {
        Ok(ToLookup(Steered::new(args.port, NextHop::LookUp)))
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.0.open(cx)
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        self.0.push(cx, batch);
    }

    fn ready(&mut self, cx: &mut Context, descriptor: Descriptor) {
        self.0.ready(cx, descriptor);
    }

    fn cleanup(&mut self, _: &mut Context) {
        self.0.close();
    }
}
