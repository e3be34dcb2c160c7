//! The connections of functions that attach themselves to services.

mod connection;
mod listener;

pub(crate) use connection::{Attached, Connection, Received, Sending};
pub(crate) use listener::Listener;
