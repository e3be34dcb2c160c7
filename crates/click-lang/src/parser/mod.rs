//! The parser, from tokens to statements. It recovers from each error at the next possible start of a statement.

mod chain;
mod cursor;
mod nesting;
mod statement;

pub(crate) use statement::parse;
