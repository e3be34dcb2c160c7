//! Replaces a daemon by another program, while boxes and traffic go on.
//!
//! A daemon that may be replaced starts a **helper** first, a process that keeps the rights to start programs. It also starts
//! launchers, if the daemon is to. When a client asks for the upgrade:
//!
//! 1. The helper has the new program describe itself; the daemon checks that it can take over.
//! 2. The daemon answers, closes its store, and gives its listening sockets to the helper. Clients that connect now wait
//!    in the sockets' queues.
//! 3. The helper starts the new program with the daemon's arguments and sockets, and waits until it is ready.
//! 4. The daemon ends. If the new program does not become ready, the daemon serves again instead.

mod description;
mod error;
mod handover;
mod helper;
mod messages;
mod serve;

pub use description::ProgramDescription;
pub use error::UpgradeError;
pub use handover::{Handover, HandoverError};
pub(crate) use handover::{Origin, Part};
pub use helper::UpgradeHelper;
pub use messages::HelperFailure;
pub use serve::{ServeStarts, serve_upgrades};
