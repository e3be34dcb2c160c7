//! The environment of one configuration in a box.

use crate::context::BoxContext;
use crate::device;
use crate::files::{self, LogWriter, OutputFile};
use crate::limits::{MAX_RULE_MEMORY, RULE_MEMORY_HEAP_SHARE};
use crate::spread::UnreachableShards;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::Cell;
use element::{
    Descriptor, Device, DeviceRequest, DividedRange, Environment, Interface, IoError, OtherShards, Reader,
    Writer,
};
use packet::Timestamp;

/// The environment of one configuration.
pub(crate) struct BoxEnvironment {
    context: Rc<BoxContext>,
    name: String,
    /// The number of routers whose creation was started for it.
    router_number: Cell<u64>,
}

impl BoxEnvironment {
    pub(crate) fn new(context: &Rc<BoxContext>, name: &str) -> BoxEnvironment {
        BoxEnvironment { context: context.clone(), name: name.into(), router_number: Cell::new(0) }
    }
}

impl Environment for BoxEnvironment {
    fn now(&self) -> Timestamp {
        self.context.now()
    }

    fn steady(&self) -> Timestamp {
        self.context.steady()
    }

    fn seed(&self) -> u64 {
        self.context.seed()
    }

    fn prepare(&self) {
        self.router_number.set(self.router_number.get() + 1);
    }

    fn others(&self) -> Option<&dyn OtherShards> {
        let shard = self.context.shard.get();
        (shard.count > 1 && shard.index == 0).then_some(&UnreachableShards)
    }

    fn divide(&self, range: DividedRange) -> Result<(), IoError> {
        self.context.spread.borrow_mut().divide(range)
    }

    fn console(&self, text: &str) {
        self.context.events.borrow_mut().log(&self.name, text, self.context.steady());
    }

    fn open(&self, path: &str) -> Result<Box<dyn Reader>, IoError> {
        if self.context.shard.get().count > 1 {
            return Err(IoError::Unsupported("reading files in a box with several cores"));
        }
        files::open(&self.context.files.borrow(), path)
    }

    /// Only the host knows the file's current end, so positions of appended data also start at zero.
    fn create(&self, path: &str, _append: bool) -> Result<Box<dyn Writer>, IoError> {
        if path == "-" {
            return Ok(Box::new(LogWriter::new(self.context.clone(), &self.name)));
        }
        Ok(Box::new(OutputFile::new(self.context.clone(), path)))
    }

    fn device(&self, request: &DeviceRequest) -> Result<Box<dyn Device>, IoError> {
        device::open(&self.context, &self.name, self.router_number.get(), request)
    }

    fn interface(&self, name: &str) -> Option<Interface> {
        let port = self.context.ports.get(name.parse::<usize>().ok()?)?;
        Some(Interface { ip: None, link: Some(self.context.address(port)) })
    }

    /// Reports which devices are ready. A box waits for all its configurations together, not here.
    fn wait(&self, watched: &[(Descriptor, bool, bool)], _: Option<Timestamp>) -> Vec<Descriptor> {
        let ready =
            watched.iter().filter(|(descriptor, read, write)| self.is_ready(*descriptor, *read, *write));
        ready.map(|(descriptor, ..)| *descriptor).collect()
    }

    fn rule_memory(&self) -> usize {
        match self.context.platform.heap_use().size {
            0 => MAX_RULE_MEMORY,
            heap => MAX_RULE_MEMORY.min(heap / RULE_MEMORY_HEAP_SHARE),
        }
    }

    fn is_turn_over(&self) -> bool {
        self.context.is_turn_over()
    }

    fn is_ready(&self, descriptor: Descriptor, _read: bool, _write: bool) -> bool {
        let (number, side) = device::port_and_side(descriptor);
        let Some(port) = self.context.ports.get(number) else { return false };
        port.is_ready(side).unwrap_or_else(|corrupt| {
            self.context.fail(corrupt);
            false
        })
    }
}
