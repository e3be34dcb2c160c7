//! Tokens to statements. Never gives up: after an error it goes on where the next statement may begin.

mod chain;
mod cursor;
mod nesting;
mod statement;

pub(crate) use statement::parse;
