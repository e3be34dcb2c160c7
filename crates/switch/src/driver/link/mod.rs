//! `link`: connects two switches in different processes that do not trust each other.

mod error;
mod memory;
mod port;

pub use error::LinkError;
pub use port::LinkPort;
