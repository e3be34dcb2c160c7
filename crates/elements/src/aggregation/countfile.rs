//! How files of `AggregateCounter` tell aggregates and counts.

use core::net::Ipv4Addr;

use alloc::format;
use alloc::vec::Vec;

use element::number_format;

/// How files are written.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// Both as four bytes, lowest first.
    Binary,
    /// Both as numbers.
    Text,
    /// Aggregates as addresses.
    Ip,
    /// Counts as shares of the total.
    Share,
}

impl Form {
    /// The line that says so at the head of a file.
    pub(super) fn announcement(self) -> &'static str {
        match self {
            Form::Binary => "!packed_le\n",
            Form::Ip => "!ip\n",
            Form::Text | Form::Share => "",
        }
    }

    /// Adds an aggregate and its count.
    pub(super) fn add(self, key: u32, count: u32, total: u64, bytes: &mut Vec<u8>) {
        let line = match self {
            Form::Binary => {
                bytes.extend(key.to_le_bytes());
                return bytes.extend(count.to_le_bytes());
            }
            Form::Text => format!("{key} {count}\n"),
            Form::Ip => format!("{} {count}\n", Ipv4Addr::from_bits(key)),
            Form::Share => format!("{key} {}\n", number_format::general(f64::from(count) / total as f64)),
        };
        bytes.extend(line.into_bytes());
    }
}
