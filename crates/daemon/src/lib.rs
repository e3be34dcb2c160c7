//! The daemon: supervises boxes and switches, stores their definitions, serves the API.
//!
//! Three layers. The [`Supervisor`] is synchronous and knows no HTTP: each operation of the API is a method of it,
//! which may be called from any thread. Below it are the `fabric`, one thread that moves packets between boxes,
//! switches and devices, the boxes with the thread that watches them, and the store. Above it is the `server`, which
//! routes requests to methods and waits for them off its own threads.
//!
//! Invariants:
//! - Nothing of the engine is linked: an element's bug can't reach this process. Configurations are checked by a
//!   sandboxed box that is thrown away.
//! - An operation that fails has changed nothing: neither the store nor what runs.
//! - What a box says is data. Texts of it are escaped before they are kept; none becomes a path, a command or a name.
//! - A packet never waits for an operation, nor for whoever captures it.
//!
//! Absent on purpose: what elements and configurations mean; files of the API's callers.

#![forbid(unsafe_code)]

mod boxes;
mod error;
mod escape;
mod fabric;
mod history;
mod host;
mod journal;
mod limits;
mod processors;
mod server;
mod settings;
mod store;
mod supervisor;

pub use error::{OperationError, PortError, RequestError};
pub use server::{Address, ListenError, RunError, Tcp, TlsError, run};
pub use settings::Settings;
pub use store::StoreError;
pub use supervisor::{StartError, Supervisor};
