//! Connections of an agent to controllers, over TCP.

mod connect;
mod pool;

pub use pool::{ConnectionFault, ConnectionState, ConnectionStatus, Connections, turn};
