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
mod reason;

pub use list::FRAMEWORK;
pub use name::{MAX_USER_NAME, Name, USER_PREFIX, is_user_name};
pub use reason::Reason;
