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
    /// The argument that it sets.
    argument: Option<(Option<usize>, &'static str)>,
    call: Call<E>,
}

enum Call<E> {
    Read(fn(&E) -> String),
    ReadWith(fn(&mut E, &mut Context, &str) -> Result<String, HandlerError>),
    Write(fn(&mut E, &mut Context, &str) -> Result<(), HandlerError>),
}

/// What a handler is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerKind {
    /// Gives a value.
    Read,
    /// Gives a value for a parameter.
    ReadWithParameter,
    /// Takes a value.
    Write,
}

/// A handler as the reference and the router know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerInfo {
    /// Its name; a read and a write handler may share one.
    pub name: Cow<'static, str>,
    /// What it is for.
    pub kind: HandlerKind,
    /// Whether reading it costs little and disturbs nothing, so that a monitor may read it often.
    pub calm: bool,
    /// Whether only the configuration itself may call it, and nobody from outside.
    pub hidden: bool,
    /// One sentence.
    pub summary: &'static str,
}

/// Handlers of which there is one for each port or argument, `active0`, `active1` and so on, to read and to write.
pub struct Numbered<E: 'static> {
    /// What stands before the number.
    pub prefix: &'static str,
    /// What each of them is for, in one sentence.
    pub summary: &'static str,
    /// How many there are.
    pub count: fn(&E) -> usize,
    /// The value of one of them, whose number is below the count.
    pub read: fn(&E, usize) -> String,
    /// Changes the value of one of them, whose number is below the count.
    pub write: fn(&mut E, &mut Context, usize, &str) -> Result<(), HandlerError>,
}

impl<E> Numbered<E> {
    /// The number of the handler that has a name.
    pub(crate) fn find(&self, element: &E, name: &str) -> Option<usize> {
        let digits = name.strip_prefix(self.prefix)?;
        let number: usize = digits.parse().ok()?;
        (number < (self.count)(element) && digits == number.to_string()).then_some(number)
    }

    /// The descriptions of all that an element has.
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
    /// A value of the element's state.
    pub const fn read(name: &'static str, summary: &'static str, call: fn(&E) -> String) -> Handler<E> {
        Handler { name, summary, calm: true, hidden: false, argument: None, call: Call::Read(call) }
    }

    /// A value that needs a parameter, the context or changes in the element.
    pub const fn read_with(
        name: &'static str,
        summary: &'static str,
        call: fn(&mut E, &mut Context, &str) -> Result<String, HandlerError>,
    ) -> Handler<E> {
        Handler { name, summary, calm: false, hidden: false, argument: None, call: Call::ReadWith(call) }
    }

    /// A change.
    pub const fn write(
        name: &'static str,
        summary: &'static str,
        call: fn(&mut E, &mut Context, &str) -> Result<(), HandlerError>,
    ) -> Handler<E> {
        Handler { name, summary, calm: false, hidden: false, argument: None, call: Call::Write(call) }
    }

    /// The same for the configuration alone: control connections and the command line don't see it.
    pub const fn hidden(self) -> Handler<E> {
        Handler { hidden: true, ..self }
    }

    /// Sets an argument, named by its place if it has one and its keyword: `config` shows the new value.
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

    /// An error as callers get it: a value of an argument is told as that argument is.
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
