//! The element `Wasm`, which runs network functions in WebAssembly.
//!
//! The interpreter is wasmi. A module sees its own memory and what `host` gives it, and nothing else. The element copies a
//! packet into the module's memory, calls it, and copies what it changed back.
//!
//! Invariants:
//! - no module makes the element panic, wait, or take more memory than its arguments allow: instructions, memory, stack, names
//!   and lines of the log are bounded;
//! - a packet whose call fails is lost for a reason that tells why, and the next one finds the module as it was at its start;
//! - a module is replaced as a whole, between two packets, or not at all.
//!
//! This is the only code in boxes that uses crates of others. The standard image does not have it: see `guest/wasm`.
//!
//! Absent: clocks, random numbers and files, which come from the context; the interface of WASI; compilation to machine code.
#![no_std]
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    reason = "the page of an element is the documentation of its arguments' struct, and a test requires it"
)]

extern crate alloc;

mod answer;
mod base64;
mod host;
mod instance;
mod module;
mod wasm;

pub use wasm::{Wasm, WasmArgs};

element::classes![Wasm];
