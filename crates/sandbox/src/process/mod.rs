//! Boxes as processes: the same image, executed by the kernel, with nothing left but its own memory.
//!
//! The child is made without copying this process (it borrows its memory until it executes the image), in
//! namespaces of its own. It inherits descriptors of the area and, where there are such, of a bell, a shared packet pool
//! and a snapshot. The image uses them, closes all but the bell, and installs the filter that lies in the area: sleep,
//! give way, ring, end are the calls that remain.

mod filter;
mod process_backend;
mod program;
mod snapshot;
mod spawn;

pub(crate) use process_backend::ProcessBackend;
pub(crate) use program::{Program, region_file};
