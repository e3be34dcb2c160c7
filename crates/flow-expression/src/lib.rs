//! Conditions on packets as text, translated into matches of flow entries, and entries as text.
//!
//! [`matches_of`] takes an expression of the element `IPClassifier`, such as `tcp dst port 80 or 443`. [`condition_text`] is the
//! way back for one match; [`instruction_texts`], [`bucket_text`] and [`band_texts`] describe what entries, groups and meters do.
//!
//! Invariants, each held by a test:
//! - the matches of an expression match the packets for which `classify` finds that the expression holds;
//! - what a flow entry cannot match is an error, never ignored;
//! - the text of a match that expressions can state is an expression with this match.
//!
//! This crate is apart from `flow-table`, so that a process with a flow table links no text parser.
//!
//! Absent: the translation of texts into actions and everything else of a flow entry.
#![forbid(unsafe_code)]

mod expression;
mod text;

pub use expression::{ExpressionError, matches_of};
pub use text::{band_texts, bucket_text, condition_text, instruction_texts};
