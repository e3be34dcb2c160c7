//! The engine on one core, alone or beside another program with Click's command line.
//!
//! Both programs read the same capture through the same configuration text: `FromDump(file) -> chain -> Discard`.
//! `FromDump(file) -> Discard` is measured in the same run; what a configuration takes beyond it is the cost of its
//! chain alone. So the cost of reading packets flatters neither program.

mod click_program;
mod comparison;
mod configuration;
mod example;
mod flow;
mod frame;
mod rules;
mod traffic;

pub use click_program::{ClickProgram, RunError};
pub use comparison::{Comparison, ComparisonError, Figures, PeerFigures, Row, Workbench};
pub use configuration::{Load, has_element};
pub use example::{EXAMPLES, Example};
pub use traffic::{Capture, FrameSize, Traffic, TrafficError};
