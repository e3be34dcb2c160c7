//! Descriptions of handlers: data without code.

use alloc::borrow::Cow;

/// The kind of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerKind {
    /// Returns a value.
    Read,
    /// Returns a value for a parameter.
    ReadWithParameter,
    /// Takes a value.
    Write,
}

/// What a successful write to a handler changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteEffect {
    /// Counters or the state, or it acts once: nothing that the configuration says.
    #[default]
    Action,
    /// A value of the configuration, as an argument does. A later write to the same handler replaces it.
    Setting,
    /// An entry of the configuration, such as one route. Writes add up, so their order counts.
    Edit,
}

/// The description of a handler, for the reference and the router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerInfo {
    /// Its name; a read and a write handler may share one.
    pub name: Cow<'static, str>,
    /// Its kind.
    pub kind: HandlerKind,
    /// What a write changes; `Action` for a read handler.
    pub effect: WriteEffect,
    /// Whether reading it is cheap and has no side effects, so that a monitor may read it often.
    pub calm: bool,
    /// Whether only the configuration itself may call it, not control connections or the command line.
    pub hidden: bool,
    /// One sentence.
    pub summary: &'static str,
}

impl HandlerInfo {
    /// Whether this is a read handler; a write handler may have the same name.
    pub fn is_read(&self) -> bool {
        self.kind != HandlerKind::Write
    }
}
