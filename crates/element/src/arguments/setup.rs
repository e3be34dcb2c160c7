//! The environment of an element during its creation.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::environment::Environment;
use crate::error::{Message, SetupError};
use crate::names::Names;
use crate::shard::Shard;

/// The environment of an element during its creation, before the other elements exist.
pub struct Setup<'a> {
    name: &'a str,
    ports: (usize, usize),
    names: &'a Names,
    environment: &'a dyn Environment,
    /// Warnings, to be shown by the caller.
    pub warnings: Vec<Message>,
    /// Notes, to be shown by the caller.
    pub notes: Vec<String>,
    /// Set by an element that acts on other elements while packets pass. The router then processes one packet at a
    /// time.
    pub unbatched: bool,
    /// Set by an element that writes to the log for each packet. If others may write there while packets pass
    /// ([`ClassInfo::logs`](crate::ClassInfo::logs)), the router processes one packet at a time.
    pub logs_packets: bool,
    /// Set by an element that writes lines to a file to which others may write, too. If another one names the same file, the
    /// router processes one packet at a time, so that the lines come in the order in which packets pass.
    pub line_file: Option<String>,
    /// Whether the configuration is only checked. Elements may then give warnings that are expensive to find, or that
    /// Click does not give.
    pub checking: bool,
    /// The number of threads that tasks may be assigned to. One thread runs them all.
    pub threads: usize,
    /// The shard that the element is in.
    pub shard: Shard,
}

impl<'a> Setup<'a> {
    /// For the element `name` with the given numbers of inputs and outputs.
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
            logs_packets: false,
            line_file: None,
            checking: false,
            threads: 1,
            shard: Shard::ONLY,
        }
    }

    /// The element's name.
    pub fn name(&self) -> &str {
        self.name
    }

    /// The compound element that contains it; empty at the top level.
    pub fn scope(&self) -> &str {
        self.name.rsplit_once('/').map_or("", |(scope, _)| scope)
    }

    /// Number of connected inputs.
    pub fn inputs(&self) -> usize {
        self.ports.0
    }

    /// Number of connected outputs.
    pub fn outputs(&self) -> usize {
        self.ports.1
    }

    /// Names defined by information elements.
    pub fn names(&self) -> &'a Names {
        self.names
    }

    /// The environment.
    pub fn environment(&self) -> &'a dyn Environment {
        self.environment
    }

    /// Fails if there are several shards, because `what` needs one.
    pub fn require_one_shard(&self, what: &str) -> Result<(), SetupError> {
        match self.shard.count {
            0 | 1 => Ok(()),
            count => Err(SetupError::new(format!("{what} needs one shard, but there are {count}"))),
        }
    }

    /// Adds a warning: text without the element's name.
    pub fn warn(&mut self, text: impl core::fmt::Display) {
        self.warnings.push(Message::Other(text.to_string()));
    }

    /// Adds a warning about an argument that is written as `argument`.
    pub fn warn_about(&mut self, argument: &str, text: impl core::fmt::Display) {
        self.warnings.push(Message::in_argument(argument, &text, &text));
    }
}
