//! `clickbox daemon`: runs the daemon, and stops it.

mod paths;
mod run;
mod share;
mod stop;

pub(crate) use run::{Arguments, run};
