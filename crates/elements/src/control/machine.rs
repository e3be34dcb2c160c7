//! What executes a script: variables, the position, waiting and jumping.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use element::arguments::FromArgument;
use element::text::{next_word, quote, uncomment, unquote};
use element::{Context, HandlerError, HandlerKind, HandlerTarget, Setup};
use packet::Timestamp;

use super::expansion::{Values, expand};
use super::functions;
use super::instructions::{Finish, Instruction, Printing, Target, find_label};

/// Jumps without a pause after which a script is given up as endless.
const MOST_JUMPS: usize = 1_000_000;
/// Variables of one script.
const MOST_VARIABLES: usize = 10_000;

/// When a script runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Active,
    Passive,
    Packet,
    Proxy,
    Driver,
    Signal(Vec<i32>),
}

/// Who makes a script go on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The `step` handler, or a timer.
    Step,
    /// The driver is about to stop.
    Driver,
    /// `run` and `goto`.
    Jump,
}

/// A script and where it stands.
pub(super) struct Machine {
    pub(super) kind: Kind,
    instructions: Vec<Instruction>,
    /// Steps that each `pause` has had.
    stepped: Vec<u32>,
    position: usize,
    steps: u64,
    /// Whether the step that starts an active script has been counted; the others need none.
    started: bool,
    variables: Vec<(String, String)>,
    status: i32,
    /// `$args`, `$0`, `$write` while a handler runs the script.
    arguments: String,
    handler: String,
    writing: bool,
    finish: Option<Finish>,
    /// Errors for the caller of a handler; without one they go to the log at once.
    errors: Option<Vec<String>>,
    /// How many there were.
    complaints: u64,
    /// Whether the log has been told who is executing; `None` if it need not be.
    introduced: Option<bool>,
}

struct Scope<'a, 'c, 'r> {
    machine: &'a mut Machine,
    cx: &'c mut Context<'r>,
}

impl Values for Scope<'_, '_, '_> {
    fn value(&mut self, name: &str, call: bool) -> Option<String> {
        if call {
            return match self.machine.read(self.cx, name, false) {
                Ok(value) => Some(value),
                Err(HandlerError::Doubtful { value, problems }) => {
                    self.machine.complain(self.cx, problems);
                    Some(value)
                }
                Err(error) => {
                    let is_there = !matches!(
                        error,
                        HandlerError::NoHandler(_) | HandlerError::NoElement(_) | HandlerError::Wrong { .. }
                    );
                    self.machine.complain(self.cx, error.of_call(true));
                    // A handler that fails has no value; one that does not exist is no reference.
                    is_there.then(String::new)
                }
            };
        }
        self.machine.variable(self.cx, name)
    }
}

impl Machine {
    pub(super) fn new(kind: Kind, instructions: Vec<Instruction>) -> Machine {
        Machine {
            kind,
            stepped: alloc::vec![0; instructions.len()],
            instructions,
            position: 0,
            steps: 0,
            started: true,
            variables: Vec::new(),
            status: 0,
            arguments: String::new(),
            handler: String::new(),
            writing: false,
            finish: None,
            errors: None,
            complaints: 0,
            introduced: None,
        }
    }

    /// Sets initial variables and starts what starts by itself. What is set anywhere is empty before.
    pub(super) fn start(&mut self, cx: &mut Context) {
        for instruction in self.instructions.clone() {
            if let Instruction::Set { variable, .. } | Instruction::Initialise { variable, .. } = instruction
                && self.get(&variable).is_none()
            {
                self.set(&variable, String::new());
            }
        }
        for instruction in self.instructions.clone() {
            if let Instruction::Initialise { variable, text, unquote: quoted, .. } = instruction {
                let text = self.expand(cx, &text, false);
                self.set(&variable, if quoted { unquote(&text) } else { text });
            }
        }
        if matches!(self.kind, Kind::Active | Kind::Driver) {
            self.started = self.instructions.first() != Some(&Instruction::Initial);
            match self.instructions.first().cloned() {
                Some(Instruction::Wait { time }) => self.wait(cx, &time),
                Some(Instruction::Initial) if self.kind == Kind::Driver => cx.stop(),
                Some(Instruction::Initial) => cx.set_timer_after(0, Timestamp::ZERO),
                _ => {}
            }
        }
    }

    /// Lets the script go on by `steps` blocking instructions; the errors met are logged.
    pub(super) fn step(&mut self, cx: &mut Context, steps: u64, cause: Cause) {
        self.introduced = (cause != Cause::Driver).then_some(false);
        self.execute(cx, steps, cause);
    }

    /// As `step`, for a handler, whose caller gets the errors.
    pub(super) fn step_for(&mut self, cx: &mut Context, steps: u64) -> Result<(), HandlerError> {
        self.called(|machine| machine.execute(cx, steps, Cause::Step)).1
    }

    /// Runs something for a handler: its result, and the errors met.
    fn called<R>(&mut self, run: impl FnOnce(&mut Machine) -> R) -> (R, Result<(), HandlerError>) {
        let outer = self.errors.replace(Vec::new());
        let result = run(self);
        let errors = core::mem::replace(&mut self.errors, outer).unwrap_or_default();
        let told = if errors.is_empty() { Ok(()) } else { Err(HandlerError::Rejected(errors.join("\n"))) };
        (result, told)
    }

    /// Runs the script from its beginning for a handler: its value.
    pub(super) fn run(
        &mut self,
        cx: &mut Context,
        name: &str,
        arguments: &str,
        writing: bool,
    ) -> Result<String, HandlerError> {
        self.position = 0;
        self.arguments = arguments.to_owned();
        (self.handler, self.writing) = (name.to_owned(), writing);
        let ((), told) = self.called(|machine| machine.execute(cx, 0, Cause::Jump));
        self.handler.clear();
        self.writing = false;
        // One that waits goes on with its arguments.
        if matches!(self.finish, Some(Finish::Error | Finish::Stop)) {
            self.arguments.clear();
        }
        let value = match self.finish {
            Some(Finish::Error) => return told.and(Err(HandlerError::new(""))).map(|()| String::new()),
            Some(Finish::Return) => self.get("_").unwrap_or_default(),
            _ => String::new(),
        };
        match told {
            Err(HandlerError::Rejected(problems)) => Err(HandlerError::Doubtful { value, problems }),
            _ => Ok(value),
        }
    }

    /// Runs the script for a packet: the output that it goes to.
    pub(super) fn judge(&mut self, cx: &mut Context, port: usize) -> Option<usize> {
        self.set("input", port.to_string());
        self.position = 0;
        self.step(cx, 0, Cause::Jump);
        match self.finish {
            Some(Finish::Return) => self.get("_").and_then(|value| value.trim().parse().ok()),
            Some(Finish::End) => Some(0),
            _ => None,
        }
    }

    /// Goes on at a label.
    pub(super) fn jump(&mut self, cx: &mut Context, label: &str) -> Result<(), HandlerError> {
        let Some(Target::At(place)) = find_label(&self.instructions, label) else {
            return Err(HandlerError::new("jump to nonexistent label"));
        };
        self.stepped.iter_mut().skip(place).for_each(|count| *count = 0);
        self.position = place;
        self.called(|machine| machine.execute(cx, 0, Cause::Jump)).1
    }

    /// Whether a script that a signal started has ended, so that the next one may start it again.
    pub(super) fn has_ended(&self) -> bool {
        self.finish == Some(Finish::End)
    }

    /// Tells the caller of a handler, or the log, about an error.
    fn complain(&mut self, cx: &Context, problem: String) {
        self.complaints += 1;
        if let Some(errors) = &mut self.errors {
            errors.push(problem);
            return;
        }
        match self.introduced {
            None => cx.say(&problem),
            Some(true) => cx.say(&indented(&problem)),
            Some(false) => {
                self.introduced = Some(true);
                let (name, class) = (cx.name(), cx.runtime().class_name(cx.element()));
                cx.say(&format!("While executing ‘{name} :: {class}’:\n{}", indented(&problem)));
            }
        }
    }

    /// Complains about a call that failed; what the handler itself says stands under the call.
    fn complain_call(&mut self, cx: &Context, call: &str, error: &HandlerError, read: bool) {
        match error {
            HandlerError::Rejected(text) if text.is_empty() => {}
            HandlerError::Rejected(text) | HandlerError::Doubtful { problems: text, .. } => {
                let mut value = call;
                let path = next_word(&mut value).unwrap_or("");
                let path = self.full_path(cx, path);
                let space = if value.is_empty() { "" } else { " " };
                let problem = format!("While calling ‘{path}{space}{value}’:\n{}", indented(text));
                self.complain(cx, problem);
            }
            other => self.complain(cx, other.of_call(read)),
        }
    }

    /// A handler's path from the outermost level.
    fn full_path(&self, cx: &Context, path: &str) -> String {
        if self.is_local(path) {
            return format!("{}.{path}", cx.name());
        }
        match cx.runtime().resolve(cx.element(), path) {
            Ok(HandlerTarget { element: Some(element), handler }) => {
                format!("{}.{handler}", cx.runtime().element_name(element))
            }
            _ => path.to_owned(),
        }
    }

    fn execute(&mut self, cx: &mut Context, steps: u64, cause: Cause) {
        let goal = self.steps + steps;
        let mut jumps = 0;
        self.finish = None;
        while self.steps <= goal && jumps < MOST_JUMPS {
            let place = self.position;
            let Some(instruction) = self.instructions.get(place).cloned() else { break };
            self.position += 1;
            match self.perform(cx, &instruction, place, goal) {
                Next::On => {}
                Next::Jump => jumps += 1,
                Next::Block => {
                    self.position = place;
                    break;
                }
                Next::Finish(finish) => {
                    self.position = place;
                    self.finish = Some(finish);
                    if finish == Finish::Stop {
                        self.steps += 1;
                        if cause != Cause::Driver {
                            cx.stop();
                        }
                        return;
                    }
                    if finish != Finish::Return {
                        return;
                    }
                    break;
                }
            }
        }
        if jumps >= MOST_JUMPS {
            let class = cx.runtime().class_name(cx.element());
            cx.say(&format!("{} :: {class}: too many jumps, giving up", cx.name()));
            self.position = self.instructions.len();
            cx.clear_timer(0);
        }
        if cause == Cause::Driver {
            cx.runtime().set_run_count(cx.runtime().run_count() + 1);
        }
    }

    fn perform(&mut self, cx: &mut Context, instruction: &Instruction, place: usize, goal: u64) -> Next {
        match instruction {
            Instruction::Initial => {
                if !core::mem::replace(&mut self.started, true) {
                    self.steps += 1;
                }
            }
            Instruction::Pause { steps } => {
                let Some(stepped) = self.stepped.get_mut(place) else { return Next::Block };
                while self.steps < goal && *stepped < *steps {
                    *stepped += 1;
                    self.steps += 1;
                }
                if self.steps == goal && *stepped < *steps {
                    return Next::Block;
                }
            }
            Instruction::Wait { time } => {
                if self.steps == goal {
                    self.wait(cx, time);
                    return Next::Block;
                }
                self.steps += 1;
                cx.clear_timer(0);
            }
            Instruction::Write { call, unquote } => {
                let call = self.expand(cx, call, false);
                match self.write(cx, &call, *unquote) {
                    Ok(()) => self.status = 0,
                    Err(error) => {
                        self.status = -1;
                        self.complain_call(cx, &shown(&call, *unquote), &error, false);
                    }
                }
            }
            Instruction::Read { call, unquote } => {
                let call = self.expand(cx, call, false);
                let value = match self.read(cx, &call, *unquote) {
                    Ok(value) => value,
                    Err(error) => {
                        self.complain_call(cx, &shown(&call, *unquote), &error, true);
                        match error {
                            HandlerError::Doubtful { value, .. } => value,
                            HandlerError::Rejected(_) => String::new(),
                            _ => return Next::On,
                        }
                    }
                };
                let path = self.full_path(cx, next_word(&mut &*call).unwrap_or(""));
                cx.say(&format!("{path}:\n{value}"));
            }
            Instruction::Print { text, how } => self.print(cx, text, *how),
            Instruction::Save { file, append, call } => {
                let how = Printing { line: true, unquote: false };
                let arrow = if *append { ">>" } else { ">" };
                self.print(cx, &format!("{arrow}{file} {call}"), how);
            }
            Instruction::Set { variable, text, unquote: quoted } => {
                let text = self.expand(cx, text, false);
                self.set(variable, if *quoted { unquote(&text) } else { text });
            }
            Instruction::Return { text, unquote: quoted } => {
                let text = self.expand(cx, text, false);
                self.set("_", if *quoted { unquote(&text) } else { text });
                return Next::Finish(Finish::Return);
            }
            Instruction::Goto { target, condition } => return self.go(cx, *target, condition, place),
            Instruction::Error { text, unquote: quoted } => {
                let text = self.expand(cx, text, false);
                let text = if *quoted { unquote(&text) } else { text };
                if !text.is_empty() {
                    self.complain(cx, text);
                }
                return Next::Finish(Finish::Error);
            }
            Instruction::Finish(finish) => return Next::Finish(*finish),
            Instruction::Label { .. } | Instruction::Initialise { .. } => {}
        }
        Next::On
    }

    fn go(&mut self, cx: &mut Context, target: Target, condition: &str, place: usize) -> Next {
        let condition = self.expand(cx, condition, false);
        let holds = condition.is_empty() || {
            let parsed = cx.argument::<bool>(&condition);
            if parsed.is_err() {
                self.complain(cx, format!("bad condition ‘{condition}’"));
            }
            parsed.unwrap_or(false)
        };
        match target {
            _ if !holds => Next::On,
            Target::Finish(finish) => Next::Finish(finish),
            Target::At(to) => {
                let between = to..place.max(to);
                self.stepped.get_mut(between).into_iter().flatten().for_each(|count| *count = 0);
                self.position = to;
                Next::Jump
            }
        }
    }

    fn wait(&mut self, cx: &mut Context, time: &str) {
        let time = self.expand(cx, time, false);
        match cx.argument::<Timestamp>(&time) {
            Ok(span) => cx.set_timer_after(0, span),
            Err(_) => self.complain(cx, "syntax error at ‘wait’".to_owned()),
        }
    }

    fn print(&mut self, cx: &mut Context, text: &str, how: Printing) {
        let mut rest = text;
        let (mut file, mut append) = (String::from("-"), true);
        if let Some(after) = text.strip_prefix('>') {
            append = after.starts_with('>');
            rest = after.strip_prefix('>').unwrap_or(after);
            file = unquote(next_word(&mut rest).unwrap_or("-"));
        }
        let is_call =
            rest.starts_with(|first: char| first.is_ascii_alphabetic() || first == '@' || first == '_');
        let before = self.complaints;
        let mut value = if is_call {
            let call = self.expand(cx, rest, false);
            match self.read(cx, &call, how.unquote) {
                Ok(value) => value,
                Err(error) => {
                    self.complain_call(cx, &shown(&call, how.unquote), &error, true);
                    let HandlerError::Doubtful { value, .. } = error else { return };
                    value
                }
            }
        } else {
            unquote(&self.expand(cx, rest, true))
        };
        if how.line && self.complaints == before && !value.ends_with('\n') {
            value.push('\n');
        }
        let written = cx.environment().create(&file, append).and_then(|mut file| {
            file.write(value.as_bytes())?;
            file.flush()
        });
        if let Err(error) = written {
            self.complain(cx, format!("{file}: {error}"));
        }
    }

    fn expand(&mut self, cx: &mut Context, text: &str, quoted: bool) -> String {
        expand(text, &mut Scope { machine: self, cx }, quoted)
    }

    fn is_local(&self, name: &str) -> bool {
        self.instructions.iter().any(
            |it| matches!(it, Instruction::Initialise { variable, export: true, .. } if variable == name),
        ) || [
            "now", "random", "readable", "writable", "cat", "catq", "kill", "get", "set", "shift", "run",
            "step", "goto",
        ]
        .contains(&name)
            || functions::NAMES.contains(&name)
    }

    /// Whether a path names a handler of this script, and which.
    fn local<'p>(&self, cx: &Context, path: &'p str) -> Option<&'p str> {
        match path.rsplit_once('.') {
            None => self.is_local(path).then_some(path),
            Some((element, handler)) => {
                (cx.runtime().find(cx.element(), element) == Some(cx.element())).then_some(handler)
            }
        }
    }

    /// Reads a handler: `path parameter`. Those of the script itself need no path.
    fn read(&mut self, cx: &mut Context, call: &str, quoted: bool) -> Result<String, HandlerError> {
        let mut rest = call;
        let path = next_word(&mut rest).unwrap_or("");
        let parameter = if quoted { unquote(rest) } else { rest.to_owned() };
        match self.local(cx, path) {
            Some(handler) => {
                self.function(cx, handler, &parameter).unwrap_or_else(|| cx.read_handler(path, &parameter))
            }
            None => cx.read_handler(path, &parameter),
        }
    }

    fn write(&mut self, cx: &mut Context, call: &str, quoted: bool) -> Result<(), HandlerError> {
        let mut rest = call;
        let path = next_word(&mut rest).unwrap_or("");
        let value = if quoted { unquote(rest) } else { rest.to_owned() };
        match self.local(cx, path) {
            Some("set") => self.assign(&value),
            // It is running: it goes on from there when this turn is over.
            Some("step" | "goto" | "run") => {
                let path = format!("{}.{}", cx.name(), path.rsplit('.').next().unwrap_or(path));
                cx.defer_write(&path, &value);
                Ok(())
            }
            Some(_) => Err(HandlerError::NoHandler(self.full_path(cx, path))),
            None => cx.write_handler(path, &value),
        }
    }

    /// The `set` handler: `variable text`.
    pub(super) fn assign(&mut self, value: &str) -> Result<(), HandlerError> {
        let mut rest = value;
        match next_word(&mut rest) {
            Some(name) => {
                self.set(name, rest.to_owned());
                Ok(())
            }
            None => Err(HandlerError::new("expected a variable and its value")),
        }
    }

    /// Calls a read handler of the script itself.
    pub(super) fn function(
        &mut self,
        cx: &mut Context,
        name: &str,
        parameter: &str,
    ) -> Option<Result<String, HandlerError>> {
        let syntax = || Err(HandlerError::new("syntax error"));
        Some(match name {
            "now" => Ok(format!("{:.6}", cx.now())),
            "random" => random(cx, parameter),
            "readable" | "writable" => {
                let mut rest = parameter;
                let mut paths = core::iter::from_fn(|| next_word(&mut rest));
                Ok(paths.all(|path| self.exists(cx, path, name == "writable")).to_string())
            }
            "cat" | "catq" => match read_file(cx, &unquote(parameter)) {
                Ok(text) if name == "catq" => Ok(quote(text.as_bytes())),
                other => other,
            },
            "kill" => {
                let mut rest = parameter;
                let signal = next_word(&mut rest).and_then(super::signals::number);
                match signal {
                    Some(signal) => kill(cx, signal, rest),
                    None => Err(HandlerError::new("bad SIGNO")),
                }
            }
            "get" => Ok(self.variable(cx, parameter.trim()).unwrap_or_default()),
            "shift" => {
                let name = uncomment(parameter);
                let value = self.get(&name).unwrap_or_default();
                let mut rest = value.as_str();
                let first = next_word(&mut rest).unwrap_or("").to_owned();
                let rest = rest.to_owned();
                self.set(&name, rest);
                Ok(first)
            }
            "run" => syntax(),
            _ => {
                if let Some(value) = self.exported(name) {
                    return Some(Ok(value));
                }
                let own = cx.name();
                let setup = Setup::new(&own, (0, 0), cx.names(), cx.environment());
                return functions::call(name, parameter, &setup);
            }
        })
    }

    /// The value of an exported variable.
    pub(super) fn exported(&self, name: &str) -> Option<String> {
        let exported = |it: &Instruction| matches!(it, Instruction::Initialise { variable, export: true, .. } if variable == name);
        self.instructions.iter().any(exported).then(|| self.get(name).unwrap_or_default())
    }

    fn exists(&self, cx: &Context, path: &str, write: bool) -> bool {
        let Ok(target) = cx.runtime().resolve(cx.element(), path) else { return false };
        let handlers = cx.runtime().handlers(target.element);
        handlers.iter().any(|info| info.name == target.handler && (info.kind == HandlerKind::Write) == write)
    }

    fn variable(&self, cx: &Context, name: &str) -> Option<String> {
        if let Some(value) = self.get(name) {
            return Some(value);
        }
        let words = |text: &str| {
            let mut rest = text;
            core::iter::from_fn(|| next_word(&mut rest).map(ToOwned::to_owned)).collect::<Vec<_>>()
        };
        match name {
            "?" => Some(self.status.to_string()),
            "args" => Some(self.arguments.clone()),
            "$" => Some(cx.environment().process().to_string()),
            "0" => Some(self.handler.clone()),
            "#" => Some(words(&self.arguments).len().to_string()),
            "write" => Some(self.writing.to_string()),
            number => {
                let number: usize = number.parse().ok()?;
                Some(words(&self.arguments).into_iter().nth(number.checked_sub(1)?).unwrap_or_default())
            }
        }
    }

    fn get(&self, name: &str) -> Option<String> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    /// Sets a variable; one too many is not kept.
    fn set(&mut self, name: &str, value: String) {
        if let Some((_, old)) = self.variables.iter_mut().find(|(known, _)| known == name) {
            *old = value;
        } else if self.variables.len() < MOST_VARIABLES {
            self.variables.push((name.to_owned(), value));
        }
    }

    /// Takes over the variables of an older version of the script.
    pub(super) fn inherit(&mut self, old: &mut Machine) {
        for (name, value) in core::mem::take(&mut old.variables) {
            self.set(&name, value);
        }
    }
}

/// A handler call as messages show it: the value as the handler got it.
fn shown(call: &str, unquoted: bool) -> String {
    let mut value = call;
    match next_word(&mut value) {
        Some(path) if unquoted && !value.is_empty() => format!("{path} {}", unquote(value)),
        _ => call.to_owned(),
    }
}

fn indented(text: &str) -> String {
    format!("  {}", text.replace('\n', "\n  "))
}

/// What follows an instruction.
enum Next {
    On,
    Jump,
    Block,
    Finish(Finish),
}

fn random(cx: &Context, parameter: &str) -> Result<String, HandlerError> {
    let mut rest = parameter;
    let mut bound = || next_word(&mut rest).map(|word| cx.argument::<u32>(word)).transpose();
    let (low, high) = match (bound()?, bound()?) {
        (None, _) => return Ok(cx.random().to_string()),
        (Some(0), None) => return Err(HandlerError::new("bad N")),
        (Some(count), None) => (0, count - 1),
        (Some(low), Some(high)) if low <= high => (low, high),
        _ => return Err(HandlerError::new("bad N")),
    };
    Ok(cx.random_between(low, high).to_string())
}

/// Bytes of a file that a script takes in.
const MOST_FILE: usize = 1 << 24;

fn read_file(cx: &Context, path: &str) -> Result<String, HandlerError> {
    let failed = |error| HandlerError::new(format!("{path}: {error}"));
    let mut file = cx.environment().open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    let mut piece = alloc::vec![0; 4096];
    loop {
        match file.read(&mut piece).map_err(failed)? {
            0 => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
            count => bytes.extend_from_slice(piece.get(..count).unwrap_or(&[])),
        }
        if bytes.len() > MOST_FILE {
            return Err(HandlerError::new(format!("{path}: more than {MOST_FILE} bytes")));
        }
    }
}

fn kill(cx: &Context, signal: i32, processes: &str) -> Result<String, HandlerError> {
    let mut rest = processes;
    while let Some(word) = next_word(&mut rest) {
        let process = cx.argument::<i32>(word).map_err(|_| HandlerError::new("bad PID"))?;
        cx.environment()
            .kill(process, signal)
            .map_err(|error| HandlerError::new(format!("kill({process}, {signal}): {error}")))?;
    }
    Ok(String::new())
}

/// Parses the number of steps of the `step` handler.
pub(super) fn steps(value: &str, setup: &Setup) -> Result<u64, HandlerError> {
    let value = uncomment(value);
    if value.is_empty() {
        return Ok(1);
    }
    u32::from_argument(&value, setup).map(u64::from).map_err(|_| HandlerError::new("syntax error"))
}
