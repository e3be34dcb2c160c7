//! The queues that an element watches.

use element::prelude::*;

use crate::storing::Length;

/// The queues that an element watches.
#[derive(Default)]
pub struct WatchedQueues {
    queues: Vec<(String, Length)>,
}

impl WatchedQueues {
    /// Checks that elements called `names` exist.
    pub fn resolve(cx: &Context, names: Option<&str>) -> Result<(), SetupError> {
        let mut problems = SetupError::default();
        for name in names.map(element::text::words).unwrap_or_default() {
            if cx.runtime().find(cx.element(), &name).is_none() {
                problems.merge(SetupError::new(format!("no element named ‘{name}’")));
            }
        }
        problems.into_result()
    }

    /// Finds the queues called `names`. Without names: the nearest ones, downstream on a push path, else upstream.
    pub fn find(cx: &Context, names: Option<&str>, downstream: bool) -> Result<WatchedQueues, SetupError> {
        let runtime = cx.runtime();
        let mut queues = Vec::new();
        match names {
            Some(names) => {
                for name in element::text::words(names) {
                    let element = runtime
                        .find(cx.element(), &name)
                        .ok_or_else(|| SetupError::new(format!("no element named ‘{name}’")))?;
                    let length = Length::of(cx, element)
                        .ok_or_else(|| SetupError::new(format!("‘{name}’ is not a Storage element")))?;
                    queues.push((runtime.element_name(element).to_string(), length));
                }
            }
            None => {
                for element in runtime.neighbours(cx.element(), Some(0), downstream) {
                    if let Some(length) = Length::of(cx, element) {
                        queues.push((runtime.element_name(element).to_string(), length));
                    }
                }
            }
        }
        if queues.is_empty() {
            return Err(SetupError::new("no nearby Queues"));
        }
        Ok(WatchedQueues { queues })
    }

    /// Packets in all of them together.
    #[inline]
    pub fn length(&self) -> usize {
        self.queues.iter().map(|(_, length)| length.get()).sum()
    }

    /// Their names, each followed by `end`.
    pub fn names(&self, end: &str) -> String {
        self.queues.iter().flat_map(|(name, _)| [name.as_str(), end]).collect()
    }
}
