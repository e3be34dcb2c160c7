//! The element behind `Script` and `DriverManager`.

use core::marker::PhantomData;

use element::prelude::*;
use element::{Descriptor, HandlerInfo, HandlerKind, Io, Stream, WriteEffect};

use super::calls::is_listed;
use super::machine::{Machine, Request, ScriptType};

/// The arguments of a script element.
pub trait ScriptArguments: Args {
    #[doc(hidden)]
    fn machine(self, setup: &mut Setup) -> Result<Compiled, SetupError>;
}

/// A compiled script.
pub struct Compiled(pub(super) Machine);
pub struct Scripted<A> {
    machine: Machine,
    /// Streams that deliver signals, for scripts started by signals.
    signals: Vec<Box<dyn Stream>>,
    arguments: PhantomData<A>,
}

macro_rules! functions {
    ($($name:literal $summary:literal)* hidden $($hidden:literal $hidden_summary:literal)*) => {
        &[
            Handler::action("step", "Executes this many blocking instructions; 1 if empty.", |script: &mut Self, cx, value| {
                script.machine.request(cx, Request::Step, ("step", value), true).map(drop)
            }),
            Handler::action("goto", "Jumps to a label.", |script: &mut Self, cx, value| {
                script.machine.request(cx, Request::Goto, ("goto", value), true).map(drop)
            }),
            Handler::action("run", "Runs the script.", |script: &mut Self, cx, value| {
                script.machine.request(cx, Request::Run, ("run", value), true).map(drop)
            }),
            Handler::read_with("run", "Runs the script and returns its value.", |script: &mut Self, cx, value| {
                script.machine.request(cx, Request::Run, ("run", value), false)
            }),
            Handler::action("set", "Sets a variable: name and value.", |script: &mut Self, _, value| {
                script.machine.assign(value)
            }),
            $(Handler::read_with($name, $summary, |script: &mut Self, cx, parameter| {
                let none = || Err(HandlerError::NoHandler($name.into()));
                script.machine.function(cx, $name, parameter).unwrap_or_else(none)
            }),)*
            $(Handler::read_with($hidden, $hidden_summary, |script: &mut Self, cx, parameter| {
                let none = || Err(HandlerError::NoHandler($hidden.into()));
                script.machine.function(cx, $hidden, parameter).unwrap_or_else(none)
            })
            .hidden(),)*
        ]
    };
}

impl<A: ScriptArguments + 'static> Element for Scripted<A> {
    type Args = A;
    const HANDLERS: &'static [Handler<Self>] = functions! {
        "add" "The sum of the numbers."
        "sub" "The first number minus the others."
        "min" "The smallest of the numbers."
        "max" "The largest of the numbers."
        "mul" "The product of the numbers."
        "div" "The first number divided by the others."
        "idiv" "Like `div`, without the fraction."
        "mod" "The remainder of two integers."
        "rem" "The remainder of two numbers."
        "neg" "The negative of a number."
        "abs" "The absolute value of a number."
        "eq" "Whether two numbers or texts are equal."
        "ne" "Whether two numbers or texts differ."
        "gt" "Whether the first number or text is greater."
        "ge" "Whether the first number or text is greater or equal."
        "lt" "Whether the first number or text is less."
        "le" "Whether the first number or text is less or equal."
        "not" "The opposite of a boolean."
        "sprintf" "A format string with the arguments inserted."
        "first" "The first word."
        "random" "A random number: any, below N, or from N1 to N2."
        "and" "Whether all booleans are true."
        "or" "Whether one of the booleans is true."
        "nand" "The opposite of `and`."
        "nor" "The opposite of `or`."
        "if" "The second word if the first is true, otherwise the third."
        "in" "Whether the first word is one of the others."
        "now" "The time."
        "readable" "Whether all named handlers can be read."
        "writable" "Whether all named handlers can be written."
        "length" "The length of the parameter in bytes."
        "unquote" "The parameter without a layer of quotes."
        "htons" "A 16-bit number with its bytes swapped to network order."
        "htonl" "A 32-bit number with its bytes swapped to network order."
        "ntohs" "A 16-bit number with its bytes swapped from network order."
        "ntohl" "A 32-bit number with its bytes swapped from network order."
        "get" "The value of a variable."
        "shift" "Removes the first word from a variable and returns it."
        hidden
        "cat" "The content of a file."
        "catq" "The content of a file, quoted."
        "kill" "Sends a signal to processes."
    };

    fn new(args: A, setup: &mut Setup) -> Result<Self, SetupError> {
        let Compiled(machine) = args.machine(setup)?;
        setup.unbatched |= machine.script_type == ScriptType::Packet;
        Ok(Scripted { machine, signals: Vec::new(), arguments: PhantomData })
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        if self.machine.script_type == ScriptType::Driver {
            cx.driver().set_manager(cx.element());
        }
        Ok(())
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        if let ScriptType::Signal(numbers) = &self.machine.script_type {
            for number in numbers {
                let stream = cx.environment().signal(*number).map_err(SetupError::new)?;
                cx.watch(stream.descriptor(), true, false);
                self.signals.push(stream);
            }
        }
        self.machine.start(cx);
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, port: usize, mut batch: Batch) {
        for packet in batch.drain() {
            match self.machine.run_for_packet(cx, port).filter(|output| *output < cx.outputs()) {
                Some(output) => cx.send(output, packet),
                None => cx.drop(packet, Reason::SCRIPT),
            }
        }
        cx.recycle(batch);
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        for _ in 0..most {
            let Some(packet) = cx.pull_one(0) else { return };
            match self.machine.run_for_packet(cx, 0).filter(|output| *output < cx.outputs()) {
                Some(0) => into.push(packet),
                Some(output) => cx.send(output, packet),
                None => cx.drop(packet, Reason::SCRIPT),
            }
        }
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        self.machine.step(cx, 1);
    }

    fn stopped(&mut self, cx: &mut Context) {
        self.machine.step_for_driver(cx);
    }

    fn ready(&mut self, cx: &mut Context, descriptor: Descriptor) {
        let mut arrived = false;
        for stream in self.signals.iter_mut().filter(|stream| stream.descriptor() == descriptor) {
            while let Ok(Io::Done(1..)) = stream.read(&mut [0; 16]) {
                arrived = true;
            }
        }
        if arrived {
            if let Err(error) = self.machine.request(cx, Request::Run, ("run", ""), true) {
                cx.log_between_packets(&error.to_string());
            }
            if !self.machine.has_ended() {
                // The signal gets its default action back.
                cx.watch(descriptor, false, false);
                self.signals.retain(|stream| stream.descriptor() != descriptor);
            }
        }
    }

    fn cleanup(&mut self, _: &mut Context) {
        self.signals.clear();
    }

    fn more_handlers(&self) -> Vec<HandlerInfo> {
        let info = |name: &str| HandlerInfo {
            name: name.to_string().into(),
            kind: HandlerKind::Read,
            effect: WriteEffect::Action,
            calm: true,
            hidden: false,
            summary: "An exported variable.",
        };
        self.machine.exported().map(info).collect()
    }

    fn other_handler(
        &mut self,
        cx: &mut Context,
        name: &str,
        call: HandlerKind,
        value: &str,
    ) -> Option<Result<String, HandlerError>> {
        if call != HandlerKind::Write && self.machine.exports(name) {
            return self.machine.function(cx, name, value);
        }
        let writing = call == HandlerKind::Write;
        (self.machine.script_type == ScriptType::Proxy && !is_listed(cx, name))
            .then(|| self.machine.request(cx, Request::Run, (name, value), writing))
    }
}
