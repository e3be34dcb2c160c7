//! The API over HTTP: routes requests to the supervisor's methods, and waits for them off its own threads.

mod admission;
mod authorization;
mod connection;
mod listen;
mod metrics;
mod request;
mod respond;
mod routes;
mod run;
mod service_manager;
mod shutdown;
mod stream;
mod tls;
mod write_timeout;

pub use listen::ListenError;
pub use run::{Address, RunError, run};
pub use tls::{Tcp, TlsError};
