//! How much of a graph is handled in one step, where a configuration is prepared or freed in steps.

/// Elements that are handled in a step. Each takes about a microsecond.
pub(crate) const ELEMENTS_A_STEP: usize = 16;
/// Connections that are handled in a step.
pub(crate) const CONNECTIONS_A_STEP: usize = 128;
