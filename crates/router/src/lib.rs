//! A running graph of elements: checks, tasks, timers, signals, handlers and hot swap.
//!
//! [`Router::new`] takes a flat graph and a registry of classes. [`Router::run`] drives the router; [`Router::turn`]
//! does so one turn at a time. Invariants:
//! - packets are delivered depth first, in Click's order, at any batch size;
//! - an element is never called during another of its calls;
//! - a swap to a new configuration is atomic: it succeeds as a whole or changes nothing;
//! - with a simulated clock, a run is deterministic and never waits.
//!
//! Absent: concrete elements; files, devices and clocks, which the environment provides.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod account;
mod accounting;
mod arrivals;
mod build;
mod check;
mod configure_order;
mod connection;
mod counts;
mod deliver;
mod diagnostics;
mod flow_states;
mod handlers;
mod hooks;
mod hookup;
mod join;
mod long_writes;
mod merge;
mod node;
mod options;
mod order;
mod own_writes;
mod pace;
mod parts;
mod ports;
mod predecessors;
mod preparation;
mod processing;
mod registry;
mod relays;
mod removal;
mod router;
mod runtime;
mod schedule;
mod sharding;
mod signals;
mod sole_neighbour;
mod standard;
mod state;
mod steering_filter;
mod step_sizes;
mod swap;
mod take_turns;
mod timers;
mod turn;

pub use account::{Account, DiscardedBy, ElementAccount, Loss, Totals};
pub use check::{check, check_for_shard};
pub use flow_states::{FlowPosition, ListedFlows};
pub use long_writes::{BegunWrite, LongWrite};
pub use merge::Merge;
pub use options::{DEFAULT_BATCH, Options};
pub use own_writes::OwnWrite;
pub use packet::steering::{Destination, Steering};
pub use registry::Registry;
pub use router::{ROUTER_VERSION, Router, RunEnd, Written};
pub use steering_filter::steering_filter;
pub use swap::{PreparedSuccessor, Successor, Swap};
pub use turn::Turn;
