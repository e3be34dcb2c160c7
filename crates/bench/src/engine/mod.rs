//! The engine on one core, alone or compared with another program that has Click's command line.
//!
//! Both programs read the same capture through the same configuration text: `FromDump(file) -> chain -> Discard`.
//! `FromDump(file) -> Discard` is measured in the same run, and the difference is the cost of the chain alone. So the
//! cost of reading packets does not distort the comparison.

mod class_table;
mod click_program;
mod comparison;
mod configuration;
mod example;
mod floor;
mod flow;
mod frame;
mod rules;
mod traffic;

pub use class_table::{ClassConfiguration, class_configurations, unmeasured_classes};
pub use click_program::{ClickProgram, RunError};
pub use comparison::{Comparison, ComparisonError, Figures, FloorFigures, PeerFigures, Row, Workbench};
pub use configuration::{Load, NoSource, has_element};
pub use example::{EXAMPLES, Example};
pub use traffic::{Capture, FrameSize, FrameSizeError, Traffic, TrafficError};
