//! A module that runs: its memory, and calls of its functions.

use alloc::format;
use alloc::string::{String, ToString};
use core::mem;

use element::Reason;
use wasmi::errors::{ErrorKind, InstantiationError};
use wasmi::{Error, Memory, Store, TrapCode, TypedFunc};

use crate::host::{BUFFER, Host};
use crate::module::Loaded;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The reason for which the packet is lost.
    pub(crate) reason: Reason,
    /// For the user.
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn trap(text: impl Into<String>) -> Failure {
        Failure { reason: Reason::WASM_TRAP, text: text.into() }
    }

    fn new(error: &Error) -> Failure {
        let reason = match error.as_trap_code() {
            Some(TrapCode::OutOfFuel) => Reason::WASM_FUEL,
            Some(TrapCode::GrowthOperationLimited | TrapCode::OutOfSystemMemory) => Reason::WASM_MEMORY,
            Some(_) => Reason::WASM_TRAP,
            // Memory and tables that the module has from its start.
            None => match error.kind() {
                ErrorKind::Memory(_)
                | ErrorKind::Table(_)
                | ErrorKind::Instantiation(
                    InstantiationError::FailedToInstantiateMemory(_)
                    | InstantiationError::FailedToInstantiateTable(_),
                ) => Reason::WASM_MEMORY,
                _ => Reason::WASM_TRAP,
            },
        };
        let text = match reason {
            Reason::WASM_FUEL => "it executed more instructions than allowed".into(),
            Reason::WASM_MEMORY => "it asked for more memory than allowed".into(),
            _ => error.to_string(),
        };
        Failure { reason, text }
    }
}

/// The limits of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Instructions for a packet or a message.
    pub(crate) fuel: u64,
    /// Instructions for the start.
    pub(crate) start_fuel: u64,
    /// Bytes of memory.
    pub(crate) memory: usize,
}

/// An instance of a module.
pub(crate) struct Instance {
    store: Store<Host>,
    memory: Memory,
    /// The address of the buffer for packets.
    buffer: usize,
    process: TypedFunc<i32, i32>,
    message: Option<TypedFunc<i32, i32>>,
    /// Instructions of all calls.
    pub(crate) fuel_used: u64,
}

impl Instance {
    /// Makes an instance and starts it. `earlier` has the counters and reasons of the one before it, whose numbers stay.
    pub(crate) fn new(
        loaded: &Loaded,
        limits: Limits,
        random: u64,
        earlier: Option<&mut Host>,
    ) -> Result<Instance, Failure> {
        let mut host = Host::new(limits.memory, random);
        if let Some(earlier) = earlier {
            host.counters = mem::take(&mut earlier.counters);
            host.reasons = mem::take(&mut earlier.reasons);
        }
        let mut store = Store::new(&loaded.engine, host);
        store.limiter(|host| &mut host.limits);
        let failed = |error: Error| Failure::new(&error);
        store.set_fuel(limits.start_fuel).map_err(failed)?;
        let instance = loaded.linker.instantiate_and_start(&mut store, &loaded.module).map_err(failed)?;
        let missing = || Failure::trap("the module does not export its memory as `memory`");
        let memory = instance.get_memory(&store, "memory").ok_or_else(missing)?;
        if let Ok(start) = instance.get_typed_func::<(), ()>(&store, "start") {
            start.call(&mut store, ()).map_err(failed)?;
        }
        let buffer = instance.get_typed_func::<i32, i32>(&store, "buffer").map_err(failed)?;
        let buffer = buffer.call(&mut store, BUFFER as i32).map_err(failed)?;
        let process = instance.get_typed_func::<i32, i32>(&store, "process").map_err(failed)?;
        let message = instance.get_typed_func::<i32, i32>(&store, "message").ok();
        store.data_mut().is_starting = false;
        let fuel_used = limits.start_fuel.saturating_sub(store.get_fuel().unwrap_or(0));
        let buffer = buffer as u32 as usize;
        // Memory only grows.
        if memory.data(&store).get(buffer..buffer.saturating_add(BUFFER)).is_none() {
            let text = format!("`buffer` returned {buffer}, where the memory has no {BUFFER} bytes");
            return Err(Failure::trap(text));
        }
        Ok(Instance { store, memory, buffer, process, message, fuel_used })
    }

    /// What the element keeps for it.
    pub(crate) fn host(&mut self) -> &mut Host {
        self.store.data_mut()
    }

    /// The same, to read.
    pub(crate) fn host_ref(&self) -> &Host {
        self.store.data()
    }

    /// Takes over the counters of another module: those of the same name go on.
    pub(crate) fn add_counters(&mut self, other: &Instance) {
        for (name, value) in &mut self.store.data_mut().counters {
            let found = other.host_ref().counters.iter().find(|(known, _)| known == name);
            *value = value.wrapping_add(found.map_or(0, |(_, value)| *value));
        }
    }

    /// The bytes of its memory.
    pub(crate) fn memory_size(&self) -> usize {
        self.memory.data_size(&self.store)
    }

    /// Has a packet processed, of at most [`BUFFER`] bytes. Returns the answer; the packet is then [`Self::packet`].
    pub(crate) fn process(&mut self, packet: &[u8], fuel: u64) -> Result<i32, Failure> {
        let process = self.process;
        self.call(process, packet, fuel)
    }

    /// Gives the module a message. Returns what it answers, or `None` if it takes none.
    pub(crate) fn message(&mut self, text: &[u8], fuel: u64) -> Option<Result<i32, Failure>> {
        let message = self.message?;
        Some(self.call(message, text, fuel))
    }

    fn call(&mut self, function: TypedFunc<i32, i32>, bytes: &[u8], fuel: u64) -> Result<i32, Failure> {
        let end = self.buffer + bytes.len();
        let Some(into) = self.memory.data_mut(&mut self.store).get_mut(self.buffer..end) else {
            return Err(Failure::trap("the buffer is too short"));
        };
        into.copy_from_slice(bytes);
        self.store.data_mut().length = bytes.len();
        let result = match self.store.set_fuel(fuel) {
            Ok(()) => function.call(&mut self.store, bytes.len() as i32),
            Err(error) => Err(error),
        };
        self.fuel_used += fuel.saturating_sub(self.store.get_fuel().unwrap_or(0));
        result.map_err(|error| Failure::new(&error))
    }

    /// The packet as the module left it.
    pub(crate) fn packet(&self) -> &[u8] {
        let end = self.buffer + self.store.data().length;
        self.memory.data(&self.store).get(self.buffer..end).unwrap_or_default()
    }
}
