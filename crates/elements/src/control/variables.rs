//! The variables of a script, and what else `$` means in it.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};

use element::Context;
use element::text::next_word;

/// Variables of one script.
const MOST_VARIABLES: usize = 10_000;

/// What a script knows by name.
#[derive(Default)]
pub(super) struct Variables {
    set: BTreeMap<String, String>,
    /// `$?`: how the last write ended.
    pub(super) status: i32,
    /// `$args`: what a handler that runs the script was given.
    pub(super) arguments: String,
    /// `$0`: that handler.
    pub(super) handler: String,
    /// `$write`: whether it was written.
    pub(super) writing: bool,
}

impl Variables {
    /// What `$` and a name mean.
    pub(super) fn meaning(&self, cx: &Context, name: &str) -> Option<String> {
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
            "$" => Some(cx.environment().process().to_string()),
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

    /// What handlers may look at and change: a variable, or the arguments.
    pub(super) fn place(&mut self, name: &str) -> Option<&mut String> {
        match name {
            "args" => Some(&mut self.arguments),
            _ => self.set.get_mut(name),
        }
    }

    /// The value of a variable.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        self.set.get(name).cloned()
    }

    /// Sets a variable; one too many is not kept.
    pub(super) fn set(&mut self, name: &str, value: String) {
        if let Some(old) = self.set.get_mut(name) {
            *old = value;
        } else if self.set.len() < MOST_VARIABLES {
            self.set.insert(name.to_owned(), value);
        }
    }
}
