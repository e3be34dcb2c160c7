//! Elements of the first shard in the other shards.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;

use packet::Batch;

use crate::arguments::{Arguments, Setup};
use crate::context::Context;
use crate::contract::{DynElement, LongWork};
use crate::environment::Descriptor;
use crate::error::{HandlerError, SetupError};
use crate::flow_states::FlowKeeping;
use crate::handler_info::HandlerInfo;
use crate::signal::Direction;
use crate::waiting::Waiting;

/// An element of the first shard, as it is in the others: it exists, so that handlers can be read and written, but does
/// nothing.
pub struct Resting(pub Box<dyn DynElement>);

impl DynElement for Resting {
    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let result = self.0.resolve(cx);
        cx.needs_initialization(true);
        result
    }
    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        cx.set_signal(Direction::Empty, false);
        Ok(())
    }
    fn push(&mut self, cx: &mut Context, port: usize, batch: Batch) {
        self.0.push(cx, port, batch);
    }
    fn push_mixed(&mut self, cx: &mut Context, inputs: &[u16], batch: Batch) {
        self.0.push_mixed(cx, inputs, batch);
    }
    fn pull(&mut self, _: &mut Context, _: usize, _: usize, _: &mut Batch) {}
    fn task(&mut self, _: &mut Context) -> bool {
        false
    }
    fn keeps_pace(&self) -> bool {
        false
    }
    fn timer(&mut self, _: &mut Context, _: usize) {}
    fn ready(&mut self, _: &mut Context, _: Descriptor) {}
    fn woken(&mut self, _: &mut Context) {}
    fn stopped(&mut self, _: &mut Context) {}
    fn reconfigure(&mut self, arguments: Arguments, setup: &mut Setup) -> Result<(), SetupError> {
        self.0.reconfigure(arguments, setup)
    }
    fn inherit(&mut self, _: &mut dyn DynElement, _: &mut Context) {}
    fn swap_state(&mut self) -> Option<&mut dyn Any> {
        None
    }
    fn read(&mut self, cx: &mut Context, name: &str, parameter: &str) -> Result<String, HandlerError> {
        self.0.read(cx, name, parameter)
    }
    fn write(&mut self, cx: &mut Context, name: &str, value: &str) -> Result<(), HandlerError> {
        self.0.write(cx, name, value)
    }
    fn long_work(&mut self) -> Option<&mut dyn LongWork> {
        self.0.long_work()
    }
    fn more_handlers(&self) -> Vec<HandlerInfo> {
        self.0.more_handlers()
    }
    fn export(&self) -> Option<Rc<dyn Any>> {
        self.0.export()
    }
    fn waiting(&self, waiting: &mut Waiting) {
        self.0.waiting(waiting);
    }
    fn flow_states(&mut self) -> FlowKeeping<'_> {
        FlowKeeping::Nothing
    }
    fn cleanup(&mut self, _: &mut Context) {}
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
