//! The element library.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod flow;
pub mod lookup;

#[cfg(test)]
mod random;
