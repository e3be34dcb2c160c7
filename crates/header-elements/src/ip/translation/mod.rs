//! Translation between IPv4 and IPv6 (RFC 7915), with addresses of RFC 6052.

mod embedding;
mod icmp_types;
mod layer;
mod translate;

pub(super) use embedding::Embedding;
pub(super) use translate::{translate_to4, translate_to6};
