//! The encoding of messages: MessagePack with the names of fields and variants.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Cursor;

/// A value that cannot be encoded.
pub use rmp_serde::encode::Error as EncodeError;

/// Bytes that cannot be decoded.
pub use rmp_serde::decode::Error as DecodeError;

/// How deep a message may be nested. No type of this crate comes near it.
const MAX_DEPTH: usize = 64;

/// Appends an encoded message to `bytes`.
pub fn encode_to<T: Serialize>(message: &T, mut bytes: Vec<u8>) -> Result<Vec<u8>, EncodeError> {
    rmp_serde::encode::write_named(&mut bytes, message)?;
    Ok(bytes)
}

/// Decodes a message. Returns it with the number of bytes that follow it.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, usize), DecodeError> {
    let mut decoder = rmp_serde::Deserializer::new(Cursor::new(bytes));
    decoder.set_max_depth(MAX_DEPTH);
    let message = T::deserialize(&mut decoder)?;
    let taken = usize::try_from(decoder.position()).unwrap_or(bytes.len());
    Ok((message, bytes.len().saturating_sub(taken)))
}
