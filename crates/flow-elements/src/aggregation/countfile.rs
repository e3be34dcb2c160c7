//! File formats of `AggregateCounter`.

use core::net::Ipv4Addr;

use alloc::format;
use alloc::vec::Vec;

use element::number_format;

/// The format of a file.
#[derive(Clone, Copy)]
pub(super) enum FileFormat {
    /// Aggregate and count as four bytes each, little-endian.
    Binary,
    /// Aggregate and count as decimal numbers.
    Text,
    /// Aggregates as IP addresses.
    Ip,
    /// Counts as fractions of the total.
    Share,
}

impl FileFormat {
    /// The header line that names the format.
    pub(super) fn header_line(self) -> &'static str {
        match self {
            FileFormat::Binary => "!packed_le\n",
            FileFormat::Ip => "!ip\n",
            FileFormat::Text | FileFormat::Share => "",
        }
    }

    /// Appends an aggregate and its count.
    pub(super) fn append(self, key: u32, count: u32, total: u64, bytes: &mut Vec<u8>) {
        let line = match self {
            FileFormat::Binary => {
                bytes.extend(key.to_le_bytes());
                return bytes.extend(count.to_le_bytes());
            }
            FileFormat::Text => format!("{key} {count}\n"),
            FileFormat::Ip => format!("{} {count}\n", Ipv4Addr::from_bits(key)),
            FileFormat::Share => {
                format!("{key} {}\n", number_format::general(f64::from(count) / total as f64))
            }
        };
        bytes.extend(line.into_bytes());
    }
}
