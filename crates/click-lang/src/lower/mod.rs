//! Statements to compounds: every name is looked up, every connection made, inside the compound that it stands in.

mod chain;
mod compound;
mod level;
mod naming;
mod statement;

pub(crate) use naming::Naming;
pub(crate) use statement::lower;
