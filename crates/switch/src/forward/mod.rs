//! Where frames go: one contract, one file for each way.

mod contract;
mod learning;
mod static_table;

pub use contract::{Decision, Forward};
pub use learning::{LearningBridge, LearningSettings};
pub use static_table::{StaticTable, TableError};
