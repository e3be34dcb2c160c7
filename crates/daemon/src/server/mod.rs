//! The API over HTTP: routes requests to the supervisor's methods, and waits for them off its own threads.

mod admission;
mod authorization;
mod connection;
mod error;
mod files;
mod gate;
mod handlers;
mod listen;
mod listeners;
mod memory;
mod metrics;
mod next_request;
mod plain_words;
mod private;
mod record;
mod request;
mod respond;
mod routes;
mod run;
mod service_manager;
mod service_metrics;
mod services;
mod shutdown;
mod stacks;
mod stream;
mod tls;
mod tokens;
mod uploads;
mod write_timeout;

pub use error::RunError;
pub use listen::ListenError;
pub use listeners::Listeners;
pub use private::{SecretError, open_secret};
pub use run::{Address, run};
pub use tls::{Tcp, TlsError};
pub use tokens::{NewUser, TokensError, add_user, users};
