//! Elements that create, store, shape, schedule and switch packets, and elements that control a configuration.
//!
//! There is a folder per group and a file per element. The crate `elements` lists the classes of all groups, and tests
//! the invariants that all element crates share.
//!
//! Absent: clocks, random numbers, files, devices and threads. Elements use those of their context.
#![no_std]
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    reason = "the page of an element is the documentation of its arguments' struct, and a test requires it"
)]

extern crate alloc;

pub mod control;
pub mod information;
pub mod scheduling;
pub mod shaping;
pub mod sources;
pub mod storing;
pub mod switching;
pub mod testing;
