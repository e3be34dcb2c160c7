//! The contract between an element and the router that runs it.
//!
//! An element is a type with arguments ([`Args`]), handlers and packet processing: [`Filter`] for one packet in, one
//! verdict out; [`Element`] for everything else. [`Context`] is its only interface to the router.
//!
//! Invariants:
//! - an element is never called during another of its calls: what it emits is delivered after the call returns, depth
//!   first and in the order in which Click would push it;
//! - arguments are parsed before `new` runs, all or nothing;
//! - clocks, random numbers, files and devices come only from [`Environment`].
//!
//! Absent: the graph, scheduling and concrete elements.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
extern crate self as element;

pub mod arguments;
mod batch_limits;
mod class;
mod class_info;
mod clock;
mod context;
mod contract;
mod counting;
mod deferred;
mod driver;
mod drops;
mod element_state;
mod environment;
mod error;
mod fate;
mod fate_counters;
mod filter;
mod flow_states;
mod gathered;
mod handler;
mod handler_info;
mod memory_file;
mod names;
pub mod number_format;
mod other_name;
mod outputs;
mod random;
mod resources;
mod resting;
mod runtime;
mod shard;
mod signal;
mod tap;
pub mod text;
mod value_hint;
mod waiting;

pub use arguments::{Args, ArgumentGroup, Arguments, FromArgument, Setup};
pub use batch_limits::BatchLimits;
pub use class::{Class, UNKNOWN_CLASS};
pub use class_info::{
    ArgumentInfo, ClassDocumentation, ClassInfo, FlowUse, Notifies, Phase, ShardMode, Sharding,
};
pub use clock::Clock;
pub use context::Context;
pub use contract::{DynElement, Element, LongWork};
pub use counting::CountingElements;
pub use deferred::{Deferred, DeferredWrite};
pub use driver::Driver;
pub use drops::{DropCounters, UserReasons};
pub use element_derive::{Args, ArgumentGroup};
pub use element_state::{ElementDetails, ElementState};
pub use environment::{
    Datagrams, Descriptor, Device, DeviceRequest, EndOfFile, Environment, FileView, Interface, Io, IoError,
    Listener, NextHop, OtherShards, Reader, Socket, SocketAddress, SocketError, SocketRequest, Stream,
    Terminal, Writer,
};
pub use error::{HandlerError, Message, SetupError};
pub use fate::{Fate, FateCounts};
pub use fate_counters::FateCounters;
pub use filter::{Filter, Verdict};
pub use flow_states::{
    FlowKeeping, FlowState, FlowStates, FlowTuple, FlowTuples, ImportError, MAX_FLOW_STATE,
};
pub use gathered::{Gathering, MixedInput, Part, STEP_WITH_COPIES, Split};
pub use handler::{Handler, NumberedHandlers};
pub use handler_info::{HandlerInfo, HandlerKind, WriteEffect};
pub use memory_file::MemoryFile;
pub use names::{NameKind, Names};
pub use other_name::OtherName;
pub use outputs::Outputs;
pub use packet::steering::DividedRange;
pub use random::{AdditiveRandom, RandomSequence, SharedRandom};
pub use reason::Reason;
pub use resources::{Resources, SetupRemark};
pub use resting::Resting;
pub use runtime::{Elements, HandlerTarget, Handlers, Ports, Runtime, Scheduler, Signals, WRITE_STEP};
pub use shard::Shard;
pub use signal::{Direction, Signal, SignalCell};
pub use tap::LogTap;
pub use value_hint::value_hint;
pub use waiting::{QueueAge, Waiting};

/// The imports of an element's file.
pub mod prelude {
    pub use crate::{
        Args, ArgumentGroup, Class, Context, Element, Fate, Filter, FromArgument, Handler, HandlerError,
        NumberedHandlers, Reason, Setup, SetupError, Verdict, Waiting,
    };
    pub use alloc::{boxed::Box, format, rc::Rc, string::String, string::ToString, vec, vec::Vec};
    pub use packet::{Batch, Packet, Timestamp};
}

/// Compiles the finished example of the contributors' guide.
#[cfg(doctest)]
#[doc = include_str!("../../../CONTRIBUTING.md")]
struct Contributing;
