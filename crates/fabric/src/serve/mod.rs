//! Carries out the orders of a daemon.

mod answer;
mod connection;

pub use connection::serve;
