//! The connections of functions that attach themselves to services.

mod connection;
mod listener;
mod state_calls;

pub(crate) use connection::{Attached, Connection, Received, Sending};
pub(crate) use listener::Listener;
pub(crate) use state_calls::{StateCallError, StateCalls};
