//! Lowering of statements to compounds: resolves names and makes connections, inside the enclosing compound.

mod chain;
mod compound;
mod level;
mod naming;
mod statement;

pub(crate) use naming::Naming;
pub(crate) use statement::lower;
