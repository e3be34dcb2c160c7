//! The encoding of messages: MessagePack with the names of fields and variants.

mod decoder;
mod error;
mod message;
mod token;

pub use error::{DecodeError, EncodeError};
pub use message::{decode, encode_to};
