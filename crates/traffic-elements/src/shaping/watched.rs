//! The queues that an element watches.

use element::prelude::*;

use crate::storing::Length;

/// The queues that an element watches.
#[derive(Default)]
pub struct WatchedQueues {
    queues: Vec<Watched>,
}

struct Watched {
    element: usize,
    name: String,
    length: Length,
}

impl Watched {
    fn new(cx: &Context, element: usize) -> Option<Watched> {
        let name = cx.runtime().element_name(element).to_string();
        Some(Watched { element, name, length: Length::of(cx, element)? })
    }
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
                    let watched = Watched::new(cx, element)
                        .ok_or_else(|| SetupError::new(format!("‘{name}’ is not a Storage element")))?;
                    queues.push(watched);
                }
            }
            None => {
                let nearest = runtime.neighbours(cx.element(), Some(0), downstream);
                queues.extend(nearest.into_iter().filter_map(|element| Watched::new(cx, element)));
            }
        }
        if queues.is_empty() {
            return Err(SetupError::new("no nearby Queues"));
        }
        Ok(WatchedQueues { queues })
    }

    /// Whether only this element's own packets change the length while it handles a batch: those that it sends to the only
    /// queue, or pulls from it.
    pub fn change_only_by(cx: &Context, names: Option<&str>) -> bool {
        let found = WatchedQueues::find(cx, names, cx.is_push_output(0));
        let only = found.ok().and_then(|found| match found.queues.as_slice() {
            [only] => Some(only.element),
            _ => None,
        });
        only.is_some_and(|queue| cx.runtime().is_sole_neighbour(cx.element(), queue))
    }

    /// Packets in all of them together.
    #[inline]
    pub fn length(&self) -> usize {
        self.queues.iter().map(|watched| watched.length.get()).sum()
    }

    /// The most packets that the first one stores.
    pub fn capacity(&self) -> usize {
        self.queues.first().map_or(0, |watched| watched.length.capacity())
    }

    /// Their names, each followed by `end`.
    pub fn names(&self, end: &str) -> String {
        self.queues.iter().flat_map(|watched| [watched.name.as_str(), end]).collect()
    }
}
