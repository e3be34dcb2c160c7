//! The outside world of one configuration in a box.

use crate::device;
use crate::files::{Input, Lines, Output};
use crate::world::World;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::Cell;
use core::net::Ipv4Addr;
use element::{Descriptor, Device, DeviceRequest, Environment, Interface, IoError, Reader, Writer};
use packet::Timestamp;

/// The outside world of one configuration.
pub(crate) struct Surroundings {
    world: Rc<World>,
    name: String,
    /// How many routers were begun to be made for it.
    making: Cell<u64>,
}

impl Surroundings {
    pub(crate) fn new(world: &Rc<World>, name: &str) -> Surroundings {
        Surroundings { world: world.clone(), name: name.into(), making: Cell::new(0) }
    }
}

impl Environment for Surroundings {
    fn now(&self) -> Timestamp {
        self.world.now()
    }

    fn steady(&self) -> Timestamp {
        self.world.steady()
    }

    fn seed(&self) -> u64 {
        self.world.seed()
    }

    fn prepare(&self) {
        self.making.set(self.making.get() + 1);
    }

    fn console(&self, text: &str) {
        self.world.events.borrow_mut().say(&self.name, text, self.world.steady());
    }

    fn open(&self, path: &str) -> Result<Box<dyn Reader>, IoError> {
        Input::open(&self.world.files.borrow(), path)
    }

    /// Where a file ends already only the host knows: what is appended to it counts from zero too.
    fn create(&self, path: &str, _append: bool) -> Result<Box<dyn Writer>, IoError> {
        if path == "-" {
            return Ok(Box::new(Lines::new(self.world.clone(), &self.name)));
        }
        Ok(Box::new(Output::new(self.world.clone(), path)))
    }

    fn device(&self, request: &DeviceRequest) -> Result<Box<dyn Device>, IoError> {
        device::open(&self.world, &self.name, self.making.get(), request)
    }

    fn interface(&self, name: &str) -> Option<Interface> {
        let port = self.world.ports.get(name.parse::<usize>().ok()?)?;
        Some(Interface { ip: None, link: Some(self.world.address(port)) })
    }

    fn host(&self, _name: &str) -> Option<Ipv4Addr> {
        None
    }

    fn list(&self, path: &str) -> Result<Vec<String>, IoError> {
        let folder = path.trim_end_matches('/');
        let files = self.world.files.borrow();
        let inside = |name: &String| match folder {
            "" | "." => (!name.contains('/')).then(|| name.clone()),
            _ => name
                .strip_prefix(folder)?
                .strip_prefix('/')
                .filter(|name| !name.contains('/'))
                .map(String::from),
        };
        Ok(files.keys().filter_map(inside).collect())
    }

    /// Says what is ready; a box waits for all of its configurations at once, not here.
    fn wait(&self, watched: &[(Descriptor, bool, bool)], _: Option<Timestamp>) -> Vec<Descriptor> {
        let ready =
            watched.iter().filter(|(descriptor, read, write)| self.is_ready(*descriptor, *read, *write));
        ready.map(|(descriptor, ..)| *descriptor).collect()
    }

    fn is_turn_over(&self) -> bool {
        self.world.is_turn_over()
    }

    fn is_ready(&self, descriptor: Descriptor, _read: bool, _write: bool) -> bool {
        let (number, side) = device::place(descriptor);
        let Some(port) = self.world.ports.get(number) else { return false };
        port.is_ready(side).unwrap_or_else(|corrupt| {
            self.world.fail(corrupt);
            false
        })
    }
}
