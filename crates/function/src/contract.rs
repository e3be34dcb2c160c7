//! The interface of a function, as its author implements it.

use core::time::Duration;

use element::{Args, Handler, HandlerError, Setup, SetupError, Waiting};
use packet::Batch;

use crate::call::Call;
use crate::flows::Flows;
use crate::running::Running;

/// How many flows a function remembers, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLimits {
    /// The maximum number of flows. Beyond it, the flow that was idle for longest is forgotten: senders of ever new flows
    /// must not fill the memory.
    pub flows: usize,
    /// The time without packets after which a flow is forgotten.
    pub idle: Duration,
}

impl FlowLimits {
    /// 65,536 flows, each until it was idle for a minute.
    pub const DEFAULT: FlowLimits = FlowLimits { flows: 1 << 16, idle: Duration::from_secs(60) };
}

/// A network function with one input.
///
/// Packets are Ethernet frames, as boxes receive them. The class has `processing = "h/h"`: packets are pushed.
pub trait Function: Sized + 'static {
    /// Its arguments: a struct that derives [`Args`], which also has the class's name, ports and documentation.
    type Args: Args;
    /// What it remembers of each flow.
    type FlowState: Default + 'static;
    /// Its handlers. The functions in them get the function itself, through a [`Running`].
    const HANDLERS: &'static [Handler<Running<Self>>] = &[];
    /// The reasons for which it drops packets: `user:FUNCTION/REASON`, in lower-case letters, digits and underscores.
    const DROPS: &'static [&'static str] = &[];
    /// The limits of the state of flows.
    const FLOWS: FlowLimits = FlowLimits::DEFAULT;

    /// Creates the function.
    fn new(args: Self::Args, setup: &mut Setup) -> Result<Self, SetupError>;

    /// Prepares to run: sets the first timers.
    fn start(&mut self, _call: &mut Call) -> Result<(), SetupError> {
        Ok(())
    }

    /// Processes packets. Those that stay in the batch leave by output 0, after all that the call has sent.
    fn process(&mut self, batch: &mut Batch, flows: &mut Flows<Self::FlowState>, call: &mut Call);

    /// A timer has expired.
    fn timer(&mut self, _timer: usize, _flows: &mut Flows<Self::FlowState>, _call: &mut Call) {}

    /// Takes a message: from another function of the configuration ([`Call::message`]), or from outside by a write to the
    /// handler `message`.
    fn message(
        &mut self,
        _text: &str,
        _flows: &mut Flows<Self::FlowState>,
        _call: &mut Call,
    ) -> Result<(), HandlerError> {
        Err(HandlerError::new("this function takes no messages"))
    }

    /// Takes over the state of the old function of the same name when the configuration is replaced. The state of flows is
    /// taken over before.
    fn inherit(&mut self, _old: &mut Self) {}

    /// Reports packets that it keeps. Each must be reported.
    fn waiting(&self, _waiting: &mut Waiting) {}
}
