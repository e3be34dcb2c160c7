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

/// The description of a handler, for the reference and the router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerInfo {
    /// Its name; a read and a write handler may share one.
    pub name: Cow<'static, str>,
    /// Its kind.
    pub kind: HandlerKind,
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
