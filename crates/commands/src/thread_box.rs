//! The engine as the program of a thread box, for `clickbox bench`.
//!
//! `bench` measures the engine without a sandbox this way. The daemon has no thread boxes: it neither links the engine
//! nor accepts an entry point.

use std::rc::Rc;

use bench::Start;

use crate::error::message;

/// Runs the engine until the host asks it to stop.
pub(crate) fn run(start: Start) {
    let engine = engine::Engine::new(
        &start.info,
        start.region,
        Rc::new(start.platform),
        crate::configuration::registry(),
    );
    if let Err(error) = engine.and_then(|mut engine| engine.run()) {
        eprintln!("clickbox: a box ended: {}", message(&error));
    }
}
