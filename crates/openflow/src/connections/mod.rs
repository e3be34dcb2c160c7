//! Connections between an agent and controllers, over TCP, with or without TLS.

mod certificates;
mod connect;
mod controller;
mod endpoint;
mod fault;
mod peer;
mod pool;
mod stream;

pub use certificates::{Certificates, CertificatesError};
pub use endpoint::{Endpoint, Transport};
pub use fault::ConnectionFault;
pub use pool::{ConnectionState, ConnectionStatus, Connections, turn};
