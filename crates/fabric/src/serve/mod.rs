//! Carries out the orders of a daemon.

mod answer;
mod connection;

pub(crate) use connection::report;
pub use connection::serve;
