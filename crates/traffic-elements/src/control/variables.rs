//! The variables of a script, including the built-in ones.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};

use element::Context;
use element::text::next_word;

/// Maximum variables of a script.
const MAX_VARIABLES: usize = 10_000;

/// The variables of a script.
#[derive(Default)]
pub(super) struct Variables {
    set: BTreeMap<String, String>,
    /// `$?`: the status of the last write.
    pub(super) status: i32,
    /// `$args`: the parameter of the handler that runs the script.
    pub(super) arguments: String,
    /// `$0`: the name of that handler.
    pub(super) handler: String,
    /// `$write`: whether that handler was written.
    pub(super) writing: bool,
}

impl Variables {
    /// The value of `$` with a name.
    pub(super) fn resolve(&self, cx: &Context, name: &str) -> Option<String> {
        if let Some(value) = self.get(name) {
            return Some(value);
        }
        let words = || {
            let mut rest = self.arguments.as_str();
            core::iter::from_fn(move || next_word(&mut rest))
        };
        match name {
            "?" => Some(self.status.to_string()),
            "args" => Some(self.arguments.clone()),
            "$" => Some(cx.environment().process_id().to_string()),
            "0" => Some(self.handler.clone()),
            "#" => Some(words().count().to_string()),
            "write" => Some(self.writing.to_string()),
            number if number.starts_with(|first: char| ('1'..='9').contains(&first)) => {
                let number =
                    cx.argument::<i32>(number).ok().and_then(|number| usize::try_from(number).ok())?;
                Some(words().nth(number.checked_sub(1)?).unwrap_or_default().to_owned())
            }
            _ => None,
        }
    }

    /// A variable that handlers may change: a script variable or the arguments.
    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut String> {
        match name {
            "args" => Some(&mut self.arguments),
            _ => self.set.get_mut(name),
        }
    }

    /// The text of a variable.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.set.get(name).map(String::as_str)
    }

    /// The value of a variable.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        self.set.get(name).cloned()
    }

    /// Sets a variable, unless there are too many.
    pub(super) fn set(&mut self, name: &str, value: String) {
        if let Some(old) = self.set.get_mut(name) {
            *old = value;
        } else if self.set.len() < MAX_VARIABLES {
            self.set.insert(name.to_owned(), value);
        }
    }
}
