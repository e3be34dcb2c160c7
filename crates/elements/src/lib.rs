//! The element library: a folder per group, a file per element.
//!
//! [`REGISTRY`] lists every class.
//!
//! Invariants, each held by a test that iterates the registry:
//! - names are unique, and a class's file is named after it, in the folder of its group;
//! - every class, argument and handler is documented;
//! - every example runs, and ends with the counters that it says, at any batch size.
//!
//! Absent: clocks, random numbers, files, devices and threads of its own; all come through the element's context.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use element::Class;

pub mod aggregation;
pub mod changing;
pub mod classify;
pub mod control;
pub mod counting;
pub mod devices;
pub mod ethernet;
pub mod icmp;
pub mod information;
pub mod ip;
pub mod lookup;
pub mod rewriting;
pub mod scheduling;
pub mod shaping;
pub mod sources;
pub mod storing;
pub mod switching;
pub mod testing;
pub mod trace;
pub mod transport;

/// Every class, by group, in the order of the reference.
pub static REGISTRY: &[&[Class]] = &[
    sources::CLASSES,
    trace::CLASSES,
    counting::CLASSES,
    storing::CLASSES,
    shaping::CLASSES,
    scheduling::CLASSES,
    switching::CLASSES,
    changing::CLASSES,
    classify::CLASSES,
    ethernet::CLASSES,
    ip::CLASSES,
    lookup::CLASSES,
    icmp::CLASSES,
    transport::CLASSES,
    rewriting::CLASSES,
    aggregation::CLASSES,
    information::CLASSES,
    control::CLASSES,
    devices::CLASSES,
    testing::CLASSES,
];

/// The class called `name`, by its own name or an alias.
pub fn class(name: &str) -> Option<&'static Class> {
    REGISTRY.iter().flat_map(|group| group.iter()).find(|class| class.is_called(name))
}
