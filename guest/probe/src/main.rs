//! The probe: a box program that shows what a sandbox does and withstands.
//!
//! It is installed like any configuration; the text is a command and its arguments (see `command.rs`).
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
