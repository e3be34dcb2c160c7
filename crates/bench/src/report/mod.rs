//! All measurements in one page, compared with the papers' figures.

mod all;
mod machine;
mod page;
mod papers;
mod plot;
mod summary;

pub use all::{Report, ReportScope, report};
pub use machine::Machine;
pub use page::page;
