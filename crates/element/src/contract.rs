//! The element interface: as its author implements it, and as the router holds it.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;

use packet::Batch;
use reason::Reason;

use crate::arguments::{Args, Arguments, Setup};
use crate::context::Context;
use crate::environment::Descriptor;
use crate::error::{HandlerError, SetupError};
use crate::flow_states::FlowKeeping;
use crate::handler::{self, Found, Handler, NumberedHandlers};
use crate::handler_info::{HandlerInfo, HandlerKind};
use crate::waiting::Waiting;

/// An element with full access to ports, its task, timers and descriptors. Most elements implement
/// [`Filter`](crate::Filter) instead.
///
/// Methods that the router never calls, given the class's ports and `ClassInfo`, need no implementation.
pub trait Element: Sized + 'static {
    /// Its arguments.
    type Args: Args;
    /// Its handlers.
    const HANDLERS: &'static [Handler<Self>] = &[];
    /// Handlers that exist once per port or argument.
    const NUMBERED: Option<NumberedHandlers<Self>> = None;
    /// Whether `config` may be written while the element runs.
    const LIVE_RECONFIGURE: bool = false;
    /// Begins to create an element with this configuration, if that takes so long that packets should not wait for it. The
    /// router goes on with [`LongWork::continue_creation`].
    const BEGIN: Option<fn(&str) -> Option<Self>> = None;

    /// Creates the element from valid arguments.
    fn new(args: Self::Args, setup: &mut Setup) -> Result<Self, SetupError>;

    /// Resolves references to other elements, once all exist. Ends configuration.
    fn resolve(&mut self, _cx: &mut Context) -> Result<(), SetupError> {
        Ok(())
    }

    /// Prepares to run, once all elements are configured.
    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        cx.needs_no_such_call();
        Ok(())
    }

    /// Takes packets that arrive on a push input.
    fn push(&mut self, cx: &mut Context, _port: usize, batch: Batch) {
        cx.drop_batch(batch, Reason::NO_PUSH);
    }

    /// Takes packets that arrive on several push inputs, in their order; `inputs` has the input of each. Only classes that
    /// declare `mixes_inputs` get them.
    fn push_mixed(&mut self, cx: &mut Context, _inputs: &[u16], batch: Batch) {
        cx.drop_batch(batch, Reason::NO_PUSH);
    }

    /// Appends at most `most` packets from a pull output to `into`. Each counts as one of Click's pulls.
    fn pull(&mut self, _cx: &mut Context, _port: usize, _most: usize, _into: &mut Batch) {}

    /// Runs the task, which was unscheduled before the call; returns whether there was work.
    fn task(&mut self, _cx: &mut Context) -> bool {
        false
    }

    /// A timer has expired.
    fn timer(&mut self, _cx: &mut Context, _timer: usize) {}

    /// A watched descriptor is ready.
    fn ready(&mut self, _cx: &mut Context, _descriptor: Descriptor) {}

    /// A watched signal became active. By default, schedules the task.
    fn woken(&mut self, cx: &mut Context) {
        cx.schedule();
    }

    /// The driver's count has reached zero. The element that manages the driver may raise it again.
    fn stopped(&mut self, _cx: &mut Context) {}

    /// Applies new arguments while the element runs (with `LIVE_RECONFIGURE`); on failure nothing changes.
    fn reconfigure(&mut self, args: Self::Args, setup: &mut Setup) -> Result<(), SetupError> {
        *self = Self::new(args, setup)?;
        Ok(())
    }

    /// Its work that takes so long that packets should not wait for it.
    fn long_work(&mut self) -> Option<&mut dyn LongWork> {
        None
    }

    /// Takes over the state of the old element of the same name and class, after `initialize`.
    fn inherit(&mut self, _old: &mut Self, cx: &mut Context) {
        cx.needs_no_such_call();
    }

    /// The state that an element of a related class with the same name may take over.
    fn swap_state(&mut self) -> Option<&mut dyn Any> {
        None
    }

    /// Takes over the state of the old element of the same name and a different class, if it can use it.
    fn inherit_swap_state(&mut self, _state: &mut dyn Any, _cx: &mut Context) {}

    /// Calls a handler that is neither in `HANDLERS` nor `NUMBERED`; `None` means that there is no such handler.
    fn other_handler(
        &mut self,
        _cx: &mut Context,
        _name: &str,
        _call: HandlerKind,
        _value: &str,
    ) -> Option<Result<String, HandlerError>> {
        None
    }

    /// The handlers of `other_handler` that exist in this configuration, for lists.
    fn more_handlers(&self) -> Vec<HandlerInfo> {
        Vec::new()
    }

    /// The object that this element shares with others, which look it up by its name.
    fn export(&self) -> Option<Rc<dyn Any>> {
        None
    }

    /// Reports the packets that it holds. Each must be reported.
    fn waiting(&self, _waiting: &mut Waiting) {}

    /// Whether the element keeps pace with a source that sends at most one packet a turn. A queue does if it is empty and can
    /// take two packets, a task that pulls if each of its turns takes a packet where one waits.
    fn keeps_pace(&self) -> bool {
        false
    }

    /// The state of flows that it keeps, for the box in which these go on.
    fn flow_states(&mut self) -> FlowKeeping<'_> {
        FlowKeeping::Nothing
    }

    /// The router stops for good, or another takes over: flush, close, and let packets go that others have access to.
    fn cleanup(&mut self, cx: &mut Context) {
        cx.needs_no_such_call();
    }
}

/// Work of an element that is done in steps of some ten microseconds, between batches.
pub trait LongWork {
    /// Begins a write. Returns whether it has begun: then it may have taken the value, because copying a long one takes long
    /// too, and the writer calls `continue_write` between batches until that returns a result. Otherwise the writer calls
    /// the handler at once.
    fn begin_write(&mut self, cx: &mut Context, handler: &str, value: &mut String) -> bool;

    /// Continues the write that has begun. Returns its result when it is done.
    fn continue_write(&mut self, cx: &mut Context) -> Option<Result<(), HandlerError>>;

    /// Continues the creation of the element, which [`Element::BEGIN`] began with the same configuration. Returns the
    /// result when it is done.
    fn continue_creation(&mut self, configuration: &str, setup: &mut Setup)
    -> Option<Result<(), SetupError>>;

    /// Begins to free what the element has, if that takes long. No packet reaches it any more, and it has none.
    fn begin_removal(&mut self) -> bool;

    /// Continues to free. Returns whether it is done.
    fn continue_removal(&mut self) -> bool;
}

impl Context<'_> {
    /// Reconfigures an element, as a write to its `config` does; on failure nothing changes.
    pub fn reconfigure<E: Element>(&self, element: &mut E, config: &str) -> Result<(), HandlerError> {
        let name = self.name();
        let mut setup = self.setup(&name);
        let args = E::Args::parse(Arguments::new(config), &mut setup)?;
        let held = packets_in(element);
        element.reconfigure(args, &mut setup)?;
        self.count_drops(Reason::REMOVED, held.saturating_sub(packets_in(element)));
        for warning in &setup.warnings {
            self.log_between_packets(&format!("  warning: {warning}"));
        }
        self.record_configuration(config);
        Ok(())
    }
}

/// The number of packets that wait in an element.
fn packets_in<E: Element>(element: &E) -> u64 {
    let mut waiting = Waiting::default();
    element.waiting(&mut waiting);
    waiting.packets
}

/// A type-erased [`Element`], created only by [`Class::create`](crate::Class::create).
#[allow(missing_docs)]
pub trait DynElement: Any {
    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError>;
    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError>;
    fn push(&mut self, cx: &mut Context, port: usize, batch: Batch);
    fn push_mixed(&mut self, cx: &mut Context, inputs: &[u16], batch: Batch);
    fn pull(&mut self, cx: &mut Context, port: usize, most: usize, into: &mut Batch);
    fn task(&mut self, cx: &mut Context) -> bool;
    fn timer(&mut self, cx: &mut Context, timer: usize);
    fn ready(&mut self, cx: &mut Context, descriptor: Descriptor);
    fn woken(&mut self, cx: &mut Context);
    fn stopped(&mut self, cx: &mut Context);
    fn reconfigure(&mut self, arguments: Arguments, setup: &mut Setup) -> Result<(), SetupError>;
    fn inherit(&mut self, old: &mut dyn DynElement, cx: &mut Context);
    fn swap_state(&mut self) -> Option<&mut dyn Any>;
    fn read(&mut self, cx: &mut Context, name: &str, parameter: &str) -> Result<String, HandlerError>;
    fn write(&mut self, cx: &mut Context, name: &str, value: &str) -> Result<(), HandlerError>;
    fn long_work(&mut self) -> Option<&mut dyn LongWork>;
    fn more_handlers(&self) -> Vec<HandlerInfo>;
    fn export(&self) -> Option<Rc<dyn Any>>;
    fn waiting(&self, waiting: &mut Waiting);
    fn keeps_pace(&self) -> bool;
    fn flow_states(&mut self) -> FlowKeeping<'_>;
    fn cleanup(&mut self, cx: &mut Context);
    fn as_any(&mut self) -> &mut dyn Any;
}

impl<E: Element> DynElement for E {
    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        Element::resolve(self, cx)
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        Element::initialize(self, cx)
    }

    fn push(&mut self, cx: &mut Context, port: usize, batch: Batch) {
        Element::push(self, cx, port, batch);
    }

    fn push_mixed(&mut self, cx: &mut Context, inputs: &[u16], batch: Batch) {
        Element::push_mixed(self, cx, inputs, batch);
    }

    fn pull(&mut self, cx: &mut Context, port: usize, most: usize, into: &mut Batch) {
        Element::pull(self, cx, port, most, into);
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        Element::task(self, cx)
    }

    fn timer(&mut self, cx: &mut Context, timer: usize) {
        Element::timer(self, cx, timer);
    }

    fn ready(&mut self, cx: &mut Context, descriptor: Descriptor) {
        Element::ready(self, cx, descriptor);
    }

    fn woken(&mut self, cx: &mut Context) {
        Element::woken(self, cx);
    }

    fn stopped(&mut self, cx: &mut Context) {
        Element::stopped(self, cx);
    }

    fn reconfigure(&mut self, arguments: Arguments, setup: &mut Setup) -> Result<(), SetupError> {
        // No other class has a write handler `config`, so this is never seen. It keeps the parser and the constructor from
        // being compiled into each class a second time.
        if !E::LIVE_RECONFIGURE {
            return Err(SetupError::new("the configuration of a running element of this class can't change"));
        }
        let args = E::Args::parse(arguments, setup)?;
        Element::reconfigure(self, args, setup)
    }

    fn inherit(&mut self, old: &mut dyn DynElement, cx: &mut Context) {
        if let Some(old) = old.as_any().downcast_mut::<E>() {
            Element::inherit(self, old, cx);
        } else if let Some(state) = old.swap_state() {
            self.inherit_swap_state(state, cx);
        }
    }

    fn swap_state(&mut self) -> Option<&mut dyn Any> {
        Element::swap_state(self)
    }

    fn read(&mut self, cx: &mut Context, name: &str, parameter: &str) -> Result<String, HandlerError> {
        let found = Found::new(name, true, &|index| E::HANDLERS.get(index).map(Handler::head));
        if let Found::At(index) = found
            && let Some(handler) = E::HANDLERS.get(index)
        {
            return handler.call_read(self, cx, parameter);
        }
        if let Some(numbered) = &E::NUMBERED
            && let Some(number) = numbered.find(self, name)
        {
            handler::refuse_parameter(name, parameter)?;
            return Ok((numbered.read)(self, number));
        }
        match self.other_handler(cx, name, HandlerKind::ReadWithParameter, parameter) {
            Some(answer) => answer,
            None => Err(found.error(name, true)),
        }
    }

    fn write(&mut self, cx: &mut Context, name: &str, value: &str) -> Result<(), HandlerError> {
        let found = Found::new(name, false, &|index| E::HANDLERS.get(index).map(Handler::head));
        if let Found::At(index) = found
            && let Some(handler) = E::HANDLERS.get(index)
        {
            return handler.call_write(self, cx, value);
        }
        if let Some(numbered) = &E::NUMBERED
            && let Some(number) = numbered.find(self, name)
        {
            return (numbered.write)(self, cx, number, value);
        }
        match self.other_handler(cx, name, HandlerKind::Write, value) {
            Some(answer) => answer.map(drop),
            None => Err(found.error(name, false)),
        }
    }

    fn long_work(&mut self) -> Option<&mut dyn LongWork> {
        Element::long_work(self)
    }

    fn more_handlers(&self) -> Vec<HandlerInfo> {
        let mut infos = E::NUMBERED.as_ref().map_or_else(Vec::new, |numbered| numbered.infos(self));
        infos.append(&mut Element::more_handlers(self));
        infos
    }

    fn export(&self) -> Option<Rc<dyn Any>> {
        Element::export(self)
    }

    fn waiting(&self, waiting: &mut Waiting) {
        Element::waiting(self, waiting);
    }

    fn keeps_pace(&self) -> bool {
        Element::keeps_pace(self)
    }

    fn flow_states(&mut self) -> FlowKeeping<'_> {
        Element::flow_states(self)
    }

    fn cleanup(&mut self, cx: &mut Context) {
        Element::cleanup(self, cx);
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
