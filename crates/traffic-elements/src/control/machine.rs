//! Executes a script: position, waiting and jumps.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use element::text::{next_word, uncomment, unquote};
use element::{Context, HandlerError};
use packet::Timestamp;

use super::instructions::{Finish, Instruction, Printing, Target, find_label};
use super::script_errors::{Heading, ScriptErrors};
use super::variables::Variables;

/// Jumps without a pause after which a script is stopped as endless.
const MAX_JUMPS: usize = 1_000;
/// Maximum nesting of a script's calls of itself, so that recursion can't exhaust the stack.
const MAX_DEPTH: usize = 16;

/// When a script runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ScriptType {
    Active,
    Passive,
    Packet,
    Proxy,
    Driver,
    Signal(Vec<i32>),
}

/// The reason for which a script continues.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StepCause {
    /// The `step` handler, a timer, a packet, a jump.
    Step,
    /// The driver is about to stop.
    Driver,
}

/// A handler that continues a script.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    Run,
    Goto,
    Step,
}

/// A script and its execution state.
pub(super) struct Machine {
    pub(super) script_type: ScriptType,
    instructions: Rc<[Instruction]>,
    /// Steps counted by each `pause`.
    stepped: Vec<u32>,
    position: usize,
    steps: i64,
    /// Remaining steps of the running handler; `None` if no handler runs the script.
    pending: Option<i64>,
    /// Nesting of calls that run the script; the outermost one is not its own.
    depth: usize,
    /// Whether the step that starts an active script has been counted; other scripts need none.
    started: bool,
    pub(super) variables: Variables,
    errors: ScriptErrors,
}

impl Machine {
    pub(super) fn new(script_type: ScriptType, instructions: Vec<Instruction>) -> Machine {
        Machine {
            script_type,
            stepped: alloc::vec![0; instructions.len()],
            instructions: instructions.into(),
            position: 0,
            steps: 0,
            pending: None,
            depth: 0,
            started: true,
            variables: Variables::default(),
            errors: ScriptErrors::default(),
        }
    }

    /// Initializes variables, and starts scripts that start automatically. Variables that any instruction sets are
    /// empty at first.
    pub(super) fn start(&mut self, cx: &mut Context) {
        for instruction in self.instructions.clone().iter() {
            let variable = match instruction {
                Instruction::Set { variable, .. } | Instruction::Initialise { variable, .. } => variable,
                Instruction::Return { .. } => "_",
                _ => continue,
            };
            if self.variables.get(variable).is_none() {
                self.variables.set(variable, String::new());
            }
        }
        self.under_heading(Heading::Initializing, |machine| machine.initialize_variables(cx));
    }

    fn initialize_variables(&mut self, cx: &mut Context) {
        for instruction in self.instructions.clone().iter() {
            if let Instruction::Initialise { variable, text, unquote: quoted, .. } = instruction {
                let text = self.expand(cx, text, false);
                self.variables.set(variable, if *quoted { unquote(&text) } else { text });
            }
        }
        if matches!(self.script_type, ScriptType::Active | ScriptType::Driver) {
            self.started = self.instructions.first() != Some(&Instruction::Initial);
            match self.instructions.first().cloned() {
                Some(Instruction::Wait { time }) => {
                    self.wait(cx, &time);
                }
                Some(Instruction::Initial) if self.script_type == ScriptType::Driver => cx.stop(),
                Some(Instruction::Initial) => cx.set_timer_after(0, Timestamp::ZERO),
                _ => {}
            }
        }
    }

    /// Continues the script by `steps` blocking instructions, and logs errors.
    pub(super) fn step(&mut self, cx: &mut Context, steps: i64) {
        self.depth += 1;
        self.under_heading(Heading::Executing, |machine| machine.execute(cx, steps, StepCause::Step, 0));
        self.depth -= 1;
    }

    /// Continues the script because the driver is about to stop, and logs errors.
    pub(super) fn step_for_driver(&mut self, cx: &mut Context) {
        self.depth += 1;
        self.handle_request(cx, Request::Step, ("step", "router"), true);
        self.depth -= 1;
    }

    /// Continues the script for a handler. Returns the handler's result, including errors of the script.
    pub(super) fn request(
        &mut self,
        cx: &mut Context,
        request: Request,
        (name, value): (&str, &str),
        writing: bool,
    ) -> Result<String, HandlerError> {
        if self.depth >= MAX_DEPTH {
            return Err(HandlerError::new("too many calls of the script by itself"));
        }
        if self.depth == 0 {
            self.errors.hold();
        }
        self.depth += 1;
        let finish = self.handle_request(cx, request, (name, value), writing);
        self.depth -= 1;
        // For a nested call, the errors are reported by the outermost call.
        let problems = if self.depth == 0 { self.errors.release() } else { String::new() };
        match finish {
            Some(Finish::Error) => Err(HandlerError::with_code(HandlerError::UNSPECIFIED, problems)),
            finish => {
                let value = match finish {
                    Some(Finish::Return) => self.variables.get("_").unwrap_or_default(),
                    _ => String::new(),
                };
                if problems.is_empty() {
                    Ok(value)
                } else {
                    Err(HandlerError::ReadWithErrors { value, problems })
                }
            }
        }
    }

    fn handle_request(
        &mut self,
        cx: &mut Context,
        request: Request,
        (name, value): (&str, &str),
        writing: bool,
    ) -> Option<Finish> {
        self.variables.handler = name.to_owned();
        self.variables.writing = writing;
        let data = uncomment(value);
        let (mut steps, mut cause) = (0, StepCause::Step);
        match request {
            Request::Goto => {
                let Some(Target::At(position)) = find_label(&self.instructions, &data) else {
                    self.report_error(cx, "jump to nonexistent label");
                    return Some(Finish::Error);
                };
                self.stepped.iter_mut().skip(position).for_each(|count| *count = 0);
                self.position = position;
            }
            Request::Run => {
                self.position = 0;
                self.variables.arguments = value.to_owned();
            }
            Request::Step if data == "router" => (steps, cause) = (1, StepCause::Driver),
            Request::Step if data.is_empty() => steps = 1,
            Request::Step => match cx.argument::<i32>(&data) {
                Ok(count) => steps = i64::from(count),
                Err(_) => {
                    self.report_error(cx, "syntax error");
                    return self.end_request(Some(Finish::Error));
                }
            },
        }
        if let Some(pending) = &mut self.pending {
            // The outermost call continues the script from here.
            *pending += if request == Request::Step { steps } else { 0 };
        } else {
            let mut jumps = 0;
            while steps >= 0 {
                self.pending = Some(-1);
                jumps = self.execute(cx, steps, cause, jumps);
                cause = StepCause::Step;
                steps = self.pending.unwrap_or(-1);
            }
            self.pending = None;
        }
        let finish = self.finish();
        self.end_request(finish)
    }

    /// Resets the state of a handler call. A waiting script keeps its arguments.
    fn end_request(&mut self, finish: Option<Finish>) -> Option<Finish> {
        self.variables.handler.clear();
        self.variables.writing = false;
        if matches!(finish, Some(Finish::Error | Finish::Stop)) {
            self.variables.arguments.clear();
        }
        finish
    }

    /// How the script has ended at its current position.
    fn finish(&self) -> Option<Finish> {
        match self.instructions.get(self.position)? {
            Instruction::Finish(finish) | Instruction::Goto { target: Target::Finish(finish), .. } => {
                Some(*finish)
            }
            Instruction::Error { .. } => Some(Finish::Error),
            Instruction::Return { .. } => Some(Finish::Return),
            _ => None,
        }
    }

    /// Runs the script for a packet, and returns the packet's output.
    pub(super) fn run_for_packet(&mut self, cx: &mut Context, port: usize) -> Option<usize> {
        self.variables.set("input", port.to_string());
        self.position = 0;
        self.step(cx, 0);
        match self.finish() {
            Some(Finish::Return) => cx.argument(self.variables.text("_")?).ok(),
            Some(Finish::End) => Some(0),
            _ => None,
        }
    }

    /// Whether a script started by a signal has ended, so that the next signal may start it again.
    pub(super) fn has_ended(&self) -> bool {
        self.finish() == Some(Finish::End)
    }

    /// Reports an error to the caller of a handler, or to the log.
    pub(super) fn report_error(&mut self, cx: &Context, problem: impl AsRef<str>) {
        self.errors.push(cx, problem.as_ref());
    }

    /// Calls a function with `heading` as the context of its errors.
    pub(super) fn under_heading<R>(&mut self, heading: Heading, call: impl FnOnce(&mut Machine) -> R) -> R {
        self.errors.enter(heading);
        let result = call(self);
        self.errors.leave();
        result
    }

    /// Continues by `steps` blocking instructions. Adds its jumps to `jumps` and returns the sum.
    fn execute(&mut self, cx: &mut Context, steps: i64, cause: StepCause, mut jumps: usize) -> usize {
        let goal = self.steps + steps;
        let instructions = self.instructions.clone();
        while self.steps <= goal && jumps < MAX_JUMPS {
            let position = self.position;
            let Some(instruction) = instructions.get(position) else { break };
            // Advance first, because a handler called by the instruction may jump.
            self.position += 1;
            match self.execute_instruction(cx, instruction, position, goal) {
                StepResult::Continue if self.position == position + 1 => {}
                StepResult::Continue => jumps += 1,
                StepResult::Block => break,
                StepResult::Return if self.position == position + 1 => {
                    self.position = position;
                    break;
                }
                StepResult::Return => jumps += 1,
                StepResult::Finish => {
                    self.position = position;
                    return jumps + 1;
                }
                StepResult::Stop => {
                    self.position = position;
                    self.steps += 1;
                    if cause != StepCause::Driver {
                        cx.stop();
                    }
                    return jumps + 1;
                }
            }
        }
        if jumps >= MAX_JUMPS {
            let class = cx.class_name();
            cx.log_between_packets(&format!("{} :: {class}: too many jumps, giving up", cx.name()));
            self.position = self.instructions.len();
            cx.clear_timer(0);
        }
        if cause == StepCause::Driver {
            cx.driver().set_count(cx.driver().count() + 1);
        }
        jumps + 1
    }

    fn execute_instruction(
        &mut self,
        cx: &mut Context,
        instruction: &Instruction,
        position: usize,
        goal: i64,
    ) -> StepResult {
        match instruction {
            Instruction::Initial => {
                if !core::mem::replace(&mut self.started, true) {
                    self.steps += 1;
                }
            }
            Instruction::Pause { steps } => {
                let Some(stepped) = self.stepped.get_mut(position) else { return StepResult::Block };
                while self.steps < goal && *stepped < *steps {
                    *stepped += 1;
                    self.steps += 1;
                }
                if self.steps == goal && *stepped < *steps {
                    self.position = position;
                    return StepResult::Block;
                }
            }
            Instruction::Wait { time } => {
                if self.steps == goal {
                    if self.wait(cx, time) {
                        self.position = position;
                    }
                    return StepResult::Block;
                }
                self.steps += 1;
                cx.clear_timer(0);
            }
            Instruction::Write { call, unquote } => self.write_call(cx, call, *unquote),
            Instruction::Read { call, unquote } => self.read_call(cx, call, *unquote),
            Instruction::Print { text, how } => self.print(cx, text, *how),
            Instruction::Save { file, append, call } => {
                let how = Printing { line: true, unquote: false };
                let arrow = if *append { ">>" } else { ">" };
                self.print(cx, &format!("{arrow}{file} {call}"), how);
            }
            Instruction::Set { variable, text, unquote: quoted } => {
                let text = self.expand(cx, text, false);
                self.variables.set(variable, if *quoted { unquote(&text) } else { text });
            }
            Instruction::Return { text, unquote: quoted } => {
                let text = self.expand(cx, text, false);
                self.variables.set("_", if *quoted { unquote(&text) } else { text });
                return StepResult::Return;
            }
            Instruction::Goto { target, condition } => return self.jump(cx, *target, condition, position),
            Instruction::Error { text, unquote: quoted } => {
                let text = self.expand(cx, text, false);
                let text = if *quoted { unquote(&text) } else { text };
                if !text.is_empty() {
                    self.report_error(cx, text);
                }
                return StepResult::Finish;
            }
            Instruction::Finish(Finish::Stop) => return StepResult::Stop,
            Instruction::Finish(_) => return StepResult::Finish,
            Instruction::Label { .. } | Instruction::Initialise { .. } => {}
        }
        StepResult::Continue
    }

    fn jump(&mut self, cx: &mut Context, target: Target, condition: &str, position: usize) -> StepResult {
        let condition = self.expand(cx, condition, false);
        let holds = condition.is_empty() || {
            let parsed = cx.argument::<bool>(&condition);
            if parsed.is_err() {
                self.report_error(cx, format!("bad condition ‘{condition}’"));
            }
            parsed.unwrap_or(false)
        };
        match target {
            _ if !holds => {}
            Target::Finish(_) => return StepResult::Finish,
            Target::At(to) => {
                let between = to..position.max(to);
                self.stepped.get_mut(between).into_iter().flatten().for_each(|count| *count = 0);
                self.position = to;
            }
        }
        StepResult::Continue
    }

    /// Sets the timer; returns false if the time is invalid.
    fn wait(&mut self, cx: &mut Context, time: &str) -> bool {
        let time = self.expand(cx, time, false);
        match cx.argument::<Timestamp>(&time) {
            Ok(span) => cx.set_timer_after(0, span),
            Err(_) => {
                self.report_error(cx, "syntax error at ‘wait’");
                return false;
            }
        }
        true
    }

    fn print(&mut self, cx: &mut Context, text: &str, how: Printing) {
        let mut rest = text;
        let (mut file, mut append) = ("-", true);
        if let Some(after) = text.strip_prefix('>') {
            append = after.starts_with('>');
            rest = after.strip_prefix('>').unwrap_or(after);
            file = next_word(&mut rest).unwrap_or("-");
        }
        let mut writer = match cx.environment().create(file, append) {
            Ok(writer) => writer,
            Err(error) => return self.report_error(cx, format!("{file}: {error}")),
        };
        let is_call =
            rest.starts_with(|first: char| first.is_ascii_alphabetic() || first == '@' || first == '_');
        let before = self.errors.count();
        let mut value = if is_call {
            let call = self.expand(cx, rest, false);
            self.value_of_call(cx, &call, how.unquote).unwrap_or_default()
        } else {
            unquote(&self.expand(cx, rest, true))
        };
        if how.line && self.errors.count() == before && !value.ends_with('\n') {
            value.push('\n');
        }
        if let Err(error) = writer.write(value.as_bytes()).and_then(|()| writer.flush()) {
            self.report_error(cx, format!("{file}: {error}"));
        }
    }

    /// The variables exported as handlers.
    pub(super) fn exported(&self) -> impl Iterator<Item = &str> {
        self.instructions.iter().filter_map(|instruction| match instruction {
            Instruction::Initialise { variable, export: true, .. } => Some(variable.as_str()),
            _ => None,
        })
    }

    /// Whether `name` is exported.
    pub(super) fn exports(&self, name: &str) -> bool {
        self.exported().any(|variable| variable == name)
    }
}

/// How to continue after an instruction.
enum StepResult {
    /// With the next instruction, or with the target of a jump.
    Continue,
    /// Block; the position is where the script continues.
    Block,
    /// Return, unless a handler has jumped in the meantime.
    Return,
    /// End the script.
    Finish,
    /// End the script and stop the driver.
    Stop,
}
