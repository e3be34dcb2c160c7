//! `Wasm`: runs a network function in WebAssembly.

use alloc::string::String;

use element::FlowKeeping;
use element::arguments::FileName;
use element::prelude::*;

use crate::answer::Answer;
use crate::base64;
use crate::host::BUFFER;
use crate::instance::{Failure, Instance, Limits};
use crate::module::{Loaded, MAX_BYTES};

/// Runs a network function that is a module of WebAssembly.
///
/// The module decides for each packet which output it leaves by, or that it is dropped, and may change it. It has memory of its
/// own and sees nothing else. `sdk/wasm` and `docs/book/functions-wasm.md` describe its interface.
///
/// A packet is lost as `wasm_fuel` if its call executes more than FUEL instructions, as `wasm_memory` if the module asks for more
/// than MEMORY KB, and as `wasm_trap` if the call fails in another way, or answers with a number that means nothing. The module
/// then begins again: with its memory as it was at the start, and its counters as they are. Packets of more than 2,048 bytes
/// are lost as `too_long`.
///
/// A new module takes the place of the old one between two packets: by the handlers `file` and `module`, or with another
/// configuration. If it can't be read or does not start, the old one goes on.
///
/// This class is not in the standard image, and not in `clickbox run`.
/// ```click
/// FromDevice(0) -> scrub :: Wasm(scrub.wasm, FUEL 20000) -> ToDevice(1);
/// scrub[1] -> suspicious :: Counter -> Discard;
/// ```
#[derive(Args)]
#[element(
    name = "Wasm",
    group = "function",
    ports = "1/1-",
    processing = "h/h",
    logs,
    see = "Script",
    drops = "too_long, function_drop, wasm_fuel, wasm_trap, wasm_memory",
    fates = "changed"
)]
pub struct WasmArgs {
    /// File of the module.
    #[arg(position, input_file)]
    file: FileName,
    /// Instructions that a packet may take.
    #[arg(default = "100000")]
    fuel: u64,
    /// Instructions that the start of the module may take.
    #[arg(default = "10000000")]
    start_fuel: u64,
    /// Memory that the module may have, in KB.
    #[arg(default = "1024")]
    memory: usize,
}

/// Instructions that FUEL and START_FUEL may allow: about ten seconds, in which a box answers nothing.
const MAX_FUEL: u64 = 1_000_000_000;

/// KB that MEMORY may allow.
const MAX_MEMORY: usize = 64 << 10;

pub struct Wasm {
    file: String,
    limits: Limits,
    running: Option<Running>,
    calls: u64,
    /// Instructions of instances that have ended.
    fuel_before: u64,
    failures: [u64; 3],
    restarts: u64,
    replaced: u64,
    last_failure: String,
}

/// A module, its instance, and the drop reasons that it declared.
struct Running {
    loaded: Loaded,
    /// None after a start that failed.
    instance: Option<Instance>,
    reasons: Vec<Reason>,
}

impl Running {
    /// Starts a module.
    fn new(bytes: &[u8], limits: Limits, cx: &Context) -> Result<Running, String> {
        let loaded = Loaded::new(bytes)?;
        let mut instance = Instance::new(&loaded, limits, cx.hash_seed(), None)
            .map_err(|failure| format!("the module does not start: {}", failure.text))?;
        flush(&mut instance, cx);
        let declared = instance.host_ref().reasons.iter().map(|name| {
            cx.declare_reason(name).ok_or_else(|| {
                format!(
                    "{name:?} is no drop reason of a function: it must be `user:FUNCTION/REASON` in lower-case letters, \
                     digits and underscores, and a router has room for some hundred"
                )
            })
        });
        let reasons = declared.collect::<Result<_, _>>()?;
        Ok(Running { loaded, instance: Some(instance), reasons })
    }
}

/// Writes the lines of a module to the log.
fn flush(instance: &mut Instance, cx: &Context) {
    let lines = core::mem::take(&mut instance.host().lines);
    let name = if lines.is_empty() { String::new() } else { cx.name() };
    lines.iter().for_each(|line| cx.log(&format!("{name}: {line}")));
}

/// Reads a file of the environment.
fn read(cx: &Context, file: &str) -> Result<Vec<u8>, String> {
    let mut reader = cx.environment().open(file).map_err(|error| error.to_string())?;
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let count = reader.read(&mut chunk).map_err(|error| error.to_string())?;
        bytes.extend_from_slice(chunk.get(..count).unwrap_or_default());
        if count == 0 || bytes.len() > MAX_BYTES {
            return Ok(bytes);
        }
    }
}

impl Wasm {
    /// Makes another module decide, or leaves everything as it is.
    fn replace(&mut self, cx: &Context, bytes: &[u8]) -> Result<(), HandlerError> {
        let mut next = Running::new(bytes, self.limits, cx).map_err(HandlerError::new)?;
        let old = self.running.take().and_then(|running| running.instance);
        if let (Some(old), Some(next)) = (old, &mut next.instance) {
            self.fuel_before += old.fuel_used;
            next.add_counters(&old);
        }
        self.running = Some(next);
        self.replaced += 1;
        Ok(())
    }

    /// Counts a failure, and lets the module begin again.
    fn fail(&mut self, cx: &Context, failure: &Failure) {
        let kinds = [Reason::WASM_FUEL, Reason::WASM_MEMORY, Reason::WASM_TRAP];
        let kind = kinds.iter().position(|reason| *reason == failure.reason);
        if let Some(count) = kind.and_then(|kind| self.failures.get_mut(kind)) {
            *count += 1;
        }
        self.last_failure.clone_from(&failure.text);
        let Some(running) = &mut self.running else { return };
        let Some(mut old) = running.instance.take() else { return };
        flush(&mut old, cx);
        self.fuel_before += old.fuel_used;
        match Instance::new(&running.loaded, self.limits, cx.hash_seed(), Some(old.host())) {
            Ok(mut instance) => {
                self.restarts += 1;
                flush(&mut instance, cx);
                running.instance = Some(instance);
            }
            Err(failure) => {
                let text = format!("the module does not start again: {}", failure.text);
                cx.log(&format!("{}: {text}; all packets are lost until it is replaced", cx.name()));
                self.last_failure = text;
            }
        }
    }

    /// Has a packet processed.
    fn process(&mut self, cx: &mut Context, mut packet: Packet) {
        if packet.len() > BUFFER {
            return cx.drop(packet, Reason::TOO_LONG);
        }
        let Some(running) = &mut self.running else { return cx.drop(packet, Reason::WASM_TRAP) };
        let Some(instance) = &mut running.instance else { return cx.drop(packet, Reason::WASM_TRAP) };
        self.calls += 1;
        instance.host().now = cx.steady().nanos();
        let result = instance.process(packet.data(), self.limits.fuel).and_then(|value| {
            Answer::new(value, &running.reasons)
                .ok_or_else(|| Failure::trap(format!("it answered {value}, which means nothing")))
        });
        match result {
            Ok(Answer::Output(output)) => {
                if instance.packet() != packet.data() && !set(&mut packet, instance.packet()) {
                    return cx.drop(packet, Reason::NO_BUFFER);
                }
                if !instance.host_ref().lines.is_empty() {
                    flush(instance, cx);
                }
                cx.send(output, packet);
            }
            Ok(Answer::Drop(reason)) => {
                flush(instance, cx);
                cx.drop(packet, reason);
            }
            Err(failure) => {
                cx.drop(packet, failure.reason);
                self.fail(cx, &failure);
            }
        }
    }

    fn instance(&self) -> Option<&Instance> {
        self.running.as_ref()?.instance.as_ref()
    }

    fn fuel_used(&self) -> u64 {
        self.fuel_before + self.instance().map_or(0, |instance| instance.fuel_used)
    }
}

/// Gives a packet other bytes. False if there is no buffer for them.
fn set(packet: &mut Packet, bytes: &[u8]) -> bool {
    match bytes.len().checked_sub(packet.len()) {
        Some(0) => {}
        Some(more) => {
            if packet.append(more).is_none() {
                return false;
            }
        }
        None => packet.truncate(bytes.len()),
    }
    let data = packet.data_mut();
    let is_there = data.len() == bytes.len();
    if is_there {
        data.copy_from_slice(bytes);
    }
    is_there
}

impl Element for Wasm {
    type Args = WasmArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("file", "File of the module; empty after a write to `module`.", |wasm| {
            wasm.file.clone()
        }),
        Handler::argument(
            "file",
            (Some(0), "FILE"),
            "Replaces the module by that of another file, which came with the configuration.",
            |wasm, cx, value| {
                let file: FileName = cx.argument(value)?;
                let bytes =
                    read(cx, &file.0).map_err(|error| HandlerError::new(format!("{}: {error}", file.0)))?;
                wasm.replace(cx, &bytes)?;
                wasm.file = file.0;
                Ok(())
            },
        ),
        Handler::action(
            "module",
            "Replaces the module by this one, which is written in base64.",
            |wasm, cx, value| {
                let bytes =
                    base64::decode(value).ok_or_else(|| HandlerError::new("the module must be in base64"))?;
                wasm.replace(cx, &bytes)?;
                wasm.file.clear();
                Ok(())
            },
        ),
        Handler::read("module", "Bytes of the module, and their hash.", |wasm| {
            let identity = wasm.running.as_ref().map(|running| running.loaded.identity);
            identity.map_or_else(String::new, |(bytes, hash)| format!("{bytes} bytes {hash:016x}"))
        }),
        Handler::read("calls", "Packets that the module was called for.", |wasm| wasm.calls.to_string()),
        Handler::read("fuel_used", "Instructions that the module has executed.", |wasm| {
            wasm.fuel_used().to_string()
        }),
        Handler::read("fuel", "Instructions that a packet may take.", |wasm| wasm.limits.fuel.to_string()),
        Handler::argument(
            "fuel",
            (None, "FUEL"),
            "Sets the instructions that a packet may take.",
            |wasm, cx, value| {
                let fuel = cx.keyword("FUEL", value)?;
                check_fuel("FUEL", fuel).map_err(HandlerError::new)?;
                wasm.limits.fuel = fuel;
                Ok(())
            },
        ),
        Handler::read("memory", "Bytes of memory that the module has.", |wasm| {
            wasm.instance().map_or(0, Instance::memory_size).to_string()
        }),
        Handler::read("out_of_fuel", "Calls that took more instructions than allowed.", |wasm| {
            wasm.failures[0].to_string()
        }),
        Handler::read("out_of_memory", "Calls that took more memory than allowed.", |wasm| {
            wasm.failures[1].to_string()
        }),
        Handler::read("traps", "Calls that failed in another way.", |wasm| wasm.failures[2].to_string()),
        Handler::read("restarts", "How often the module began again after a failure.", |wasm| {
            wasm.restarts.to_string()
        }),
        Handler::read("replaced", "How often the module was replaced.", |wasm| wasm.replaced.to_string()),
        Handler::read("last_failure", "Why the last call failed.", |wasm| wasm.last_failure.clone()),
        Handler::read("counters", "Counters of the module, one a line.", |wasm| {
            let counters = wasm.instance().map_or(&[][..], |instance| &instance.host_ref().counters);
            counters.iter().map(|(name, value)| format!("{name} {value}\n")).collect()
        }),
        Handler::action("message", "Sends the module a message.", |wasm, cx, value| {
            let refused = |text: &str| Err(HandlerError::new(text));
            if value.len() > BUFFER {
                return refused("a message has at most 2048 bytes");
            }
            let instance = wasm.running.as_mut().and_then(|running| running.instance.as_mut());
            let Some(instance) = instance else { return refused("the module has failed") };
            instance.host().now = cx.steady().nanos();
            match instance.message(value.as_bytes(), wasm.limits.fuel) {
                None => refused("the module takes no messages"),
                Some(Ok(answer)) => {
                    flush(instance, cx);
                    if answer == 0 { Ok(()) } else { refused("the module refused the message") }
                }
                Some(Err(failure)) => {
                    wasm.fail(cx, &failure);
                    Err(HandlerError::new(format!("the module failed: {}", failure.text)))
                }
            }
        }),
    ];

    fn new(args: WasmArgs, _: &mut Setup) -> Result<Wasm, SetupError> {
        check_fuel("FUEL", args.fuel).map_err(SetupError::new)?;
        check_fuel("START_FUEL", args.start_fuel).map_err(SetupError::new)?;
        if !(64..=MAX_MEMORY).contains(&args.memory) {
            return Err(SetupError::new(format!("MEMORY must be between 64 and {MAX_MEMORY} KB")));
        }
        let limits = Limits { fuel: args.fuel, start_fuel: args.start_fuel, memory: args.memory << 10 };
        Ok(Wasm {
            file: args.file.0,
            limits,
            running: None,
            calls: 0,
            fuel_before: 0,
            failures: [0; 3],
            restarts: 0,
            replaced: 0,
            last_failure: String::new(),
        })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let running = read(cx, &self.file).and_then(|bytes| Running::new(&bytes, self.limits, cx));
        let failed = |error| SetupError::new(format!("{}: {error}", self.file));
        self.running = Some(running.map_err(failed)?);
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, _: usize, mut batch: Batch) {
        for packet in batch.drain() {
            self.process(cx, packet);
        }
        cx.recycle(batch);
    }

    fn inherit(&mut self, old: &mut Wasm, _: &mut Context) {
        self.calls = old.calls;
        self.failures = old.failures;
        self.restarts = old.restarts;
        self.replaced = old.replaced;
        let (Some(new), Some(mut old_running)) = (&mut self.running, old.running.take()) else { return };
        self.fuel_before += old.fuel_before;
        let (Some(next), Some(mut instance)) = (&mut new.instance, old_running.instance.take()) else {
            return;
        };
        let is_same = new.loaded.identity == old_running.loaded.identity
            && next.host_ref().reasons == instance.host_ref().reasons
            && instance.memory_size() <= self.limits.memory;
        if is_same {
            // The module goes on with its memory. Its reasons are those of this router.
            instance.host().limits = next.host_ref().limits.clone();
            new.loaded = old_running.loaded;
            *next = instance;
        } else {
            self.fuel_before += instance.fuel_used;
            next.add_counters(&instance);
        }
    }

    fn flow_states(&mut self) -> FlowKeeping<'_> {
        // Nobody knows what the module keeps in its memory.
        if self.calls > 0 { FlowKeeping::Lost } else { FlowKeeping::Nothing }
    }
}

fn check_fuel(keyword: &str, fuel: u64) -> Result<(), String> {
    match (1..=MAX_FUEL).contains(&fuel) {
        true => Ok(()),
        false => Err(format!("{keyword} must be between 1 and {MAX_FUEL}")),
    }
}
