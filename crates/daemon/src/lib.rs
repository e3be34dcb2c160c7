//! The daemon: supervises boxes and switches, stores their definitions, and serves the API.
//!
//! It has three layers:
//! - The [`Supervisor`] is synchronous and knows no HTTP. Each operation of the API is a method, which any thread may
//!   call.
//! - Below it are the `fabric` (one thread that moves packets between boxes, switches and devices), the boxes with the
//!   thread that watches them, and the store.
//! - Above it is the `server`, which routes requests to methods and waits for them off its own threads.
//!
//! Invariants:
//! - The engine is not linked, so a bug in an element cannot affect this process. Configurations are checked in
//!   temporary boxes.
//! - A failed operation changes nothing, neither in the store nor in running boxes and switches.
//! - Data from a box is not trusted. Its texts are escaped before they are stored, and never become a path, a command
//!   or a name.
//! - A packet never waits for an operation or for the reader of a capture.
//!
//! Absent on purpose: the meaning of elements and configurations; the files of API clients.

#![forbid(unsafe_code)]

// The helpers of tests name this crate as other crates do.
#[cfg(test)]
extern crate self as daemon;

mod audit;
mod caller;
mod error;
mod fabric;
mod file_system;
mod filter;
mod history;
mod host;
mod journal;
mod limits;
mod news;
mod owners;
mod server;
mod service_error;
mod settings;
mod store;
mod supervisor;
mod symbols;
#[cfg(test)]
#[path = "../tests/support/thread_fabric.rs"]
mod thread_fabric;
mod upgrade;

pub use api::{Subject, escape::EscapedText};
pub use audit::AuditError;
pub use caller::{Caller, User};
pub use error::{AccessError, OperationError, PortError, RequestError};
pub use fabric::{Connector, LauncherConnection, LauncherConnector};
pub use file_system::FileSystem;
pub use filter::{ConfineError, confine};
pub use server::{
    Address, ListenError, Listeners, NewUser, RunError, SecretError, Tcp, TlsError, TokensError, add_user,
    open_secret, run, users,
};
pub use service_error::ServiceError;
pub use settings::Settings;
pub use store::StoreError;
pub use supervisor::{StartError, Supervisor};
pub use symbols::SymbolFile;
pub use upgrade::{
    Handover, HandoverError, HelperFailure, ProgramDescription, ServeStarts, UpgradeError, UpgradeHelper,
    serve_upgrades,
};
