//! The Click language: text to a lossless tree, to diagnostics, to a flat graph.
//!
//! - [`compile()`] turns a configuration into a [`Graph`] of elements and connections, without compounds, groups,
//!   variables or libraries, and reports everything that is wrong with it, not only the first thing.
//! - [`tree::Tree`] is the text as written, comments and all: printing it gives back the text byte for byte.
//! - [`format()`] lays a configuration out anew; [`flatten()`] prints a graph as a configuration.
//!
//! ```
//! let is_class = |name: &str| ["Idle", "Counter", "Discard"].contains(&name);
//! let compiled = click_lang::compile(
//!     "elementclass Watch { -> c :: Counter -> }  Idle -> w :: Watch -> Discard",
//!     &click_lang::Options::new("example.click", &is_class),
//! );
//! assert!(!compiled.has_errors());
//! let names: Vec<_> = compiled.graph.elements.iter().map(|element| element.name.as_str()).collect();
//! assert_eq!(names, ["Idle@1", "Discard@3", "w/c"]);
//! ```
//!
//! Differences from Click: `provide` is understood; a variable whose value is empty is replaced also where it is the
//! whole text; messages about a compound's use name the place of the use, not the end of the file; the class that
//! `...` extends is tried without an empty compound before it; unknown names are followed by a hint.
//!
//! Invariants: no input makes anything here panic, run without end or take memory beyond [`Limits`]. The crate
//! depends on nothing, does no input or output, and knows no element class: the caller says which names are classes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod class;
mod compile;
pub mod config;
mod connect;
mod diagnostics;
mod expand;
mod flatten;
mod format;
mod graph;
mod lexer;
mod limits;
mod location;
mod lower;
mod parser;
mod source;
mod suggest;
pub mod tree;
mod tunnel;
mod variables;

pub use compile::{Compiled, Library, Options, Reader, compile};
pub use diagnostics::{Diagnostic, Severity, plain_quotes};
pub use flatten::flatten;
pub use format::format;
pub use graph::{Connection, Element, Graph, Port, Requirement};
pub use limits::Limits;
pub use location::Location;
pub use suggest::nearest;
