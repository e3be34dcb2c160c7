//! The element as its author writes it and as the router holds it.

use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::any::Any;

use packet::Batch;
use reason::Reason;

use crate::arguments::{Args, Arguments, Setup};
use crate::context::Context;
use crate::environment::Descriptor;
use crate::error::{HandlerError, SetupError};
use crate::handler::{Handler, HandlerInfo, HandlerKind, Numbered};

/// An element with full access to ports, its task, timers and descriptors. Most are a [`Filter`](crate::Filter)
/// instead.
///
/// A method that the class's ports or `ClassInfo` never let the router call need not be written.
pub trait Element: Sized + 'static {
    /// Its arguments.
    type Args: Args;
    /// Its handlers.
    const HANDLERS: &'static [Handler<Self>] = &[];
    /// Those that it has one of for each port or argument.
    const NUMBERED: Option<Numbered<Self>> = None;
    /// Whether `config` may be written while it runs.
    const LIVE: bool = false;

    /// Makes one, from arguments that are in order by themselves.
    fn new(args: Self::Args, setup: &mut Setup) -> Result<Self, SetupError>;

    /// Finds what its arguments name of other elements, when all exist: the end of configuring.
    fn resolve(&mut self, _cx: &mut Context) -> Result<(), SetupError> {
        Ok(())
    }

    /// Prepares to run, when all elements are configured.
    fn initialize(&mut self, _cx: &mut Context) -> Result<(), SetupError> {
        Ok(())
    }

    /// Takes packets that arrive on a push input.
    fn push(&mut self, cx: &mut Context, _port: usize, batch: Batch) {
        cx.drop_batch(batch, Reason::NO_PUSH);
    }

    /// Adds at most `most` packets, each one of Click's pulls, from a pull output to `into`.
    fn pull(&mut self, _cx: &mut Context, _port: usize, _most: usize, _into: &mut Batch) {}

    /// Runs the task, which is unscheduled before; returns whether there was work.
    fn task(&mut self, _cx: &mut Context) -> bool {
        false
    }

    /// A timer that was set has come.
    fn timer(&mut self, _cx: &mut Context, _timer: usize) {}

    /// A descriptor that is watched is ready.
    fn ready(&mut self, _cx: &mut Context, _descriptor: Descriptor) {}

    /// A signal that it watches became active; by default its task is scheduled.
    fn woken(&mut self, cx: &mut Context) {
        cx.schedule();
    }

    /// The driver's count is used up. The element that manages the driver may raise it again.
    fn stopped(&mut self, _cx: &mut Context) {}

    /// Makes it anew from new arguments while it runs (with `LIVE`); on failure nothing has changed.
    fn reconfigure(&mut self, args: Self::Args, setup: &mut Setup) -> Result<(), SetupError> {
        *self = Self::new(args, setup)?;
        Ok(())
    }

    /// Takes over the state of an old element of the same name and class, after `initialize`.
    fn inherit(&mut self, _old: &mut Self, _cx: &mut Context) {}

    /// What an element of a kindred class may take over that has its name.
    fn swap_state(&mut self) -> Option<&mut dyn Any> {
        None
    }

    /// Takes over the state of an old element of the same name and another class, if it is of use.
    fn inherit_swap_state(&mut self, _state: &mut dyn Any, _cx: &mut Context) {}

    /// Answers a handler that is neither in `HANDLERS` nor `NUMBERED`; `None` means that there is no such handler.
    fn other_handler(
        &mut self,
        _cx: &mut Context,
        _name: &str,
        _call: HandlerKind,
        _value: &str,
    ) -> Option<Result<String, HandlerError>> {
        None
    }

    /// Those handlers of `other_handler` that exist in this configuration, for lists.
    fn more_handlers(&self) -> Vec<HandlerInfo> {
        Vec::new()
    }

    /// What other elements may use of it, found by its name.
    fn export(&self) -> Option<Rc<dyn Any>> {
        None
    }

    /// The router stops for good: flush and close.
    fn cleanup(&mut self, _cx: &mut Context) {}
}

/// An [`Element`] without its type. Made by [`Class::create`](crate::Class::create) only.
#[allow(missing_docs)]
pub trait DynElement: Any {
    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError>;
    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError>;
    fn push(&mut self, cx: &mut Context, port: usize, batch: Batch);
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
    fn more_handlers(&self) -> Vec<HandlerInfo>;
    fn export(&self) -> Option<Rc<dyn Any>>;
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
        let mut written = false;
        for handler in E::HANDLERS.iter().filter(|handler| handler.name() == name) {
            if handler.info().kind == HandlerKind::Read && !parameter.is_empty() {
                return Err(HandlerError::NoParameter(name.to_string()));
            }
            if handler.info().kind != HandlerKind::Write {
                return handler.call_read(self, cx, parameter);
            }
            written = true;
        }
        if let Some(numbered) = &E::NUMBERED
            && let Some(number) = numbered.find(self, name)
        {
            if !parameter.is_empty() {
                return Err(HandlerError::NoParameter(name.to_string()));
            }
            return Ok((numbered.read)(self, number));
        }
        match self.other_handler(cx, name, HandlerKind::ReadWithParameter, parameter) {
            Some(answer) => answer,
            None if written => Err(HandlerError::Wrong { path: name.to_string(), read: true }),
            None => Err(HandlerError::NoHandler(name.to_string())),
        }
    }

    fn write(&mut self, cx: &mut Context, name: &str, value: &str) -> Result<(), HandlerError> {
        let mut read = false;
        for handler in E::HANDLERS.iter().filter(|handler| handler.name() == name) {
            if handler.info().kind == HandlerKind::Write {
                return handler.call_write(self, cx, value);
            }
            read = true;
        }
        if let Some(numbered) = &E::NUMBERED
            && let Some(number) = numbered.find(self, name)
        {
            return (numbered.write)(self, cx, number, value);
        }
        match self.other_handler(cx, name, HandlerKind::Write, value) {
            Some(answer) => answer.map(drop),
            None if read => Err(HandlerError::Wrong { path: name.to_string(), read: false }),
            None => Err(HandlerError::NoHandler(name.to_string())),
        }
    }

    fn more_handlers(&self) -> Vec<HandlerInfo> {
        let numbered = E::NUMBERED.iter().flat_map(|numbered| numbered.infos(self));
        numbered.chain(Element::more_handlers(self)).collect()
    }

    fn export(&self) -> Option<Rc<dyn Any>> {
        Element::export(self)
    }

    fn cleanup(&mut self, cx: &mut Context) {
        Element::cleanup(self, cx);
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
