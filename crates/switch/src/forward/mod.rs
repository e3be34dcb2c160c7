//! Forwarding: decides where a frame goes. One contract, and one file per method.

mod contract;
mod learning;
mod mode;
mod static_table;

pub use contract::{Decision, Forward};
pub use learning::{LearningBridge, LearningSettings};
pub use mode::ForwardingMode;
pub use static_table::{StaticTable, TableError};
