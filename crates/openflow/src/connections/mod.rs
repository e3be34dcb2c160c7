//! Connections of an agent to controllers, over TCP.

mod address;
mod connect;
mod pool;

pub use address::{ControllerAddress, ControllerAddressError, DEFAULT_PORT};
pub use pool::{ConnectionFault, ConnectionState, ConnectionStatus, Connections, turn};
