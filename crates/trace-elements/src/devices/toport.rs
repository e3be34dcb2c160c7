//! `ToPort`: sends packets out of a port of the switch.

use element::prelude::*;
use element::{Descriptor, NextHop};

use super::steered::Steered;

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

pub struct ToPort(Steered);

impl Element for ToPort {
    type Args = ToPortArgs;

    fn new(args: ToPortArgs, _: &mut Setup) -> Result<ToPort, SetupError> {
        if args.name.is_empty() {
            return Err(SetupError::new("port not set"));
        }
        Ok(ToPort(Steered::new(args.port, NextHop::Port(args.name))))
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
