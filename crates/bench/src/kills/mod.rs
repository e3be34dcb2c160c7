//! Kills daemon, launcher and fabric at random moments of operations, and checks what is there afterwards against books
//! that are kept outside.
//!
//! Two clients run random operations and book what was acknowledged. Then processes are killed, while the clients go on
//! for a while. Sometimes the store is then turned into one of an earlier version, and the daemon that migrates it is
//! killed too. Afterwards the daemon must have exactly what the books say, with or without the one operation of each
//! client whose answer was missing or ambiguous.

mod books;
mod change;
mod definitions;
mod migration;
mod processes;
mod rebuild_event;
mod run;

pub use definitions::Definitions;
pub use migration::MigrationError;
pub(crate) use processes::{Processes, Victim};
pub(crate) use rebuild_event::{last_event, rebuild_ms, rebuilt};
pub use run::{KillPlan, Kills, KillsError, kills};
