//! Conditions on packets as text, translated into matches of flow entries.
//!
//! [`matches_of`] takes an expression of the element `IPClassifier`, such as `tcp dst port 80 or 443`.
//!
//! Invariants, each held by a test:
//! - the matches of an expression match the packets for which `classify` finds that the expression holds;
//! - what a flow entry cannot match is an error, never ignored.
//!
//! This crate is apart from `flow-table`, so that a process with a flow table links no text parser.
//!
//! Absent: actions, priorities and everything else of a flow entry.
#![forbid(unsafe_code)]

mod expression;

pub use expression::{ExpressionError, matches_of};
