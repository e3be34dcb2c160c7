//! OpenFlow 1.3 and 1.0: messages, and the switch's side of the sessions with controllers.
//!
//! [`message`] decodes and encodes the messages of the OpenFlow Switch Specification 1.3.5 (ONF TS-023), to which section
//! numbers refer. [`session::Agent`] answers the controllers of one switch: it takes bytes and times, gives bytes, and
//! applies changes to a [`session::Datapath`]. Controllers of OpenFlow 1.0 are answered in their version, by messages that
//! are translated from and to those of 1.3.
//!
//! Invariants, each held by a test:
//! - what is encoded decodes to the same message; what decodes, encodes and decodes to the same message again;
//! - no bytes make this crate panic, and lengths are checked before memory is allocated for them;
//! - each refused message is answered with the error type and code of the specification;
//! - the memory of an agent has a bound for each session: a controller that does not read is no longer read from;
//! - messages of a session are performed in the order in which they arrive.
//!
//! Absent: sockets and clocks, except in `connections`; threads; the flow tables, which are in `flow-table`; other versions of OpenFlow, and bundles.
#![forbid(unsafe_code)]

mod action;
mod bucket;
pub mod connections;
mod conversion;
mod error_code;
mod fields;
mod instruction;
pub mod message;
pub mod session;
mod version1;
mod wire;

pub use error_code::ErrorCode;

/// The version number of OpenFlow 1.3.
pub const VERSION: u8 = 4;

/// Bytes of the largest message: the header counts them in 16 bits.
pub const MAX_MESSAGE: usize = 0xffff;
