//! Actions of `AggregateCounter` when a count is reached.

use element::HandlerTarget;
use element::arguments::{ArgumentError, HandlerCall, Raw};
use element::prelude::*;

/// A count, and the action to take when it is reached.
#[derive(Clone)]
pub(super) struct Trigger {
    pub(super) at: u64,
    pub(super) action: Action,
}
#[derive(Clone)]
pub(super) enum Action {
    /// From then on, only known aggregates are counted.
    Freeze,
    /// Stops the driver.
    Stop,
    /// Writes a handler.
    Write(HandlerCall),
}

impl FromArgument for Trigger {
    const KIND: &'static str = "number and handler call";

    /// Parses `N HANDLER [VALUE]`. Whether the handler exists is checked later.
    fn from_argument(text: &str, setup: &Setup) -> Result<Trigger, ArgumentError> {
        let mut rest = text;
        let at = u64::from_argument(element::text::next_word(&mut rest).unwrap_or(""), setup)?;
        let path = element::text::next_word(&mut rest).map(element::text::unquote).unwrap_or_default();
        Ok(Trigger { at, action: Action::Write(HandlerCall { path, value: rest.trim_end().into() }) })
    }
}

impl Trigger {
    /// The one action given by three arguments, or an error if there are several. `number` names what a call counts,
    /// with its maximum.
    pub(super) fn from_arguments(
        name: &str,
        (freeze, stop, Raw(call)): (Option<u64>, Option<u64>, &Raw),
        (number, most): (&str, u64),
        setup: &Setup,
    ) -> Result<Option<Trigger>, SetupError> {
        match (freeze, stop, call.as_str()) {
            (None, None, "") => Ok(None),
            (Some(at), None, "") => Ok(Some(Trigger { at, action: Action::Freeze })),
            (None, Some(at), "") => Ok(Some(Trigger { at, action: Action::Stop })),
            (None, None, call) => {
                let trigger = Trigger::from_argument(call, setup).ok().filter(|trigger| trigger.at <= most);
                let problem = || format!("{name}_CALL first word should be unsigned ({number})");
                trigger.map(Some).ok_or_else(|| SetupError::new(problem()))
            }
            _ => Err(SetupError::new(format!(
                "'{name}_FREEZE', '{name}_STOP', and '{name}_CALL' are mutually exclusive"
            ))),
        }
    }

    /// Checks that the handler exists.
    pub(super) fn check(&self, cx: &Context) -> Result<(), SetupError> {
        match &self.action {
            Action::Write(call) if call.path.is_empty() => Err(SetupError::new("syntax error")),
            Action::Write(call) => call.check(cx),
            Action::Freeze | Action::Stop => Ok(()),
        }
    }

    /// The value of the handlers, with the name of the target element; empty if there is no action.
    pub(super) fn describe(trigger: &Option<Trigger>, cx: &Context) -> String {
        let Some(trigger) = trigger else { return String::new() };
        let name = cx.name();
        match &trigger.action {
            Action::Freeze => format!("{} {name}.freeze true", trigger.at),
            Action::Stop => format!("{} {name}.stop", trigger.at),
            Action::Write(HandlerCall { path, value }) => {
                let runtime = cx.runtime();
                let path = match runtime.resolve(cx.element(), path) {
                    Ok(HandlerTarget { element: Some(element), handler }) => {
                        format!("{}.{handler}", runtime.element_name(element))
                    }
                    _ => path.clone(),
                };
                format!("{} {path} {value}", trigger.at).trim_end().into()
            }
        }
    }

    /// Parses a value written to a handler; an empty value removes the action.
    pub(super) fn parse_written(
        cx: &Context,
        value: &str,
        handler: &str,
    ) -> Result<Option<Trigger>, HandlerError> {
        if value.trim().is_empty() {
            return Ok(None);
        }
        cx.require_one_shard(handler)?;
        let problem = format!("argument to '{handler}' should be 'N HANDLER [VALUE]'");
        let trigger: Trigger = cx.argument(value).map_err(|_| HandlerError::new(problem))?;
        trigger.check(cx)?;
        Ok(Some(trigger))
    }
}
