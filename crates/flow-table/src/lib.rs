//! OpenFlow's pipeline of flow tables, and an exact-match cache in front of it.
//!
//! [`Key::read`] reads the match fields of a frame. A [`Pipeline`] holds up to 64 tables of flow entries and finds the
//! entries that a key matches: its [`Path`]. A [`FlowCache`] remembers the path of each key. [`perform()`] performs the
//! [`Operation`]s of a path on a frame, among them [`Groups`] and [`Meters`]. Section numbers refer to the OpenFlow Switch Specification 1.3.5 (ONF TS-023).
//!
//! ```text
//! frame ─▶ Key::read ─▶ Fragments::resolve ─▶ FlowCache::look_up ──hit──▶ Path: counters, operations ─▶ perform
//!                                                     │ miss                ▲
//!                                                     └──▶ Pipeline ────────┘
//! ```
//!
//! Invariants, each held by a test:
//! - a lookup through the cache gives the same path as a linear search of all entries, after any sequence of changes;
//! - a change of the entries recomputes only cached keys whose decision it concerns (see [`FlowCache`]);
//! - packets found in the cache count in the counters of their entries, and keep entries from their idle timeouts;
//! - the frame that operations make has the key with which the pipeline continued, and checksums as right as before;
//! - no frame makes this crate panic or read beyond the frame;
//! - the memory of a pipeline and of a cache has a bound, which is checked before it is allocated.
//!
//! Absent: outputs (see [`Effects`]), texts (see `flow-expression`), messages of the OpenFlow protocol,
//! threads, clocks and random sources. Times and seeds are arguments. Threads may share a [`TokenBucket`], but neither a
//! pipeline nor a cache.
#![forbid(unsafe_code)]

mod action;
mod action_set;
mod cache;
mod change;
mod crc32c;
mod exact;
mod extension_headers;
mod extract;
mod field;
mod flow_tuple;
mod fragments;
mod group;
mod handle_index;
mod key;
mod layout;
mod locate;
mod matching;
mod meter;
mod path;
mod perform;
mod pipeline;
pub mod port_number;
mod table;
mod token_bucket;
mod tuple;

pub use action::{Action, ActionError, Instructions, Operation, Output};
pub use action_set::ActionSet;
pub use cache::{BATCH, CacheCapacity, CacheCounters, FlowCache};
pub use change::{
    Change, Command, EntryFlags, FlowModError, FlowRemoved, NOT_COUNTED, Owner, RemovalReason, Summary,
};
pub use extract::{Arrival, Fragment, Ingress};
pub use field::Field;
pub use flow::Seed;
pub use flow_tuple::{FlowEnd, FlowTuple, FlowWords};
pub use fragments::{FragmentCounters, Fragments};
pub use group::{Bucket, Group, GroupContext, GroupCounters, GroupError, GroupType, Groups, MAX_GROUPS};
pub use handle_index::HandleIndex;
pub use key::Key;
pub use matching::{Match, MatchError};
pub use meter::{
    Band, BandType, MAX_BANDS, MAX_METERS, Meter, MeterCounters, MeterDefinition, MeterError, Meters,
};
pub use path::{Path, PathId, Performer, Program, Resume};
pub use perform::{Effects, FrameBuffer, MeterVerdict, OutputState, Performed, perform};
pub use pipeline::{Entry, Limits, Pipeline, TABLES, TableCounters};
pub use token_bucket::TokenBucket;
