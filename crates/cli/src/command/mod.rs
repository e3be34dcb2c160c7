//! The subcommands: a file for each.

pub(crate) mod click;
