//! The probe: a program to test and measure sandboxes.
//!
//! It accepts a command with arguments in place of a configuration (see `command.rs`).
#![no_std]
#![no_main]

extern crate alloc;

mod command;
mod mischief;
mod port;
mod program;

use boot::Boot;

#[unsafe(no_mangle)]
fn run(boot: Boot) -> ! {
    match program::Program::new(boot) {
        Ok(program) => program.run(),
        Err(error) => panic!("{error}"),
    }
}
