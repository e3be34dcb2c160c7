//! The contract between an element and the router that runs it.
//!
//! An element is a type with arguments ([`Args`]), handlers and a part of the packet path: [`Filter`] for one packet
//! in, one verdict out; [`Element`] for everything else. It sees the world through [`Context`] only.
//!
//! Invariants:
//! - an element is never called while one of its calls is under way: what it emits is delivered after it has returned,
//!   depth first and in the order in which Click would have pushed it;
//! - arguments are parsed before `new` runs, all or nothing;
//! - no clock, no random numbers, no files, no devices but those that [`Environment`] gives.
//!
//! Absent: the graph, scheduling and any concrete element.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
extern crate self as element;

pub mod arguments;
mod class;
mod context;
mod contract;
mod environment;
mod error;
mod filter;
mod handler;
pub mod iana;
mod names;
pub mod number_format;
mod outputs;
mod random;
mod runtime;
pub mod services;
mod signal;
mod tap;
pub mod text;

pub use arguments::{Args, ArgumentGroup, Arguments, FromArgument, Setup};
pub use class::{ArgumentInfo, Class, ClassDocumentation, ClassInfo, Notifies, Phase, UNKNOWN_CLASS};
pub use context::Context;
pub use contract::{DynElement, Element};
pub use element_derive::{Args, ArgumentGroup};
pub use environment::{
    Datagrams, Descriptor, Device, DeviceRequest, EndOfFile, Environment, Interface, Io, IoError, Listener,
    Reader, Socket, SocketAddress, SocketError, SocketRequest, Stream, Terminal, Writer,
};
pub use error::{HandlerError, Message, SetupError};
pub use filter::{Filter, Verdict};
pub use handler::{Handler, HandlerInfo, HandlerKind, Numbered};
pub use names::{NameKind, Names};
pub use outputs::Outputs;
pub use random::AdditiveRandom;
pub use reason::Reason;
pub use runtime::{HandlerTarget, Runtime};
pub use signal::{Direction, Signal, SignalCell};
pub use tap::LogTap;

/// What an element's file needs, in one line.
pub mod prelude {
    pub use crate::{
        Args, ArgumentGroup, Class, Context, Element, Filter, FromArgument, Handler, HandlerError, Numbered,
        Reason, Setup, SetupError, Verdict,
    };
    pub use alloc::{boxed::Box, format, rc::Rc, string::String, string::ToString, vec, vec::Vec};
    pub use packet::{Batch, Packet, Timestamp};
}

/// The finished example of the guide for contributors must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../CONTRIBUTING.md")]
struct Contributing;
