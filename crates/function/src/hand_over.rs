//! How the state of a flow becomes bytes, and such bytes a state.

use alloc::vec::Vec;

use element::MAX_FLOW_STATE;

/// Bytes before those of the function: how long the flow would be remembered without packets, in nanoseconds.
pub(crate) const HEADER: usize = 8;

/// How an instance that is drained hands the state of a flow over to another one: as bytes.
#[derive(Clone, Copy, Debug)]
pub struct HandOver<S> {
    /// The version of the bytes. Change it with any change of the bytes or their meaning: an instance refuses other versions.
    pub version: u32,
    /// The bytes of a state, at most [`MAX_STATE_BYTES`]. A flow with more of them ends with its instance.
    pub export: fn(&S) -> Vec<u8>,
    /// The state with these bytes, which may be anything. `None` if they are not those of a state.
    pub import: fn(&[u8]) -> Option<S>,
}

/// The most bytes of the state of one flow.
pub const MAX_STATE_BYTES: usize = MAX_FLOW_STATE - HEADER;
