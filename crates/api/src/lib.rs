//! The daemon's API: the table of operations, and a client. The types of requests and replies are those of `model`.
//!
//! The protocol is HTTP with JSON, over a Unix socket or over TCP with TLS and a token. The table ([`operation`]) is
//! data: the daemon routes by it, the client calls by it, and the OpenAPI document ([`openapi`]) is generated from it.
//!
//! Invariants:
//! - Of the workspace only `model` is linked: a client needs no code of the daemon.
//!
//! Absent: the implementation of the operations, which is in `daemon`; output formatting; paths of the caller's files:
//! their contents are uploaded instead.

#![forbid(unsafe_code)]

pub mod client;
pub mod openapi;
pub mod operation;

pub use model::*;
