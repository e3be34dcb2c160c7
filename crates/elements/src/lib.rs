//! The element library: one ordered registry of the classes that five crates define.
//!
//! [`REGISTRY`] lists every class.
//!
//! Invariants, each held by a test that iterates the registry:
//! - names are unique, and a class's file is named after it, in the folder of its group;
//! - every class, argument and handler is documented;
//! - every example runs, and ends with the handler values that it states, at any batch size.
//!
//! Absent: elements. They are in five crates, which are built in parallel, so a change to an element rebuilds only a
//! part of the library.
#![no_std]
#![forbid(unsafe_code)]

use element::{Class, ClassDocumentation};

use flow_elements::{aggregation, classify, counting, lookup, rewriting};
use header_elements::{changing, ethernet, icmp, ip, transport};
use ipsec_elements::ipsec;
use trace_elements::{devices, trace};
use traffic_elements::{control, information, scheduling, shaping, sources, storing, switching, testing};

/// Every class, by group, in the order of the reference.
pub static REGISTRY: &[&[Class]] = &[
    &sources::CLASSES,
    &trace::CLASSES,
    &counting::CLASSES,
    &storing::CLASSES,
    &shaping::CLASSES,
    &scheduling::CLASSES,
    &switching::CLASSES,
    &changing::CLASSES,
    &classify::CLASSES,
    &ethernet::CLASSES,
    &ip::CLASSES,
    &lookup::CLASSES,
    &ipsec::CLASSES,
    &icmp::CLASSES,
    &transport::CLASSES,
    &rewriting::CLASSES,
    &aggregation::CLASSES,
    &information::CLASSES,
    &control::CLASSES,
    &devices::CLASSES,
    &testing::CLASSES,
];

/// The documentation of every class, in the order of [`REGISTRY`]. Only a program that shows it refers to it, so that
/// it is not in the image of a box.
pub static DOCUMENTATION: &[&[&ClassDocumentation]] = &[
    &sources::DOCUMENTATION,
    &trace::DOCUMENTATION,
    &counting::DOCUMENTATION,
    &storing::DOCUMENTATION,
    &shaping::DOCUMENTATION,
    &scheduling::DOCUMENTATION,
    &switching::DOCUMENTATION,
    &changing::DOCUMENTATION,
    &classify::DOCUMENTATION,
    &ethernet::DOCUMENTATION,
    &ip::DOCUMENTATION,
    &lookup::DOCUMENTATION,
    &ipsec::DOCUMENTATION,
    &icmp::DOCUMENTATION,
    &transport::DOCUMENTATION,
    &rewriting::DOCUMENTATION,
    &aggregation::DOCUMENTATION,
    &information::DOCUMENTATION,
    &control::DOCUMENTATION,
    &devices::DOCUMENTATION,
    &testing::DOCUMENTATION,
];

/// The documentation of the class of this name, which is not an alias.
pub fn documentation(name: &str) -> Option<&'static ClassDocumentation> {
    DOCUMENTATION.iter().copied().flatten().copied().find(|page| page.name == name)
}

/// The class called `name`, by its own name or an alias.
pub fn class(name: &str) -> Option<&'static Class> {
    REGISTRY.iter().flat_map(|group| group.iter()).find(|class| class.has_name(name))
}
