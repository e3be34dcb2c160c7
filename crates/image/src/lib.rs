//! The box images, embedded as bytes.
//!
//! `cargo build` makes them from the `guest/` workspace; there is nothing else to set up. They are ELF files that are
//! self-contained: a sandbox maps one and runs it, in a virtual machine or as a process.
//!
//! Absent on purpose: what runs them, and anything that is decided when they run.

/// The image of a box: the engine with all of its elements.
pub static CLICKBOX: &[u8] = include_bytes!(env!("IMAGE_CLICKBOX"));

/// The corpus runner: a program for tests, with the elements of [`CLICKBOX`], that runs configurations in simulated time.
pub static CORPUS: &[u8] = include_bytes!(env!("IMAGE_CORPUS"));

/// The probe: a program for tests and measurements of the sandboxes, without an engine.
pub static PROBE: &[u8] = include_bytes!(env!("IMAGE_PROBE"));
