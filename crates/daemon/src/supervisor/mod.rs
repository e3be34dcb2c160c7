//! What can be asked of the daemon: each operation of the API is a method of [`Supervisor`].

mod boot;
mod boxes;
mod check;
mod configurations;
mod confirm;
mod core;
mod difference;
mod end;
mod handlers;
mod life;
mod rate_meter;
mod restore;
mod stacks;
mod status;
mod streams;
mod switches;
mod template;
mod throttle;
mod watch;

pub use core::{StartError, Supervisor};
pub(crate) use streams::{Capture, Follow};
pub(crate) use throttle::Budget;
