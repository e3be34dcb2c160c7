//! The built-in box image: boot code, engine and element library, one program for machine and process.
#![no_std]
#![no_main]

runtime::image!(elements::REGISTRY);
