//! Boxes as processes: the kernel executes the same image, with access to nothing but its own memory.
//!
//! The child is created without copying this process (it borrows its memory until it executes the image), in its own
//! namespaces. It inherits descriptors of the shared region, of the event for its mailbox and, if present, of a wake
//! event, a shared packet pool and a snapshot. The image uses them, closes all but the two events, and installs the
//! filter in the shared region. The remaining system calls are for sleeping, yielding, signalling the events and exiting.

mod filter;
mod process_backend;
mod program;
mod snapshot;
mod spawn;

pub(crate) use process_backend::ProcessBackend;
pub(crate) use program::{Program, region_file};
