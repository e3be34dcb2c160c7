//! Network functions in Rust: a type that processes batches of packets, with state for each flow, timers, handlers and
//! messages.
//!
//! A [`Function`] is an element with a simpler interface: [`classes!`] registers it under its class name, so that
//! configurations use it like any other element. An image that has nothing else to do needs no configuration text: see
//! `guest/runtime`. [`Simulation`] runs a function on a capture, in simulated time, for its tests.
//!
//! Invariants:
//! - A function that keeps a packet, drops one or makes one says so to its [`Call`]; every other packet leaves.
//! - The state of flows is bounded, whatever packets arrive.
//! - Nothing here needs an operating system: the same code runs in a box, in a plain process and in a test.
//!
//! Absent: everything that elements with several inputs, pull ports, tasks or descriptors need. Implement
//! [`element::Element`] for those.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod call;
mod contract;
mod flow_key;
mod flow_limits;
mod flows;
mod hand_over;
mod simulation;
mod states;

pub use call::Call;
pub use contract::{Function, Running};
pub use flow_key::FlowKey;
pub use flow_limits::FlowLimits;
pub use flows::Flows;
pub use hand_over::{HandOver, MAX_STATE_BYTES};
pub use simulation::{Finished, Simulation, Started};

#[doc(hidden)]
pub use element as element_crate;

/// The imports of a function's file. `Args` derives the arguments from a struct.
pub mod prelude {
    pub use crate::{Call, FlowKey, FlowLimits, Flows, Function, HandOver, Running};
    pub use alloc::{format, string::String, string::ToString, vec::Vec};
    pub use core::time::Duration;
    pub use element::{Args, Handler, HandlerError, Setup, SetupError, Waiting};
    pub use packet::{Batch, Packet, Timestamp};
}

/// Registers functions: defines `CLASSES`, the classes of a registry.
#[macro_export]
macro_rules! classes {
    ($($function:ty),* $(,)?) => {
        /// The classes of these functions.
        pub static CLASSES: [$crate::element_crate::Class; [$(stringify!($function)),*].len()] =
            [$($crate::element_crate::Class::of::<$crate::Running<$function>>()),*];
    };
}
