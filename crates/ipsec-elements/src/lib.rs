//! Elements that encrypt and authenticate packets by IPsec: ESP tunnels of IPv4 (RFC 4303) with AES in CBC mode (RFC 3602)
//! and HMAC-SHA-1-96 (RFC 2404).
//!
//! Invariants:
//! - no sequence number of an association is sent twice, and none is taken twice;
//! - a digest is compared in constant time;
//! - no bytes of a packet cause a panic: a packet passes, or is dropped with a reason.
//!
//! Absent: the ciphers, which other crates implement; key exchange; extended sequence numbers; AH.
#![no_std]
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    reason = "the page of an element is the documentation of its arguments' struct, and a test requires it"
)]

extern crate alloc;

pub mod ipsec;
