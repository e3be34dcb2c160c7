//! The user-space switch: it connects boxes, devices, capture files and other switches.
//!
//! It has three layers, each tested without the one above it:
//! - a [`Forward`] decides where a frame goes;
//! - a [`Switch`] applies these decisions to batches, counts frames, and enforces rate limits;
//! - a [`SwitchRunner`] moves batches between a switch and its ports' [`Driver`]s, and sleeps when there is no work.
//!
//! A [`BoxPipe`] connects two boxes without a switch. [`Captures`] copy the frames that pass a port.
//!
//! Invariants:
//! - [`Forward`] and [`Switch`] do no I/O and read no clock: callers pass the time.
//! - The bytes of a frame on which a decision depends are copied before they are read, so a box cannot change them
//!   between check and use.
//! - A flow delivers to the port that it names, never to another one that got its number.
//! - Every received frame is either sent or counted under a drop reason, at its source or its destination port.
//! - The cost of a port is bounded: frames per visit, addresses in the table, frames and bits per second.
//!
//! Absent on purpose: virtual LANs, spanning tree, and flows as text.

#![allow(unsafe_code, reason = "system calls, and rings that the kernel shares")]

mod addresses;
mod allocator;
mod attention;
mod batch;
mod books;
mod box_pipe;
mod counters;
pub mod device;
mod direct;
pub mod driver;
#[cfg(test)]
#[path = "../tests/support/even.rs"]
mod even;
mod forward;
#[cfg(any(test, fuzzing))]
mod hostile;
mod huge_pages;
mod link;
mod made;
mod mapped_file;
pub mod name_services;
mod plan;
mod port;
mod port_capture;
mod port_config;
mod rate_limiter;
mod runner;
mod shards;
mod silence;
mod source_guard;
mod switch;
mod switch_port;

/// Entry points of the fuzz targets.
#[cfg(fuzzing)]
pub mod fuzzing {
    pub use crate::hostile::device_frame;
}

pub use allocator::keep_freed_memory;
pub use batch::{Batch, FrameMark, MAX_FRAME, SplitFrame, UnreadFrame};
pub use books::{LinkBooks, PortBooks, RingBooks, SwitchBooks};
pub use box_pipe::BoxPipe;
pub use counters::{Counters, REASONS};
pub use driver::{Driver, DriverError};
pub use flow_table::{
    CacheCapacity, CacheCounters, Field, FlowEnd, FlowTuple, FragmentCounters, Match, MatchError,
    RemovalReason, TableCounters, TokenBucket,
};
pub use forward::{
    ChainBooks, ChainCounters, ChainPlan, Chains, ChainsPlan, ControlError, ControllerPacket, Decision,
    DestinationPlan, EndedFlow, FailMode, Flow, FlowError, FlowOutput, FlowStatus, Forward, ForwardingMode,
    FrameHead, HopCounters, HostPair, InstancePlan, InstanceStatus, LearningBridge, LearningSettings,
    MAX_HEADS, MAX_HOPS, MAX_SLOTS, MappingPlan, Outcome, OverruledAnswers, PacketOutStep, PacketReason,
    PortKey, RangePlan, RefusedTuples, RemovedInstances, ServicePlan, StaticTable, Steering,
    SteeringSettings, SteeringShards, TableError, Target, TranslationPlan,
};
pub use huge_pages::flow_cache;
pub use link::{BoxLink, Link, PIPE_RINGS};
pub use made::MadeFrames;
pub use mapped_file::MappedFile;
pub use packet::MacAddr;
pub use plan::ForwardingPlan;
pub use port::{PortId, PortSettings};
pub use port_capture::{Capture, CaptureSink, CapturedDriver, Captures, Delivery};
pub use port_config::PortConfig;
pub use rate_limiter::{RateLimit, RateLimiter};
pub use reason::Reason;
pub use runner::{PortCost, SwitchRunner, wait, wait_shared};
pub use shards::{Shards, Spread};
pub use silence::Progress;
pub use source_guard::SourceGuard;
pub use switch::{MAX_PORTS, Switch, SwitchError};
