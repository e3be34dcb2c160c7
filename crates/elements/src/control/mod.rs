//! Scripts, sockets and the driver.

use element::Class;

mod drivermanager;
mod expansion;
mod functions;
mod instructions;
mod machine;
mod script;
mod scripted;
mod signals;
mod sprintf;

pub use drivermanager::DriverManager;
pub use script::Script;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[Class::of::<Script>(), Class::of::<DriverManager>()];
