//! Boxes as processes: the kernel executes the same image, with access to nothing but its own memory.
//!
//! A helper process of the host, the spawner, creates them, in their own namespaces. A process inherits descriptors of the
//! shared region, of the event for its mailbox and, if present, of a wake event, a shared packet pool and a snapshot. The image uses them, closes all but the two events, and installs the
//! filter in the shared region. The remaining system calls are for sleeping, yielding, signalling the events and exiting.

mod filter;
mod isolation;
mod process_backend;
mod program;
mod snapshot;
mod spawner;

pub use isolation::{Isolation, Layer, MissingLayer};
pub(crate) use process_backend::ProcessBackend;
pub(crate) use program::{Program, image_file, region_file};
pub use spawner::Forker;

#[cfg(test)]
mod inside;
