//! The program of a box in a thread: the engine, linked in.
//!
//! `sandbox`, `daemon` and `bench` never link the engine; whoever wishes for such boxes hands them this.

use std::rc::Rc;

use bench::Start;

/// Runs the engine until the host wishes it to stop.
pub(crate) fn run(start: Start) {
    let engine = engine::Engine::new(&start.info, start.region, Rc::new(start.platform));
    if let Err(error) = engine.and_then(|mut engine| engine.run()) {
        eprintln!("clickbox: a box ended: {error}");
    }
}
