//! Boxes as processes: the same image, executed by the kernel, with nothing left but its own memory.
//!
//! The child is made without copying this process (it borrows its memory until it executes the image), in
//! namespaces of its own. It inherits descriptors of the area and, where there are such, of a bell, a shared packet pool
//! and a snapshot. The image uses them, closes all but the bell, and installs the filter that lies in the area: sleep,
//! give way, ring, end are the calls that remain.

mod child;
mod copy;
mod filter;
mod program;
mod spawn;

pub(crate) use child::Child;
pub(crate) use program::{Program, area_file};
pub use spawn::SetupError;
