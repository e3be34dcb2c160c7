//! The kinds of sandboxes.

/// A kind of sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SandboxKind {
    /// A virtual machine.
    Vm,
    /// A process.
    Process,
}
