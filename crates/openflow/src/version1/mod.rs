//! OpenFlow 1.0 (wire version 1), as far as controllers of that time use it: its messages, translated from and to those of
//! OpenFlow 1.3.
//!
//! What this version can't express is left out: fields and actions of entries that other controllers added, and ports with
//! numbers beyond 16 bits. Extensions are refused.

mod action;
mod error;
mod matching;
mod number;
mod port;
mod reply;
mod request;
mod statistics;

pub(crate) use reply::{encode, features_reply};
pub(crate) use request::{Decoded, decode};
pub(crate) use statistics::encode_statistics;

/// The version number.
pub(crate) const VERSION: u8 = 1;
