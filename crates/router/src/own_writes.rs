//! The writes to handlers that elements make on their own, and that change the configuration.

use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use element::WriteEffect;

/// Handlers whose writes are kept one by one. Stops a configuration that writes very many handlers from filling the memory.
const MAX_HANDLERS: usize = 64;
/// Bytes of a value that are kept, for display.
const MAX_VALUE: usize = 256;
/// Handlers whose effect is remembered; that of others is looked up at each write.
const MAX_EFFECTS: usize = 1_024;

/// The writes of elements to a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnWrite {
    /// What they change.
    pub effect: WriteEffect,
    /// Whether the element's handler `config` shows what was written.
    pub in_config: bool,
    /// The start of the last value.
    pub value: String,
    /// The number of writes; 0 for a handler whose writes change nothing that the configuration says.
    pub count: u64,
    is_new: bool,
}

/// The writes of elements, sorted by the handler's path. A map would add 10 KB to the image of a box.
#[derive(Debug, Default)]
pub(crate) struct OwnWrites {
    rows: RefCell<Vec<(String, OwnWrite)>>,
    /// Writes to handlers beyond [`MAX_HANDLERS`].
    omitted: Cell<u64>,
    has_news: Cell<bool>,
}

impl OwnWrites {
    /// Adds a write that an element made. `facts` tells, for a handler that is new here, what writes to it change, and whether
    /// `config` always shows it; `is_recorded` whether `config` shows this write.
    #[inline(never)]
    pub(crate) fn add(
        &self,
        (path, value): (&str, &str),
        facts: &dyn Fn() -> (WriteEffect, bool),
        is_recorded: bool,
    ) {
        let mut rows = self.rows.borrow_mut();
        let place = match rows.binary_search_by(|(known, _)| known.as_str().cmp(path)) {
            Ok(place) => place,
            Err(place) => {
                let (effect, in_config) = facts();
                let changes = effect != WriteEffect::Action;
                if changes && rows.iter().filter(|(_, row)| row.count > 0).count() >= MAX_HANDLERS {
                    self.omitted.set(self.omitted.get() + 1);
                    self.has_news.set(true);
                    return;
                }
                if !changes && rows.len() >= MAX_EFFECTS {
                    return;
                }
                let row = OwnWrite { effect, in_config, value: String::new(), count: 0, is_new: false };
                rows.insert(place, (path.into(), row));
                place
            }
        };
        if let Some((_, row)) = rows.get_mut(place).filter(|(_, row)| row.effect != WriteEffect::Action) {
            row.value.clear();
            row.value.push_str(value.get(..value.floor_char_boundary(MAX_VALUE)).unwrap_or_default());
            row.count += 1;
            row.is_new = true;
            row.in_config |= is_recorded;
            self.has_news.set(true);
        }
    }

    /// Whether there are writes that [`take_news`](Self::take_news) has not passed on.
    pub(crate) fn has_news(&self) -> bool {
        self.has_news.get()
    }

    /// Passes on the handlers that were written since the last call, with the number of writes that are not kept.
    pub(crate) fn take_news(&self, each: &mut dyn FnMut(&str, &OwnWrite)) -> u64 {
        self.has_news.set(false);
        for (path, row) in self.rows.borrow_mut().iter_mut().filter(|(_, row)| row.is_new) {
            row.is_new = false;
            each(path, row);
        }
        self.omitted.get()
    }

    /// Forgets all. Returns whether there was any.
    pub(crate) fn forget(&self) -> bool {
        let is_any = self.is_any();
        self.has_news.set(false);
        self.omitted.set(0);
        self.rows.take();
        is_any
    }

    /// Whether there is any.
    pub(crate) fn is_any(&self) -> bool {
        self.rows.borrow().iter().any(|(_, row)| row.count > 0)
    }

    /// Takes over those of the configuration before, which replaced itself.
    pub(crate) fn continue_from(&self, before: &OwnWrites) {
        let mut rows = before.rows.take();
        rows.retain(|(_, row)| row.count > 0);
        self.rows.replace(rows);
        self.omitted.set(before.omitted.get());
        self.has_news.set(before.has_news.get());
    }
}
