//! Access of a script to handlers, its own and those of other elements.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use element::number_format;
use element::text::{next_word, quote, unquote};
use element::{Context, HandlerError, HandlerKind, HandlerTarget, Setup, SetupError};

use super::expansion::{Values, expand};
use super::functions;
use super::machine::{Machine, Request, ScriptType};
use super::script_errors::{Heading, full_path};

/// Provides the values for expanding a text.
pub(super) struct ScriptValues<'a, 'c, 'r> {
    pub(super) machine: &'a mut Machine,
    pub(super) cx: &'c mut Context<'r>,
}

impl Values for ScriptValues<'_, '_, '_> {
    fn value(&mut self, name: &str, call: bool) -> Option<String> {
        if !call {
            return self.machine.variables.resolve(self.cx, name);
        }
        let call = match self.machine.find(self.cx, name, false) {
            Ok(call) => call,
            Err(error) => {
                self.machine.report_error(self.cx, error.to_string());
                return None;
            }
        };
        match self.machine.read(self.cx, &call) {
            Ok(value) => Some(value),
            Err(HandlerError::ReadWithErrors { value, problems }) => {
                self.machine.report_error(self.cx, problems);
                Some(value)
            }
            Err(error) => {
                // A handler that fails has an empty value; one that does not exist is not a reference.
                let is_there = exists(&error);
                if is_there {
                    self.machine.report_handler_error(self.cx, &error);
                } else {
                    self.machine.report_error(self.cx, error.of_call(true));
                }
                is_there.then(String::new)
            }
        }
    }
}

/// Whether the error comes from a handler that exists.
fn exists(error: &HandlerError) -> bool {
    use HandlerError::{ReadWithErrors, Rejected, RejectedWithCode, Value, WrittenWithWarnings};
    matches!(
        error,
        Rejected(_) | RejectedWithCode { .. } | WrittenWithWarnings(_) | ReadWithErrors { .. } | Value(_)
    )
}

fn is_silent(error: &HandlerError) -> bool {
    matches!(error, HandlerError::Rejected(text) | HandlerError::RejectedWithCode { text, .. } if text.is_empty())
}

/// A handler and its parameter.
struct Call {
    target: HandlerTarget,
    value: String,
}

impl Call {
    /// The context of errors during the call.
    fn heading(&self) -> Heading {
        Heading::Calling { target: self.target.clone(), value: self.value.clone() }
    }
}

impl Machine {
    /// Expands the references in a text.
    pub(super) fn expand(&mut self, cx: &mut Context, text: &str, quoted: bool) -> String {
        expand(text, &mut ScriptValues { machine: self, cx }, quoted)
    }

    /// Reads a handler for `print` or `read`. Without a value, an error has been reported.
    pub(super) fn value_of_call(&mut self, cx: &mut Context, call: &str, quoted: bool) -> Option<String> {
        let call = self.find_or_report(cx, call, quoted)?;
        let heading = call.heading();
        let (answer, missing) = self.under_heading(heading, |machine| match machine.read(cx, &call) {
            Ok(value) => (Some(value), None),
            Err(HandlerError::ReadWithErrors { value, problems }) => {
                machine.report_error(cx, problems);
                (Some(value), None)
            }
            Err(error) if exists(&error) => {
                machine.report_handler_error(cx, &error);
                (Some(String::new()), None)
            }
            Err(error) => (None, Some(error)),
        });
        missing.into_iter().for_each(|error| self.report_error(cx, error.of_call(true)));
        answer
    }

    /// The `read` instruction.
    pub(super) fn read_call(&mut self, cx: &mut Context, call: &str, quoted: bool) {
        let call = self.expand(cx, call, false);
        let Some(value) = self.value_of_call(cx, &call, quoted) else { return };
        if let Ok(found) = self.find(cx, &call, quoted) {
            cx.log_between_packets(&format!("{}:\n{value}", full_path(cx, &found.target)));
        }
    }

    /// The `write` instruction.
    pub(super) fn write_call(&mut self, cx: &mut Context, call: &str, quoted: bool) {
        let call = self.expand(cx, call, false);
        let Some(call) = self.find_or_report(cx, &call, quoted) else { return };
        let missing = self.under_heading(call.heading(), |machine| {
            let error = machine.write(cx, &call).err();
            match &error {
                None | Some(HandlerError::ReadWithErrors { .. } | HandlerError::WrittenWithWarnings(_)) => {
                    machine.variables.status = 0
                }
                Some(HandlerError::RejectedWithCode { code, .. }) => machine.variables.status = *code,
                Some(error) if exists(error) => machine.variables.status = HandlerError::INVALID,
                Some(_) => return error,
            }
            error.into_iter().for_each(|error| machine.report_handler_error(cx, &error));
            None
        });
        missing.into_iter().for_each(|error| self.report_error(cx, error.of_call(false)));
    }

    /// The handler of a call. If it can't be found, reports that.
    fn find_or_report(&mut self, cx: &Context, call: &str, quoted: bool) -> Option<Call> {
        let found = self.find(cx, call, quoted);
        found.map_err(|error| self.report_error(cx, error.to_string())).ok()
    }

    /// Reports the error of a handler that was called.
    fn report_handler_error(&mut self, cx: &Context, error: &HandlerError) {
        if !is_silent(error) {
            self.report_error(cx, error.to_string());
        }
    }

    /// Finds the handler of a call. The script's own handlers need no path.
    fn find(&self, cx: &Context, call: &str, quoted: bool) -> Result<Call, HandlerError> {
        let mut rest = call;
        let path = unquote(next_word(&mut rest).unwrap_or(""));
        let value = if quoted { unquote(rest) } else { rest.to_owned() };
        let own = HandlerTarget { element: Some(cx.element()), handler: path.clone() };
        match cx.runtime().resolve(cx.element(), &path) {
            Ok(target) if target.element.is_some() || path.starts_with('.') || !self.is_own(&path) => {
                Ok(Call { target, value })
            }
            Err(error) if !self.is_own(&path) => Err(error),
            _ => Ok(Call { target: own, value }),
        }
    }

    /// Whether the script provides a handler of this name, which the router can't call while the script runs.
    fn is_own(&self, name: &str) -> bool {
        self.script_type == ScriptType::Proxy || self.exports(name)
    }

    /// Reads a handler: `path parameter`.
    fn read(&mut self, cx: &mut Context, call: &Call) -> Result<String, HandlerError> {
        let Call { target, value } = call;
        if target.element == Some(cx.element())
            && let Some(answer) = self.function(cx, &target.handler, value)
        {
            return answer;
        }
        if target.element == Some(cx.element())
            && self.script_type == ScriptType::Proxy
            && !is_listed(cx, &target.handler)
        {
            return self.request(cx, Request::Run, (&target.handler, value), false);
        }
        match cx.read_handler(&call_path(cx, target), value) {
            // Handlers available while the script runs have already been tried.
            Err(HandlerError::Busy(path)) if target.element == Some(cx.element()) => {
                Err(HandlerError::NoHandler(path))
            }
            answer => answer,
        }
    }

    fn write(&mut self, cx: &mut Context, call: &Call) -> Result<(), HandlerError> {
        let Call { target, value } = call;
        let path = call_path(cx, target);
        if target.element != Some(cx.element()) {
            return match cx.write_handler(&path, value) {
                // The element is processing packets: the write is deferred. Scripts are excluded, since they could call
                // each other forever.
                Err(HandlerError::Busy(_)) if !is_script(cx, target) => {
                    cx.defer_write(&path, value);
                    Ok(())
                }
                answer => answer,
            };
        }
        let request = match target.handler.as_str() {
            "set" => return self.assign(value),
            "step" => Request::Step,
            "goto" => Request::Goto,
            "run" => Request::Run,
            _ if self.script_type == ScriptType::Proxy && !is_listed(cx, &target.handler) => Request::Run,
            _ => return Err(HandlerError::NoHandler(path)),
        };
        self.request(cx, request, (&target.handler, value), true).map(drop)
    }

    /// The `set` handler: `variable text`.
    pub(super) fn assign(&mut self, value: &str) -> Result<(), HandlerError> {
        let mut rest = value;
        match next_word(&mut rest) {
            None => return Err(HandlerError::new("no variable")),
            Some("args") => {
                if let Some(arguments) = self.variables.get_mut("args") {
                    *arguments = rest.to_owned();
                }
            }
            Some(name) => self.variables.set(name, rest.to_owned()),
        }
        Ok(())
    }

    /// The variable for the handlers `get` and `shift`, or the error in its name.
    fn variable_mut(&mut self, parameter: &str, default: &str) -> Result<&mut String, HandlerError> {
        let mut rest = parameter;
        let name = next_word(&mut rest).unwrap_or(default);
        if name.is_empty() {
            return Err(HandlerError::new("no variable"));
        }
        if !rest.is_empty() {
            return Err(HandlerError::new("too many arguments"));
        }
        self.variables
            .get_mut(name)
            .ok_or_else(|| HandlerError::new(format_args!("undefined variable ‘{name}’")))
    }

    /// Calls one of the script's own read handlers.
    pub(super) fn function(
        &mut self,
        cx: &mut Context,
        name: &str,
        parameter: &str,
    ) -> Option<Result<String, HandlerError>> {
        Some(match name {
            "now" if !parameter.is_empty() => Err(HandlerError::NoParameter(format!("{}.{name}", cx.name()))),
            "now" => Ok(number_format::timestamp(cx.now())),
            "random" => random(cx, parameter),
            "readable" | "writable" => {
                let mut rest = parameter;
                let mut paths = core::iter::from_fn(|| next_word(&mut rest));
                Ok(paths.all(|path| self.has_handler(cx, path, name == "writable")).to_string())
            }
            "cat" | "catq" => match read_file(cx, &unquote(parameter)) {
                Ok(text) if name == "catq" => Ok(quoted(&text)),
                other => other,
            },
            "kill" => {
                let mut rest = parameter;
                let own = cx.name();
                let setup = Setup::new(&own, (0, 0), cx.names(), cx.environment());
                let signal = next_word(&mut rest).and_then(|name| super::signals::number(name, &setup));
                match signal {
                    Some(signal) => kill(cx, signal, rest),
                    None => Err(HandlerError::new("bad SIGNO")),
                }
            }
            "get" => self.variable_mut(parameter, "").map(|value| value.clone()),
            "shift" => self.variable_mut(parameter, "args").map(|value| {
                let mut rest = value.as_str();
                let first = next_word(&mut rest).unwrap_or("").to_owned();
                let rest = rest.to_owned();
                *value = rest;
                first
            }),
            "run" => self.request(cx, Request::Run, (name, parameter), false),
            _ => {
                if self.exports(name) {
                    if !parameter.is_empty() {
                        return Some(Err(HandlerError::NoParameter(format!("{}.{name}", cx.name()))));
                    }
                    return Some(Ok(self.variables.get(name).unwrap_or_default()));
                }
                let own = cx.name();
                let setup = Setup::new(&own, (0, 0), cx.names(), cx.environment());
                return functions::call(name, parameter, &setup);
            }
        })
    }

    fn has_handler(&self, cx: &Context, path: &str, write: bool) -> bool {
        let Ok(Call { target, .. }) = self.find(cx, path, false) else { return false };
        let handlers = cx.runtime().handlers(target.element);
        let listed = |info: &element::HandlerInfo| {
            info.name == target.handler && (info.kind == HandlerKind::Write) == write
        };
        handlers.iter().any(listed)
            || (!write && target.element == Some(cx.element()) && self.exports(&target.handler))
    }
}

/// An unambiguous path of the handler: the router's handlers start with a dot.
fn call_path(cx: &Context, target: &HandlerTarget) -> String {
    match target.element {
        Some(_) => full_path(cx, target),
        None => format!(".{}", target.handler),
    }
}

fn is_script(cx: &Context, target: &HandlerTarget) -> bool {
    let class = target.element.map(|element| cx.runtime().class_name(element));
    class.is_some_and(|class| matches!(class, "Script" | "DriverManager"))
}

/// Whether the script has a handler of this name, its own or a standard one.
pub(super) fn is_listed(cx: &Context, name: &str) -> bool {
    cx.runtime().has_handler(Some(cx.element()), name)
}

/// Text in double quotes, even if it needs none.
fn quoted(text: &str) -> String {
    let quoted = quote(text.as_bytes());
    if quoted.starts_with('"') { quoted } else { format!("\"{quoted}\"") }
}

fn random(cx: &Context, parameter: &str) -> Result<String, HandlerError> {
    if parameter.is_empty() {
        return Ok(cx.random().to_string());
    }
    let mut errors = SetupError::default();
    let mut numbers = Vec::new();
    let words = element::text::words(parameter);
    for (keyword, word) in ["N1", "N2"].iter().zip(&words) {
        match cx.argument::<u32>(word) {
            Ok(number) => numbers.push(number),
            Err(_) => errors.merge(SetupError::argument(keyword, "invalid number")),
        }
    }
    if words.len() > 2 {
        errors = SetupError::new("too many arguments");
    }
    errors.into_result()?;
    let (low, high) = match numbers.as_slice() {
        [count] if *count > 0 => (0, count - 1),
        [low, high] if low <= high => (*low, *high),
        _ => return Err(HandlerError::new("bad N")),
    };
    Ok(cx.random_between(low, high).to_string())
}

/// Maximum bytes of a file that a script reads.
const MAX_FILE: usize = 1 << 24;

fn read_file(cx: &Context, path: &str) -> Result<String, HandlerError> {
    if path.is_empty() {
        return Err(HandlerError::new("bad FILE"));
    }
    let failed = |error| HandlerError::new(format!("{path}: {error}"));
    let mut file = cx.environment().open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    let mut piece = alloc::vec![0; 4096];
    loop {
        match file.read(&mut piece).map_err(failed)? {
            0 => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
            count => bytes.extend_from_slice(piece.get(..count).unwrap_or(&[])),
        }
        if bytes.len() > MAX_FILE {
            return Err(HandlerError::new(format!("{path}: more than {MAX_FILE} bytes")));
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
