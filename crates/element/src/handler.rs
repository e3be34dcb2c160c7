//! Handlers: the only control surface of an element.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::context::Context;
use crate::error::{ArgumentError, HandlerError};
use crate::handler_info::{HandlerInfo, HandlerKind, WriteEffect};

/// A handler of an element of type `E`.
pub struct Handler<E: 'static> {
    head: HandlerHead,
    call: Call<E>,
}

/// The part of a handler that does not depend on the element's type: code for it is compiled once, not once a class.
pub(crate) struct HandlerHead {
    name: &'static str,
    kind: HandlerKind,
    summary: &'static str,
    effect: WriteEffect,
    calm: bool,
    hidden: bool,
    /// The argument that the handler sets.
    argument: Option<(Option<usize>, &'static str)>,
}

enum Call<E> {
    Read(fn(&E) -> String),
    ReadWith(fn(&mut E, &mut Context, &str) -> Result<String, HandlerError>),
    Write(fn(&mut E, &mut Context, &str) -> Result<(), HandlerError>),
}

/// Handlers that exist once per port or argument, `active0`, `active1` and so on, for reading and writing. Each write sets
/// a value of the configuration: [`WriteEffect::Setting`].
pub struct NumberedHandlers<E: 'static> {
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

impl<E> NumberedHandlers<E> {
    /// The index of the handler called `name`.
    pub(crate) fn find(&self, element: &E, name: &str) -> Option<usize> {
        number_behind(self.prefix, name).filter(|number| *number < (self.count)(element))
    }

    /// The descriptions of all handlers of an element.
    pub(crate) fn infos(&self, element: &E) -> Vec<HandlerInfo> {
        numbered_infos(self.prefix, self.summary, (self.count)(element))
    }
}

/// The number after `prefix`, if `name` is that prefix and a number without leading zeros.
fn number_behind(prefix: &str, name: &str) -> Option<usize> {
    let digits = name.strip_prefix(prefix)?;
    let number: usize = digits.parse().ok()?;
    (digits == number.to_string()).then_some(number)
}

fn numbered_infos(prefix: &str, summary: &'static str, count: usize) -> Vec<HandlerInfo> {
    let infos = (0..count).flat_map(|number| {
        let name = Cow::<str>::Owned(format!("{prefix}{number}"));
        let effect = WriteEffect::Action;
        let read = HandlerInfo { name, kind: HandlerKind::Read, effect, calm: true, hidden: false, summary };
        let effect = WriteEffect::Setting;
        let write = HandlerInfo { kind: HandlerKind::Write, effect, calm: false, ..read.clone() };
        [read, write]
    });
    infos.collect()
}

/// The handler of a class that answers a request by name.
pub(crate) enum Found {
    /// It has this index.
    At(usize),
    /// There is one of that name, for the other direction.
    OtherDirection,
    /// There is none of that name.
    Nothing,
}

impl Found {
    /// Looks for a handler to read, or one to write, among those that `head` gives by index.
    pub(crate) fn new(name: &str, read: bool, head: &dyn Fn(usize) -> Option<&'static HandlerHead>) -> Found {
        let mut found = Found::Nothing;
        for (index, head) in (0..).map_while(head).enumerate().filter(|(_, head)| head.name == name) {
            if read == (head.kind != HandlerKind::Write) {
                return Found::At(index);
            }
            found = Found::OtherDirection;
        }
        found
    }

    /// The error of a request without such a handler.
    pub(crate) fn error(&self, name: &str, read: bool) -> HandlerError {
        match self {
            Found::Nothing => HandlerError::NoHandler(name.to_string()),
            _ => HandlerError::WrongKind { path: name.to_string(), read },
        }
    }
}

/// Fails if a handler that takes no parameter is given one.
pub(crate) fn refuse_parameter(name: &str, parameter: &str) -> Result<(), HandlerError> {
    match parameter {
        "" => Ok(()),
        _ => Err(HandlerError::NoParameter(name.to_string())),
    }
}

impl<E> Handler<E> {
    /// A read handler for a value of the element's state.
    pub const fn read(name: &'static str, summary: &'static str, call: fn(&E) -> String) -> Handler<E> {
        let kind = HandlerKind::Read;
        let head = HandlerHead { calm: true, ..HandlerHead::new(name, kind, summary) };
        Handler { head, call: Call::Read(call) }
    }

    /// A read handler that needs a parameter, the context or mutable access to the element.
    pub const fn read_with(
        name: &'static str,
        summary: &'static str,
        call: fn(&mut E, &mut Context, &str) -> Result<String, HandlerError>,
    ) -> Handler<E> {
        let kind = HandlerKind::ReadWithParameter;
        Handler { head: HandlerHead::new(name, kind, summary), call: Call::ReadWith(call) }
    }

    /// A write handler that changes nothing that the configuration says: it resets counters, changes the state, or acts
    /// once.
    pub const fn action(
        name: &'static str,
        summary: &'static str,
        call: fn(&mut E, &mut Context, &str) -> Result<(), HandlerError>,
    ) -> Handler<E> {
        Handler::write(name, summary, WriteEffect::Action, call)
    }

    /// A write handler that sets a value of the configuration.
    pub const fn setting(
        name: &'static str,
        summary: &'static str,
        call: fn(&mut E, &mut Context, &str) -> Result<(), HandlerError>,
    ) -> Handler<E> {
        Handler::write(name, summary, WriteEffect::Setting, call)
    }

    /// A write handler that changes an entry of the configuration: writes add up.
    pub const fn edit(
        name: &'static str,
        summary: &'static str,
        call: fn(&mut E, &mut Context, &str) -> Result<(), HandlerError>,
    ) -> Handler<E> {
        Handler::write(name, summary, WriteEffect::Edit, call)
    }

    const fn write(
        name: &'static str,
        summary: &'static str,
        effect: WriteEffect,
        call: fn(&mut E, &mut Context, &str) -> Result<(), HandlerError>,
    ) -> Handler<E> {
        let head = HandlerHead { effect, ..HandlerHead::new(name, HandlerKind::Write, summary) };
        Handler { head, call: Call::Write(call) }
    }

    /// Hides the handler from control connections and the command line; only the configuration can call it.
    pub const fn hidden(self) -> Handler<E> {
        Handler { head: HandlerHead { hidden: true, ..self.head }, call: self.call }
    }

    /// A [setting](Self::setting) that sets an argument, given by its position (if it has one) and keyword; `config` shows the new
    /// value.
    pub const fn argument(
        name: &'static str,
        (position, keyword): (Option<usize>, &'static str),
        summary: &'static str,
        call: fn(&mut E, &mut Context, &str) -> Result<(), HandlerError>,
    ) -> Handler<E> {
        let handler = Handler::setting(name, summary, call);
        let head = HandlerHead { argument: Some((position, keyword)), ..handler.head };
        Handler { head, call: handler.call }
    }

    /// The part that does not depend on the element's type.
    pub(crate) const fn head(&self) -> &HandlerHead {
        &self.head
    }

    /// Calls a read handler.
    pub(crate) fn call_read(
        &self,
        element: &mut E,
        cx: &mut Context,
        parameter: &str,
    ) -> Result<String, HandlerError> {
        match self.call {
            Call::Read(call) => {
                refuse_parameter(self.head.name, parameter)?;
                Ok(call(element))
            }
            Call::ReadWith(call) => call(element, cx, parameter).map_err(|error| self.head.reported(error)),
            Call::Write(_) => Err(Found::OtherDirection.error(self.head.name, true)),
        }
    }

    /// Calls a write handler.
    pub(crate) fn call_write(
        &self,
        element: &mut E,
        cx: &mut Context,
        value: &str,
    ) -> Result<(), HandlerError> {
        match self.call {
            Call::Write(call) => {
                let result = call(element, cx, value);
                self.head.conclude_write(result, cx, value)
            }
            _ => Err(Found::OtherDirection.error(self.head.name, false)),
        }
    }
}

impl HandlerHead {
    const fn new(name: &'static str, kind: HandlerKind, summary: &'static str) -> HandlerHead {
        let effect = WriteEffect::Action;
        HandlerHead { name, kind, summary, effect, calm: false, hidden: false, argument: None }
    }

    /// The handler's name.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The handler's description.
    pub(crate) fn info(&self) -> HandlerInfo {
        HandlerInfo {
            name: Cow::Borrowed(self.name),
            kind: self.kind,
            effect: self.effect,
            calm: self.calm,
            hidden: self.hidden,
            summary: self.summary,
        }
    }

    fn conclude_write(
        &self,
        result: Result<(), HandlerError>,
        cx: &mut Context,
        value: &str,
    ) -> Result<(), HandlerError> {
        result.map_err(|error| self.reported(error))?;
        if let Some((position, keyword)) = self.argument {
            cx.record_argument(position, keyword, value.trim());
        }
        Ok(())
    }

    /// The error as callers get it: an invalid value of an argument is reported under the argument's keyword.
    fn reported(&self, error: HandlerError) -> HandlerError {
        let HandlerError::Value(problem) = error else { return error };
        match self.argument {
            Some((_, keyword)) if problem.is_syntactic() && !keyword.is_empty() => {
                HandlerError::with_code(HandlerError::UNSPECIFIED, format_args!("{keyword}: {problem}"))
            }
            Some((_, keyword))
                if matches!(problem, ArgumentError::SemanticWithKeyword(_)) && !keyword.is_empty() =>
            {
                HandlerError::Rejected(format!("{keyword} {problem}"))
            }
            _ => HandlerError::new(problem),
        }
    }
}
