//! The spawner: a helper process that creates the processes of boxes, and that they inherit their isolation from.
//!
//! [`Spawner`] is the host's side. It starts the helper and asks it for processes; a [`BoxProcess`] is one of them. The
//! helper is forked from the host and runs [`helper`] only: system calls on its own stack, without allocation, locks or
//! any other state of the host. It is the parent of its boxes and keeps a process that has ended until the host has asked
//! how it ended, so the id of a box belongs to no other process before.
//!
//! A host whose own system calls are to be restricted forks a [`Forker`] before, which starts helpers in its place.

mod box_process;
mod capabilities;
mod cgroup;
mod client;
mod exec;
mod filter;
mod forker;
mod helper;
mod launch;
mod layers;
mod link;
mod message;
mod oom_score;
mod release;
mod socket;
mod step;
mod stops;

pub(crate) use box_process::{BoxProcess, Reaped};
pub(crate) use client::Spawner;
pub use forker::Forker;
pub(crate) use link::SpawnRequest;
