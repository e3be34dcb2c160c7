//! The subcommands: a file for each.

pub(crate) mod agent;
pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod click;
pub(crate) mod completion;
pub(crate) mod daemon;
pub(crate) mod demo;
pub(crate) mod element;
pub(crate) mod fabric;
pub(crate) mod flatten;
pub(crate) mod fmt;
pub(crate) mod function;
pub(crate) mod generate;
pub(crate) mod graph;
pub(crate) mod launcher;
pub(crate) mod online;
pub(crate) mod run;
pub(crate) mod token;
pub(crate) mod upgrade;
mod usage;
