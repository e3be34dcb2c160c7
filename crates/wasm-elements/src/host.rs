//! What a module can call, and what the element keeps for it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use wasmi::{Caller, Error, Extern, Linker, StoreLimits, StoreLimitsBuilder};

/// The name of the module that these functions are imported from.
pub(crate) const MODULE: &str = "clickbox";

/// Bytes of a packet, and of the module's buffer for it: those of a buffer in a box.
pub(crate) const BUFFER: usize = 2048;

/// Counters that a module may have. Stops a module from making the handler `counters` endless.
const MAX_COUNTERS: usize = 64;

/// Drop reasons that a module may declare: a router has room for a few hundred.
const MAX_REASONS: usize = 16;

/// Bytes of a name or of a line in the log.
const MAX_TEXT: usize = 256;

/// Lines of the log that a call may write. Stops a module from filling the box's channel of events.
const MAX_LINES: usize = 16;

/// Entries of all tables of a module.
const MAX_TABLE: usize = 10_000;

/// The state of a module outside of its memory.
pub(crate) struct Host {
    /// What the module may take. wasmi asks it.
    pub(crate) limits: StoreLimits,
    /// Counters, by name, in the order in which the module asked for them.
    pub(crate) counters: Vec<(String, u64)>,
    /// Names of drop reasons, in the order in which the module declared them.
    pub(crate) reasons: Vec<String>,
    /// Lines for the log.
    pub(crate) lines: Vec<String>,
    /// Whether counters and reasons may be declared: while the module starts.
    pub(crate) is_starting: bool,
    /// The length of the packet.
    pub(crate) length: usize,
    /// Monotonic time in nanoseconds.
    pub(crate) now: i64,
    /// The state of the sequence of random numbers.
    pub(crate) random: u64,
}

impl Host {
    /// For a module that may take so many bytes of memory.
    pub(crate) fn new(memory: usize, random: u64) -> Host {
        let limits = StoreLimitsBuilder::new()
            .memory_size(memory)
            .table_elements(MAX_TABLE)
            .instances(1)
            .tables(1)
            .memories(1)
            .trap_on_grow_failure(true)
            .build();
        Host {
            limits,
            counters: Vec::new(),
            reasons: Vec::new(),
            lines: Vec::new(),
            is_starting: true,
            length: 0,
            now: 0,
            random,
        }
    }

    /// The number of a counter, or -1.
    fn counter(&mut self, name: &str) -> i32 {
        let found = self.counters.iter().position(|(known, _)| known == name);
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let is_new = self.is_starting
            && self.counters.len() < MAX_COUNTERS
            && !name.is_empty()
            && name.bytes().all(is_name);
        match found {
            Some(index) => index as i32,
            None if is_new => {
                self.counters.push((name.to_string(), 0));
                self.counters.len() as i32 - 1
            }
            None => -1,
        }
    }

    /// The answer that drops a packet for a reason, or -1, which drops it as well.
    fn reason(&mut self, name: &str) -> i32 {
        let index = match self.reasons.iter().position(|known| known == name) {
            Some(index) => index,
            None if self.is_starting && self.reasons.len() < MAX_REASONS => {
                self.reasons.push(name.to_string());
                self.reasons.len() - 1
            }
            None => return -1,
        };
        -2 - index as i32
    }

    /// A random number: xorshift64*.
    fn draw(&mut self) -> u32 {
        let mut state = self.random | 1;
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.random = state;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }
}

/// A text in the module's memory.
fn text(caller: &Caller<'_, Host>, address: u32, length: u32) -> Result<String, Error> {
    let memory = caller.get_export("memory").and_then(Extern::into_memory);
    let memory = memory.ok_or_else(|| Error::new("the module has no memory"))?;
    let start = address as usize;
    let bytes = memory.data(caller).get(start..start.saturating_add((length as usize).min(MAX_TEXT)));
    let bytes = bytes.ok_or_else(|| Error::new("a text is not in the module's memory"))?;
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

/// Defines the functions.
pub(crate) fn define(linker: &mut Linker<Host>) -> Result<(), Error> {
    linker.func_wrap(
        MODULE,
        "counter",
        |mut caller: Caller<'_, Host>, address: u32, length: u32| -> Result<i32, Error> {
            let name = text(&caller, address, length)?;
            Ok(caller.data_mut().counter(&name))
        },
    )?;
    linker.func_wrap(MODULE, "count", |mut caller: Caller<'_, Host>, counter: i32, amount: u64| {
        let index = usize::try_from(counter).ok();
        if let Some((_, value)) = index.and_then(|index| caller.data_mut().counters.get_mut(index)) {
            *value = value.wrapping_add(amount);
        }
    })?;
    linker.func_wrap(
        MODULE,
        "reason",
        |mut caller: Caller<'_, Host>, address: u32, length: u32| -> Result<i32, Error> {
            let name = text(&caller, address, length)?;
            Ok(caller.data_mut().reason(&name))
        },
    )?;
    linker.func_wrap(
        MODULE,
        "log",
        |mut caller: Caller<'_, Host>, address: u32, length: u32| -> Result<(), Error> {
            if caller.data().lines.len() < MAX_LINES {
                let line = text(&caller, address, length)?.replace(char::is_control, " ");
                caller.data_mut().lines.push(line);
            }
            Ok(())
        },
    )?;
    linker.func_wrap(MODULE, "resize", |mut caller: Caller<'_, Host>, length: u32| -> i32 {
        let is_good = length as usize <= BUFFER;
        if is_good {
            caller.data_mut().length = length as usize;
        }
        i32::from(is_good) - 1
    })?;
    linker.func_wrap(MODULE, "now", |caller: Caller<'_, Host>| caller.data().now)?;
    linker.func_wrap(MODULE, "random", |mut caller: Caller<'_, Host>| caller.data_mut().draw())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_and_end_with_the_start() {
        let mut host = Host::new(1 << 16, 1);
        assert_eq!((host.counter("a"), host.counter("b"), host.counter("a")), (0, 1, 0));
        assert_eq!((host.counter(""), host.counter("a b"), host.counter("x\n1")), (-1, -1, -1));
        assert_eq!((host.reason("x"), host.reason("y"), host.reason("x")), (-2, -3, -2));
        for number in 0..MAX_COUNTERS + 9 {
            host.counter(&alloc::format!("c{number}"));
            host.reason(&alloc::format!("c{number}"));
        }
        assert_eq!((host.counters.len(), host.reasons.len()), (MAX_COUNTERS, MAX_REASONS));
        let mut host = Host::new(1 << 16, 0);
        host.is_starting = false;
        assert_eq!((host.counter("a"), host.reason("a")), (-1, -1));
        let drawn: Vec<u32> = (0..4).map(|_| host.draw()).collect();
        assert!(drawn.windows(2).all(|pair| pair[0] != pair[1]), "{drawn:?}");
    }
}
