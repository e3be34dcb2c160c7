//! The Click language: parses text to a lossless tree, and compiles it to diagnostics and a flat graph.
//!
//! - [`compile()`] turns a configuration into a [`Graph`] of elements and connections, without compounds, groups,
//!   variables or libraries, and reports all errors, not only the first.
//! - [`tree::Tree`] is the text as written, including comments: printing it reproduces the text byte for byte.
//! - [`format()`] formats a configuration; [`flatten()`] prints a graph as a configuration.
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
//! Differences from Click:
//!
//! - `provide` is supported;
//! - a variable with an empty value is substituted even if it is the whole text;
//! - messages about the use of a compound element give the location of the use, not the end of the file;
//! - if a compound class extends another class with `...`, Click first tries an empty overload; this crate does not;
//! - messages about unknown names suggest similar names;
//! - a text that starts like a binary file, with a NUL or many control characters, is refused with one error.
//!
//! Invariants: no input causes a panic, an endless run, or memory use beyond [`Limits`]. The crate has no dependencies,
//! does no input or output, and knows no element class: the caller defines which names are classes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod argument_finder;
mod binary;
mod class;
mod compilation;
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
mod lines;
mod location;
mod lower;
mod options;
mod parser;
mod rewrite;
mod source;
pub mod steps;
mod suggest;
pub mod tree;
mod tunnel;
mod variables;

pub use argument_finder::ArgumentFinder;
pub use compile::{Compiled, compile, compile_in_steps};
pub use diagnostics::{Diagnostic, Severity, in_parts, limited, plain_quotes};
pub use flatten::flatten;
pub use format::format;
pub use graph::{Connection, Element, Graph, Port, Requirement};
pub use limits::Limits;
pub use location::Location;
pub use options::{Library, Options, Reader};
pub use rewrite::{RewriteError, rewrite};
pub use suggest::nearest;
