//! What an element may know and say while it is made.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::environment::Environment;
use crate::names::Names;

/// What an element may know and say while it is made: before the others exist.
pub struct Setup<'a> {
    name: &'a str,
    ports: (usize, usize),
    names: &'a Names,
    environment: &'a dyn Environment,
    /// Warnings, for the caller to show.
    pub warnings: Vec<String>,
    /// Remarks, for the caller to show.
    pub notes: Vec<String>,
    /// Set by an element that acts on other elements while packets pass, so that the router handles one at a time.
    pub unbatched: bool,
    /// Whether the configuration is only being checked, so that warnings which cost time or would be new to users of
    /// Click are welcome.
    pub checking: bool,
    /// The threads that tasks may be assigned to; one runs them all.
    pub threads: usize,
}

impl<'a> Setup<'a> {
    /// For the element `name` with so many inputs and outputs.
    pub fn new(
        name: &'a str,
        ports: (usize, usize),
        names: &'a Names,
        environment: &'a dyn Environment,
    ) -> Setup<'a> {
        Setup {
            name,
            ports,
            names,
            environment,
            warnings: Vec::new(),
            notes: Vec::new(),
            unbatched: false,
            checking: false,
            threads: 1,
        }
    }

    /// The element's name.
    pub fn name(&self) -> &str {
        self.name
    }

    /// The compound element that it is in; empty for the outermost.
    pub fn scope(&self) -> &str {
        self.name.rsplit_once('/').map_or("", |(scope, _)| scope)
    }

    /// Connected inputs.
    pub fn inputs(&self) -> usize {
        self.ports.0
    }

    /// Connected outputs.
    pub fn outputs(&self) -> usize {
        self.ports.1
    }

    /// Names that information elements have defined.
    pub fn names(&self) -> &'a Names {
        self.names
    }

    /// The outside world.
    pub fn environment(&self) -> &'a dyn Environment {
        self.environment
    }

    /// Adds a warning: a fragment without the element's name.
    pub fn warn(&mut self, text: impl core::fmt::Display) {
        self.warnings.push(text.to_string());
    }
}
