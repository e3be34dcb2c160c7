//! Handlers: the only control surface of an element.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};

use crate::arguments::ArgumentError;
use crate::context::Context;
use crate::error::HandlerError;

/// A handler of an element of type `E`.
pub struct Handler<E: 'static> {
    name: &'static str,
    summary: &'static str,
    calm: bool,
    hidden: bool,
    /// The argument that the handler sets.
    argument: Option<(Option<usize>, &'static str)>,
    call: Call<E>,
}

enum Call<E> {
    Read(fn(&E) -> String),
    ReadWith(fn(&mut E, &mut Context, &str) -> Result<String, HandlerError>),
    Write(fn(&mut E, &mut Context, &str) -> Result<(), HandlerError>),
}

/// The kind of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerKind {
    /// Returns a value.
    Read,
    /// Returns a value for a parameter.
    ReadWithParameter,
    /// Takes a value.
    Write,
}

/// The description of a handler, for the reference and the router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerInfo {
    /// Its name; a read and a write handler may share one.
    pub name: Cow<'static, str>,
    /// Its kind.
    pub kind: HandlerKind,
    /// Whether reading it is cheap and has no side effects, so that a monitor may read it often.
    pub calm: bool,
    /// Whether only the configuration itself may call it, not control connections or the command line.
    pub hidden: bool,
    /// One sentence.
    pub summary: &'static str,
}

/// Handlers that exist once per port or argument, `active0`, `active1` and so on, for reading and writing.
pub struct Numbered<E: 'static> {
    /// The part of the name before the number.
    pub prefix: &'static str,
    /// What each handler does, in one sentence.
    pub summary: &'static str,
    /// The number of handlers.
    pub count: fn(&E) -> usize,
    /// Reads the handler with an index below the count.
    pub read: fn(&E, usize) -> String,
    /// Writes the handler with an index below the count.
    pub write: fn(&mut E, &mut Context, usize, &str) -> Result<(), HandlerError>,
}

impl<E> Numbered<E> {
    /// The index of the handler called `name`.
    pub(crate) fn find(&self, element: &E, name: &str) -> Option<usize> {
        let digits = name.strip_prefix(self.prefix)?;
        let number: usize = digits.parse().ok()?;
        (number < (self.count)(element) && digits == number.to_string()).then_some(number)
    }

    /// The descriptions of all handlers of an element.
    pub(crate) fn infos(&self, element: &E) -> impl Iterator<Item = HandlerInfo> {
        (0..(self.count)(element)).flat_map(|number| {
            let name = Cow::<str>::Owned(format!("{}{number}", self.prefix));
            let (kind, summary) = (HandlerKind::Read, self.summary);
            let read = HandlerInfo { name, kind, calm: true, hidden: false, summary };
            let write = HandlerInfo { kind: HandlerKind::Write, calm: false, ..read.clone() };
            [read, write]
        })
    }
}

impl<E> Handler<E> {
    /// A read handler for a value of the element's state.
    pub const fn read(name: &'static str, summary: &'static str, call: fn(&E) -> String) -> Handler<E> {
        Handler { name, summary, calm: true, hidden: false, argument: None, call: Call::Read(call) }
    }

    /// A read handler that needs a parameter, the context or mutable access to the element.
    pub const fn read_with(
        name: &'static str,
        summary: &'static str,
        call: fn(&mut E, &mut Context, &str) -> Result<String, HandlerError>,
    ) -> Handler<E> {
        Handler { name, summary, calm: false, hidden: false, argument: None, call: Call::ReadWith(call) }
    }

    /// A write handler.
    pub const fn write(
        name: &'static str,
        summary: &'static str,
        call: fn(&mut E, &mut Context, &str) -> Result<(), HandlerError>,
    ) -> Handler<E> {
        Handler { name, summary, calm: false, hidden: false, argument: None, call: Call::Write(call) }
    }

    /// Hides the handler from control connections and the command line; only the configuration can call it.
    pub const fn hidden(self) -> Handler<E> {
        Handler { hidden: true, ..self }
    }

    /// A write handler that sets an argument, given by its position (if it has one) and keyword; `config` shows the new
    /// value.
    pub const fn argument(
        name: &'static str,
        (position, keyword): (Option<usize>, &'static str),
        summary: &'static str,
        call: fn(&mut E, &mut Context, &str) -> Result<(), HandlerError>,
    ) -> Handler<E> {
        Handler { argument: Some((position, keyword)), ..Handler::write(name, summary, call) }
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its description.
    pub const fn info(&self) -> HandlerInfo {
        let kind = match self.call {
            Call::Read(_) => HandlerKind::Read,
            Call::ReadWith(_) => HandlerKind::ReadWithParameter,
            Call::Write(_) => HandlerKind::Write,
        };
        HandlerInfo {
            name: Cow::Borrowed(self.name),
            kind,
            calm: self.calm,
            hidden: self.hidden,
            summary: self.summary,
        }
    }

    /// Calls a read handler.
    pub fn call_read(
        &self,
        element: &mut E,
        cx: &mut Context,
        parameter: &str,
    ) -> Result<String, HandlerError> {
        match self.call {
            Call::Read(call) => Ok(call(element)),
            Call::ReadWith(call) => call(element, cx, parameter).map_err(|error| self.told(error)),
            Call::Write(_) => Err(HandlerError::Wrong { path: self.name.to_string(), read: true }),
        }
    }

    /// Calls a write handler.
    pub fn call_write(&self, element: &mut E, cx: &mut Context, value: &str) -> Result<(), HandlerError> {
        match self.call {
            Call::Write(call) => {
                call(element, cx, value).map_err(|error| self.told(error))?;
                if let Some((position, keyword)) = self.argument {
                    cx.note_argument(position, keyword, value.trim());
                }
                Ok(())
            }
            _ => Err(HandlerError::Wrong { path: self.name.to_string(), read: false }),
        }
    }

    /// The error as callers get it: an invalid value of an argument is reported under the argument's keyword.
    fn told(&self, error: HandlerError) -> HandlerError {
        let HandlerError::Value(problem) = error else { return error };
        match self.argument {
            Some((_, keyword)) if problem.is_form() && !keyword.is_empty() => {
                HandlerError::with_code(HandlerError::UNSPECIFIED, format_args!("{keyword}: {problem}"))
            }
            Some((_, keyword)) if matches!(problem, ArgumentError::LaterOf(_)) && !keyword.is_empty() => {
                HandlerError::Rejected(format!("{keyword} {problem}"))
            }
            _ => HandlerError::new(problem),
        }
    }
}
