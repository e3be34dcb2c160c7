//! The memory functions that compiled code calls and that this target's library lacks.
//!
//! `no_builtins` keeps the compiler from turning these loops into calls of themselves. Short copies use whole vector
//! registers that may overlap; long ones use the processor's string instructions, which win from about 1 KB.
#![no_std]
#![no_builtins]

mod compare;
mod copy;
mod fill;

/// Makes sure that the functions are linked.
pub fn link() {}
