//! Counters of dropped packets by reason.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::RefCell;

use reason::{FRAMEWORK, Reason, is_user_name};

use crate::class_info::ClassInfo;

/// The maximum number of drop reasons that users' functions may declare per router: bounds what a configuration can add
/// to the metrics.
const MAX_USER_REASONS: usize = 1 << 8;

/// An element's dropped packets.
#[derive(Debug, Default)]
pub struct DropCounters {
    /// Counts by reason, in the order in which the reasons first occurred.
    counts: RefCell<Vec<(Reason, u64)>>,
    /// The reasons that users' functions of the element declared.
    declared: RefCell<Vec<Reason>>,
}

impl DropCounters {
    /// Declares a reason besides those of the class.
    pub fn declare(&self, reason: Reason) {
        self.declared.borrow_mut().push(reason);
    }

    /// Counts dropped packets of an element of `class`.
    #[inline]
    pub fn add(&self, class: &ClassInfo, reason: Reason, count: u64) {
        if count == 0 {
            return;
        }
        let mut counts = self.counts.borrow_mut();
        match counts.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, sum)) => *sum += count,
            None => self.add_first(&mut counts, class, reason, count),
        }
    }

    /// Adds a counter for a new reason; an undeclared reason is counted as such.
    #[cold]
    fn add_first(&self, counts: &mut Vec<(Reason, u64)>, class: &ClassInfo, reason: Reason, count: u64) {
        let is_declared = class.drops.contains(&reason)
            || FRAMEWORK.contains(&reason)
            || self.declared.borrow().contains(&reason);
        debug_assert!(is_declared, "{} drops packets as {}: undeclared", class.name, reason.name());
        let reason = if is_declared { reason } else { Reason::UNDECLARED };
        match counts.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, sum)) => *sum += count,
            None => counts.push((reason, count)),
        }
    }

    /// Calls a function with each reason and its count.
    pub fn for_each(&self, mut each: impl FnMut(Reason, u64)) {
        self.counts.borrow().iter().for_each(|(reason, count)| each(*reason, *count));
    }
}

/// The drop reasons that users' functions declared, by number.
#[derive(Debug, Default)]
pub struct UserReasons(RefCell<Vec<Box<str>>>);

impl UserReasons {
    /// The reason of a name. `None` if the name is invalid or new, and there are too many reasons.
    pub fn declare(&self, name: &str) -> Option<Reason> {
        if !is_user_name(name) {
            return None;
        }
        let mut names = self.0.borrow_mut();
        let number = match names.iter().position(|known| &**known == name) {
            Some(number) => number,
            None if names.len() >= MAX_USER_REASONS => return None,
            None => {
                names.push(name.into());
                names.len() - 1
            }
        };
        Some(Reason::user(number as u16))
    }

    /// The name of a reason that a user's function declared.
    pub fn name(&self, reason: Reason) -> Option<Box<str>> {
        self.0.borrow().get(usize::from(reason.user_number()?)).cloned()
    }
}
