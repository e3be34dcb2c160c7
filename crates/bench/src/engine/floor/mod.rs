//! The floor: hand-written loops that do the jobs of some examples without an engine. They show what the machine could do.

mod addresses;
mod firewall;
mod frames;
mod header;
mod job;
mod router;

pub(super) use job::Job;
