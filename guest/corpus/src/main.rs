//! The corpus image: runs the cases of the corpus in simulated time, for the tests.
//!
//! It has the same elements and router as the box image, compiled for the same target, but no ports and no clock.
#![no_std]
#![no_main]

extern crate alloc;

mod runner;

use boot::{Boot, GuestPlatform};
use runner::Runner;

#[unsafe(no_mangle)]
fn run(boot: Boot) -> ! {
    let done = Runner::new(boot.region.into_mapped()).and_then(|mut runner| runner.run(&GuestPlatform));
    match done {
        Ok(()) => boot::stop(),
        Err(error) => panic!("{error}"),
    }
}
