//! The list of drop reasons, with a sentence and a remedy for each.
//!
//! Elements, the router, the switch and the daemon count lost packets under a [`Reason`]. Inside a process, a reason
//! is a 16-bit number. Between processes and in metrics, it is always a name.
//!
//! Invariants:
//! - the list only grows: a reason is never removed, renamed or moved (`tests/list.rs` compares it with `reasons.txt`);
//! - two reasons never mean the same thing;
//! - a name that is not on the list and has no [user prefix](USER_PREFIX) reads as [`Reason::UNDECLARED`].
//!
//! Absent: counters, and which element may use which reason; a class declares that (`element`).
#![no_std]
#![forbid(unsafe_code)]

mod list;
mod name;

pub use name::{MAX_USER_NAME, Name, USER_PREFIX, is_user_name};

/// Why a packet was dropped: an index into the list, or the number of a reason that a user's function declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason(u16);

/// Numbers from here on stand for reasons that users' functions declare. Their names are known to the router that they
/// were declared to.
const FIRST_USER: u16 = 0x8000;

impl Reason {
    /// All reasons on the list, in its order.
    pub fn all() -> impl ExactSizeIterator<Item = Reason> {
        (0..list::NAMES.len() as u16).map(Reason)
    }

    /// The reason on the list with this name.
    pub fn find(name: &str) -> Option<Reason> {
        list::NAMES.iter().position(|known| *known == name).map(|index| Reason(index as u16))
    }

    /// The reason that a router's user functions have declared as number `number`.
    pub const fn user(number: u16) -> Reason {
        Reason(number | FIRST_USER)
    }

    /// The number of a user function's reason; `None` for one on the list.
    pub const fn user_number(self) -> Option<u16> {
        if self.0 >= FIRST_USER { Some(self.0 - FIRST_USER) } else { None }
    }

    /// Its name; that of [`Reason::UNDECLARED`] for a user function's reason, whose name only its router knows.
    pub fn name(self) -> &'static str {
        self.of(&list::NAMES)
    }

    /// What it means, in a sentence.
    pub fn summary(self) -> &'static str {
        self.of(&list::SUMMARIES)
    }

    /// What an operator can do about it, in a sentence or two.
    pub fn remedy(self) -> &'static str {
        self.of(&list::REMEDIES)
    }

    fn of(self, texts: &'static [&'static str]) -> &'static str {
        texts.get(usize::from(self.0)).or(texts.first()).copied().unwrap_or_default()
    }
}

/// Reasons for which the framework drops packets on behalf of any element. No class declares them.
pub const FRAMEWORK: &[Reason] =
    &[Reason::NO_BUFFER, Reason::NO_OUTPUT, Reason::NO_PUSH, Reason::REENTERED, Reason::ENDLESS_LOOP];
