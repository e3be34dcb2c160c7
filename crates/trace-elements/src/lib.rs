//! Elements that read and write packets outside a configuration: trace files and devices.
//!
//! A folder per group, a file per element. The crate `elements` lists the classes of all groups, and its tests hold the
//! invariants that this crate shares with the other crates of elements.
//!
//! Absent: clocks, random numbers, files, devices and threads of its own; all come through the element's context.
#![no_std]
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    reason = "the page of an element is the documentation of its arguments' struct, and a test requires it"
)]

extern crate alloc;

pub mod devices;
pub mod trace;
