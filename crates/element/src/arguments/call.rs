//! A deferred call of a write handler.

use alloc::string::String;

use super::parser::FromArgument;
use super::setup::Setup;
use crate::context::Context;
use crate::error::ArgumentError;
use crate::error::{HandlerError, SetupError};
use crate::handler_info::HandlerKind;
use crate::text;

/// A write handler and its value: `element.handler value`, or `handler value` for a handler of the router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerCall {
    /// The handler's path, as written.
    pub path: String,
    /// The value, as written; may be empty.
    pub value: String,
}

impl FromArgument for HandlerCall {
    const KIND: &'static str = "handler call";

    fn from_argument(argument: &str, _: &Setup) -> Result<HandlerCall, ArgumentError> {
        let mut rest = argument;
        let path = text::next_word(&mut rest).map(text::unquote).ok_or(ArgumentError::Syntax)?;
        Ok(HandlerCall { path, value: rest.trim_end().into() })
    }
}

impl HandlerCall {
    /// Checks that the handler exists, once all elements exist; errors name the argument `keyword`.
    pub fn resolve(&self, cx: &Context, keyword: &str) -> Result<(), SetupError> {
        cx.runtime().resolve(cx.element(), &self.path).map(drop).map_err(|error| {
            let mut problems = SetupError::argument(keyword, error);
            problems.merge(SetupError::argument(keyword, ArgumentError::Syntax));
            problems
        })
    }

    /// Checks that the handler exists, once all elements are configured.
    pub fn check(&self, cx: &Context) -> Result<(), SetupError> {
        let runtime = cx.runtime();
        let target = runtime.resolve(cx.element(), &self.path).map_err(SetupError::new)?;
        let handlers = runtime.handlers(target.element);
        match handlers.iter().any(|info| info.name == target.handler && info.kind == HandlerKind::Write) {
            true => Ok(()),
            false => Err(SetupError::new(HandlerError::NoHandler(self.path.clone()).of_call(false))),
        }
    }

    /// Makes the call once the element's current call has ended.
    pub fn defer(&self, cx: &Context) {
        cx.defer_write(&self.path, &self.value);
    }
}
