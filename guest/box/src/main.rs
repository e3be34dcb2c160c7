//! The box image: boot code and engine, one program for machine and process.
#![no_std]
#![no_main]

extern crate alloc;

mod report;

use alloc::boxed::Box;
use alloc::rc::Rc;
use boot::{Boot, GuestPlatform};
use core::error::Error;
use engine::{Engine, EngineError};
use router::Registry;

#[unsafe(no_mangle)]
fn run(boot: Boot) -> ! {
    let engine =
        match Engine::new(&boot.info, boot.region, Rc::new(GuestPlatform), Registry::new(elements::REGISTRY))
        {
            Ok(engine) => Box::leak(Box::new(engine)),
            Err(error) => fail(error),
        };
    report::watch(engine);
    match engine.run() {
        Ok(()) => boot::stop(),
        Err(error) => fail(error),
    }
}

/// Ends the box with an error and its cause.
fn fail(error: EngineError) -> ! {
    match error.source() {
        Some(cause) => panic!("{error}: {cause}"),
        None => panic!("{error}"),
    }
}
