//! The interface of a function, as its author implements it and as a configuration has it: as an element.

use core::ops::{Deref, DerefMut};

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use element::{
    Args, Context, Element, FlowKeeping, Handler, HandlerError, HandlerInfo, HandlerKind, Reason, Setup,
    SetupError, Waiting, WriteEffect,
};
use flow::Seed;
use packet::Batch;

use crate::call::Call;
use crate::flow_limits::FlowLimits;
use crate::flows::Flows;
use crate::hand_over::HandOver;

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
    /// How the state of flows goes over to another instance of the service. Without it, a drained instance keeps its flows until
    /// they end.
    const HAND_OVER: Option<HandOver<Self::FlowState>> = None;

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

    /// Reports packets that it keeps. Each must be reported. The class declares `fates = "waiting"`.
    fn waiting(&self, _waiting: &mut Waiting) {}
}

/// A function in a configuration, with the state of its flows.
pub struct Running<F: Function> {
    function: F,
    flows: Flows<F::FlowState>,
    /// The function's drop reasons, in their order.
    reasons: Vec<Reason>,
}

impl<F: Function> Running<F> {
    /// The state of its flows.
    pub fn flows(&self) -> &Flows<F::FlowState> {
        &self.flows
    }

    /// The same, to change it.
    pub fn flows_mut(&mut self) -> &mut Flows<F::FlowState> {
        &mut self.flows
    }

    /// Calls the function.
    fn call<T>(
        &mut self,
        context: &mut Context,
        run: impl FnOnce(&mut F, &mut Flows<F::FlowState>, &mut Call) -> T,
    ) -> T {
        run(&mut self.function, &mut self.flows, &mut Call::new(context, F::DROPS, &self.reasons))
    }
}

impl<F: Function> Deref for Running<F> {
    type Target = F;

    fn deref(&self) -> &F {
        &self.function
    }
}

impl<F: Function> DerefMut for Running<F> {
    fn deref_mut(&mut self) -> &mut F {
        &mut self.function
    }
}

impl<F: Function> Element for Running<F> {
    type Args = F::Args;
    const HANDLERS: &'static [Handler<Self>] = F::HANDLERS;

    fn new(args: F::Args, setup: &mut Setup) -> Result<Self, SetupError> {
        let flows = Flows::new(Seed::new(0, 0), F::FLOWS);
        Ok(Running { function: F::new(args, setup)?, flows, reasons: Vec::new() })
    }

    fn initialize(&mut self, context: &mut Context) -> Result<(), SetupError> {
        self.flows = Flows::new(Seed::new(context.hash_seed(), context.hash_seed()), F::FLOWS);
        self.reasons.clear();
        for name in F::DROPS {
            let reason = context.declare_reason(name);
            let message = alloc::format!(
                "{name} is no drop reason of a function: it must be `user:FUNCTION/REASON` in lower-case letters, digits and underscores"
            );
            self.reasons.push(reason.ok_or_else(|| SetupError::new(message))?);
        }
        self.call(context, |function, _, call| function.start(call))
    }

    fn push(&mut self, context: &mut Context, _port: usize, mut batch: Batch) {
        self.flows.expire(context.steady());
        self.call(context, |function, flows, call| function.process(&mut batch, flows, call));
        context.emit(0, batch);
    }

    fn timer(&mut self, context: &mut Context, timer: usize) {
        self.flows.expire(context.steady());
        self.call(context, |function, flows, call| function.timer(timer, flows, call));
    }

    fn inherit(&mut self, old: &mut Self, _context: &mut Context) {
        core::mem::swap(&mut self.flows, &mut old.flows);
        self.function.inherit(&mut old.function);
    }

    fn other_handler(
        &mut self,
        context: &mut Context,
        name: &str,
        kind: HandlerKind,
        value: &str,
    ) -> Option<Result<String, HandlerError>> {
        match (name, kind) {
            ("message", HandlerKind::Write) => {
                let taken = self.call(context, |function, flows, call| function.message(value, flows, call));
                Some(taken.map(|()| String::new()))
            }
            ("flows", HandlerKind::Read | HandlerKind::ReadWithParameter) => {
                Some(Ok(self.flows.len().to_string()))
            }
            _ => None,
        }
    }

    fn more_handlers(&self) -> Vec<HandlerInfo> {
        let info = |name, kind, calm, summary| HandlerInfo {
            name: Cow::Borrowed(name),
            kind,
            effect: WriteEffect::Action,
            calm,
            hidden: false,
            summary,
        };
        vec![
            info("flows", HandlerKind::Read, true, "Number of flows that the function remembers."),
            info("message", HandlerKind::Write, false, "Sends the function a message."),
        ]
    }

    fn waiting(&self, waiting: &mut Waiting) {
        self.function.waiting(waiting);
    }

    fn flow_states(&mut self) -> FlowKeeping<'_> {
        match size_of::<F::FlowState>() > 0 {
            // Only the function knows what its flows' state means.
            true if F::HAND_OVER.is_some() => FlowKeeping::HandedOver(self),
            true if !self.flows.is_empty() => FlowKeeping::Lost,
            _ => FlowKeeping::Nothing,
        }
    }
}
