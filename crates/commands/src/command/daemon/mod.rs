//! `clickbox daemon`: runs the daemon, and stops it.

mod paths;
mod run;
mod stop;

pub(crate) use run::{Arguments, run};
