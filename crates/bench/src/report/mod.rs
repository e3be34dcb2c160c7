//! Everything measured in one go, as a page beside the papers' figures.

mod all;
mod machine;
mod page;
mod papers;
mod plot;
mod summary;

pub use all::{Report, ReportScope, report};
pub use machine::Machine;
pub use page::page;
