//! A call of a write handler, kept for later.

use alloc::string::String;

use super::parser::{FromArgument, Problem};
use super::setup::Setup;
use crate::context::Context;
use crate::error::SetupError;
use crate::text;

/// A write handler and the value to write: `element.handler value`, or `handler value` for one of the router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerCall {
    /// The handler's path, as written.
    pub path: String,
    /// The value, as written; perhaps empty.
    pub value: String,
}

impl FromArgument for HandlerCall {
    const KIND: &'static str = "handler call";

    fn from_argument(argument: &str, _: &Setup) -> Result<HandlerCall, Problem> {
        let mut rest = argument;
        let path = text::next_word(&mut rest).map(text::unquote).ok_or(Problem::Syntax)?;
        Ok(HandlerCall { path, value: rest.trim_end().into() })
    }
}

impl HandlerCall {
    /// Checks, once all elements exist, that the handler does; the message names the argument `keyword`.
    pub fn check(&self, cx: &Context, keyword: &str) -> Result<(), SetupError> {
        let problem = |error| SetupError::argument(keyword, error);
        cx.runtime().resolve(cx.element(), &self.path).map(drop).map_err(problem)
    }

    /// Makes the call as soon as the element's own is over.
    pub fn defer(&self, cx: &Context) {
        cx.defer_write(&self.path, &self.value);
    }
}
