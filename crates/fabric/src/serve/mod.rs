//! Carries out the orders of a daemon.

mod agent;
mod answer;
mod connection;
mod controller_reports;

pub use agent::serve_agent;
pub(crate) use connection::report;
pub use connection::serve;
