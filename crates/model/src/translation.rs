//! Services that translate addresses: the ranges of their instances, and static mappings.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::as_text;

/// Ranges of addresses and ports of one service.
pub const MAX_TRANSLATED_RANGES: usize = 256;

/// Slices of one service: as many as it can have instances.
const MAX_SLICES: u16 = 128;

/// Static mappings of one service.
pub const MAX_STATIC_MAPPINGS: usize = 1024;

/// The variables in which the configuration of an instance finds its range.
pub const TRANSLATE_ADDRESS: &str = "TRANSLATE_ADDRESS";
/// See [`TRANSLATE_ADDRESS`].
pub const TRANSLATE_PORTS: &str = "TRANSLATE_PORTS";

/// Ports of one IPv4 address. They are those of TCP and UDP, and the identifiers of ICMP echo messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressRange {
    /// The address.
    pub address: Ipv4Addr,
    /// The first port.
    pub first: u16,
    /// The last port, not below the first.
    pub last: u16,
}

/// Text that names no range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRangeError;

impl fmt::Display for AddressRangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a range is `ADDRESS:FIRST-LAST` with an IPv4 address and ports, or `ADDRESS` for all ports",
        )
    }
}

impl std::error::Error for AddressRangeError {}

impl FromStr for AddressRange {
    type Err = AddressRangeError;

    fn from_str(text: &str) -> Result<Self, AddressRangeError> {
        let (address, ports) = text.split_once(':').unwrap_or((text, "0-65535"));
        let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
        let address = address.parse().map_err(|_| AddressRangeError)?;
        match (port(first), port(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self { address, first, last }),
            _ => Err(AddressRangeError),
        }
    }
}

fn port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|_| text.starts_with(|first: char| first.is_ascii_digit()))
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, first, last } = *self;
        match (first, last) {
            (0, u16::MAX) => write!(f, "{address}"),
            _ => write!(f, "{address}:{first}-{last}"),
        }
    }
}

as_text!(
    AddressRange,
    "AddressRange",
    "^[0-9.]{7,15}(:[0-9]{1,5}(-[0-9]{1,5})?)?$",
    "Ports of an IPv4 address: `ADDRESS:FIRST-LAST`, or `ADDRESS` for all ports."
);

impl AddressRange {
    /// The number of ports.
    pub fn len(self) -> u32 {
        u32::from(self.last) - u32::from(self.first) + 1
    }

    /// Never: a range has at least one port.
    pub fn is_empty(self) -> bool {
        false
    }

    fn overlaps(self, other: Self) -> bool {
        self.address == other.address && self.first <= other.last && other.first <= self.last
    }

    fn contains(self, end: MappedEnd) -> bool {
        let is_port_inside = |port| (self.first..=self.last).contains(&port);
        self.address == end.address && end.port.is_none_or(is_port_inside)
    }

    /// The variables that a configuration finds the range in, without `$`, and their values. Port 0 is left out.
    pub fn parameters(self) -> Vec<(String, String)> {
        let ports = format!("{}-{}", self.first.max(1), self.last.max(1));
        vec![(TRANSLATE_ADDRESS.into(), self.address.to_string()), (TRANSLATE_PORTS.into(), ports)]
    }
}

/// A protocol with ports that can be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MappedProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// One side of a static mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MappedEnd {
    /// The address.
    pub address: Ipv4Addr,
    /// The port; absent for all packets to the address.
    pub port: Option<u16>,
}

/// A mapping of an outside address to an inside one, of which packets from outside need no earlier ones from inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StaticMapping {
    /// The protocol; absent for all packets to the address.
    pub protocol: Option<MappedProtocol>,
    /// What packets from outside are sent to.
    pub outside: MappedEnd,
    /// What they are translated to.
    pub inside: MappedEnd,
}

/// Text that is no static mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticMappingError;

impl fmt::Display for StaticMappingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a static mapping is `tcp ADDRESS:PORT -> ADDRESS:PORT`, the same with `udp`, or `ADDRESS -> ADDRESS`, with IPv4 \
             addresses",
        )
    }
}

impl std::error::Error for StaticMappingError {}

impl FromStr for StaticMapping {
    type Err = StaticMappingError;

    fn from_str(text: &str) -> Result<Self, StaticMappingError> {
        let (before, inside) = text.split_once("->").ok_or(StaticMappingError)?;
        let (protocol, outside) = match before.trim().split_once(' ') {
            Some(("tcp", outside)) => (Some(MappedProtocol::Tcp), outside),
            Some(("udp", outside)) => (Some(MappedProtocol::Udp), outside),
            Some(_) => return Err(StaticMappingError),
            None => (None, before),
        };
        let end = |text: &str| {
            let (address, number) = match (protocol, text.trim().split_once(':')) {
                (Some(_), Some((address, number))) => (address, Some(port(number)?)),
                (None, None) => (text.trim(), None),
                _ => return None,
            };
            Some(MappedEnd { address: address.parse().ok()?, port: number })
        };
        let ends = end(outside).zip(end(inside)).ok_or(StaticMappingError)?;
        Ok(Self { protocol, outside: ends.0, inside: ends.1 })
    }
}

impl fmt::Display for MappedEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.address),
            None => write!(f, "{}", self.address),
        }
    }
}

impl fmt::Display for StaticMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol {
            Some(MappedProtocol::Tcp) => f.write_str("tcp ")?,
            Some(MappedProtocol::Udp) => f.write_str("udp ")?,
            None => {}
        }
        write!(f, "{} -> {}", self.outside, self.inside)
    }
}

as_text!(
    StaticMapping,
    "StaticMapping",
    "^((tcp|udp) +)?[0-9.]{7,15}(:[0-9]{1,5})? *-> *[0-9.]{7,15}(:[0-9]{1,5})?$",
    "A static mapping of an outside address to an inside one: `tcp ADDRESS:PORT -> ADDRESS:PORT`, the same with `udp`, or `ADDRESS -> ADDRESS`."
);

/// What a service translates addresses to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Translation {
    /// The addresses and ports of all instances together. They are divided into slices.
    pub ranges: Vec<AddressRange>,
    /// The number of slices of equal size, at least, of which instance N has the N-th: a service has at most as many
    /// instances.
    #[serde(default = "default_slices")]
    pub slices: u16,
    /// Packets from outside that all go to one instance, the first that is up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mappings: Vec<StaticMapping>,
}

/// The number of slices if none is given.
pub const DEFAULT_SLICES: u16 = 16;

fn default_slices() -> u16 {
    DEFAULT_SLICES
}

/// Why a translation is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranslationError {
    /// There is no range, or there are too many.
    Ranges(usize),
    /// There are too many static mappings.
    Mappings(usize),
    /// The number of slices is out of bounds.
    Slices(u16),
    /// The ranges have fewer ports than there are slices.
    Ports(u32),
    /// Two ranges have ports in common.
    Overlap(AddressRange, AddressRange),
    /// The outside of a mapping lies in a range.
    MappingInRange(StaticMapping, AddressRange),
    /// Two mappings have the same outside.
    DoubleMapping(StaticMapping, StaticMapping),
    /// There are more instances than slices.
    Replicas {
        /// The instances.
        replicas: u16,
        /// The slices.
        slices: u16,
    },
}

impl fmt::Display for TranslationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ranges(count) => {
                write!(
                    f,
                    "a translator has 1 to {MAX_TRANSLATED_RANGES} ranges of addresses, and not {count}"
                )
            }
            Self::Mappings(count) => {
                write!(f, "{count} static mappings: a translator has at most {MAX_STATIC_MAPPINGS}")
            }
            Self::Slices(count) => {
                write!(f, "the ranges are divided into 1 to {MAX_SLICES} slices, and not {count}")
            }
            Self::Ports(count) => {
                write!(
                    f,
                    "the ranges have {count} ports, fewer than there are slices: add addresses, or use fewer slices"
                )
            }
            Self::Overlap(one, other) => {
                write!(f, "the ranges {one} and {other} have ports in common: leave them out of one")
            }
            Self::MappingInRange(mapping, range) => write!(
                f,
                "the outside of the static mapping `{mapping}` lies in the range {range}, which the instances choose ports from: \
                 leave it out of the range"
            ),
            Self::DoubleMapping(one, other) => {
                write!(f, "the static mappings `{one}` and `{other}` have the same outside: remove one")
            }
            Self::Replicas { replicas, slices } => write!(
                f,
                "{replicas} instances need as many slices of the addresses that the service translates to, and there are \
                 {slices}: create the service with more slices"
            ),
        }
    }
}

impl std::error::Error for TranslationError {}

impl Translation {
    /// Returns an error if it is impossible for this number of instances.
    ///
    /// # Errors
    ///
    /// See [`TranslationError`].
    pub fn check(&self, replicas: u16) -> Result<(), TranslationError> {
        let Self { ranges, slices, mappings } = self;
        if ranges.is_empty() || ranges.len() > MAX_TRANSLATED_RANGES {
            return Err(TranslationError::Ranges(ranges.len()));
        }
        if mappings.len() > MAX_STATIC_MAPPINGS {
            return Err(TranslationError::Mappings(mappings.len()));
        }
        if *slices == 0 || *slices > MAX_SLICES {
            return Err(TranslationError::Slices(*slices));
        }
        for (number, one) in ranges.iter().enumerate() {
            if let Some(other) = ranges.iter().take(number).find(|other| other.overlaps(*one)) {
                return Err(TranslationError::Overlap(*other, *one));
            }
        }
        for (number, one) in mappings.iter().enumerate() {
            if let Some(range) = ranges.iter().find(|range| range.contains(one.outside)) {
                return Err(TranslationError::MappingInRange(*one, *range));
            }
            let is_whole = |mapping: &StaticMapping| mapping.outside.port.is_none();
            let is_same = |other: &&StaticMapping| {
                let is_one =
                    one.protocol.is_none() || other.protocol.is_none() || one.protocol == other.protocol;
                is_one
                    && one.outside.address == other.outside.address
                    && (is_whole(one) || is_whole(other) || one.outside.port == other.outside.port)
            };
            if let Some(other) = mappings.iter().take(number).find(is_same) {
                return Err(TranslationError::DoubleMapping(*other, *one));
            }
        }
        let ports: u32 = ranges.iter().map(|range| range.len()).sum();
        if ports < u32::from(*slices) {
            return Err(TranslationError::Ports(ports));
        }
        match self.slice_count() {
            count if replicas > count => Err(TranslationError::Replicas { replicas, slices: count }),
            _ => Ok(()),
        }
    }

    /// Addresses and ports of packets from outside that could be for either of two translators.
    pub fn shared_with(&self, other: &Self) -> Option<AddressRange> {
        let shared = |one: (Option<MappedProtocol>, AddressRange),
                      other: (Option<MappedProtocol>, AddressRange)| {
            let is_one = one.0.is_none() || other.0.is_none() || one.0 == other.0;
            let (one, other) = (one.1, other.1);
            (is_one && one.overlaps(other)).then(|| AddressRange {
                first: one.first.max(other.first),
                last: one.last.min(other.last),
                ..one
            })
        };
        self.outside().find_map(|own| other.outside().find_map(|theirs| shared(own, theirs)))
    }

    /// What packets from outside are sent to.
    fn outside(&self) -> impl Iterator<Item = (Option<MappedProtocol>, AddressRange)> {
        let of_mapping = |mapping: &StaticMapping| {
            let (first, last) = mapping.outside.port.map_or((0, u16::MAX), |port| (port, port));
            (mapping.protocol, AddressRange { address: mapping.outside.address, first, last })
        };
        self.ranges.iter().map(|range| (None, *range)).chain(self.mappings.iter().map(of_mapping))
    }

    /// The most ports that a slice can have.
    fn slice_size(&self) -> u32 {
        let count = |size: u32| self.ranges.iter().map(|range| range.len() / size).sum::<u32>();
        let (mut enough, mut too_many) = (1u32, 65_537);
        while enough + 1 < too_many {
            let middle = enough.midpoint(too_many);
            if count(middle) >= u32::from(self.slices) {
                enough = middle;
            } else {
                too_many = middle;
            }
        }
        enough
    }

    /// The number of slices, which may be more than were asked for.
    pub fn slice_count(&self) -> u16 {
        let size = self.slice_size();
        let count: u32 = self.ranges.iter().map(|range| range.len() / size).sum();
        count.min(MAX_SLICES.into()) as u16
    }

    /// The slice of an instance. Numbers begin with one. `None` if there are not so many.
    pub fn slice(&self, number: u16) -> Option<AddressRange> {
        let size = self.slice_size();
        let mut before = u32::from(number.checked_sub(1)?);
        for range in &self.ranges {
            let count = range.len() / size;
            if before < count {
                let first = range.first + (before * size) as u16;
                return Some(AddressRange { first, last: first + (size - 1) as u16, ..*range });
            }
            before -= count;
        }
        None
    }
}

/// What is known of an instance of a translator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TranslationStatus {
    /// The addresses and ports that it translates to.
    pub range: AddressRange,
    /// Flows that the switch has learnt from what the instance translated.
    pub learnt: u64,
    /// What it was refused.
    #[serde(default)]
    pub refused: RefusedTuples,
}

/// Packets of a translator whose flow was not learnt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedTuples {
    /// The instance may not translate to these addresses and ports. The packets were dropped as `out_of_range`.
    pub out_of_range: u64,
    /// Another instance has a living flow with them. The packets were dropped as `flow_taken`.
    pub taken: u64,
    /// The instance has too many flows, or there was no room for another one. The range alone leads replies to it.
    pub no_room: u64,
}

impl RefusedTuples {
    /// Whether nothing was refused.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translation(ranges: &[&str], slices: u16, mappings: &[&str]) -> Translation {
        Translation {
            ranges: ranges.iter().map(|text| text.parse().unwrap()).collect(),
            slices,
            mappings: mappings.iter().map(|text| text.parse().unwrap()).collect(),
        }
    }

    #[test]
    fn addresses_that_two_have_are_found() {
        let one = translation(
            &["203.0.113.1:1024-2047", "203.0.113.2"],
            1,
            &["tcp 203.0.113.1:80 -> 10.0.0.5:8080", "203.0.113.3 -> 10.0.0.3"],
        );
        for (range, mapping, shared) in [
            ("203.0.113.1:2048-3000", "tcp 203.0.113.1:81 -> 10.0.0.5:8080", None),
            ("203.0.113.1:2000-3000", "tcp 203.0.113.1:81 -> 10.0.0.5:8080", Some("203.0.113.1:2000-2047")),
            ("203.0.113.4", "udp 203.0.113.1:80 -> 10.0.0.5:8080", None),
            ("203.0.113.4", "tcp 203.0.113.1:80 -> 10.0.0.6:8080", Some("203.0.113.1:80-80")),
            ("203.0.113.4", "udp 203.0.113.2:5 -> 10.0.0.6:5", Some("203.0.113.2:5-5")),
            ("203.0.113.3:7-9", "udp 203.0.113.5:5 -> 10.0.0.6:5", Some("203.0.113.3:7-9")),
        ] {
            let other = translation(&[range], 1, &[mapping]);
            let expected = shared.map(String::from);
            for found in [one.shared_with(&other), other.shared_with(&one)] {
                assert_eq!(found.map(|range| range.to_string()), expected, "{range} {mapping}");
            }
        }
    }

    #[test]
    fn texts_are_read_and_written() {
        for text in ["203.0.113.1:1024-65535", "203.0.113.1", "1.2.3.4:7-7"] {
            assert_eq!(text.parse::<AddressRange>().unwrap().to_string(), text);
        }
        assert_eq!("1.2.3.4:7".parse::<AddressRange>().unwrap().to_string(), "1.2.3.4:7-7");
        for text in
            ["", "1.2.3", "::1", "1.2.3.4:", "1.2.3.4:9-8", "1.2.3.4:1-65536", "1.2.3.4:+1-9", "1.2.3.4/30"]
        {
            assert_eq!(text.parse::<AddressRange>(), Err(AddressRangeError), "{text}");
        }
        for text in
            ["tcp 203.0.113.1:80 -> 10.0.0.5:8080", "udp 1.1.1.1:53 -> 2.2.2.2:53", "1.1.1.1 -> 2.2.2.2"]
        {
            assert_eq!(text.parse::<StaticMapping>().unwrap().to_string(), text);
        }
        assert!("tcp  1.1.1.1:1->2.2.2.2:2".parse::<StaticMapping>().is_ok());
        for text in
            ["", "1.1.1.1", "tcp 1.1.1.1 -> 2.2.2.2", "1.1.1.1:1 -> 2.2.2.2:2", "sctp 1.1.1.1:1 -> 2.2.2.2:2"]
        {
            assert_eq!(text.parse::<StaticMapping>(), Err(StaticMappingError), "{text}");
        }
    }

    #[test]
    fn slices_divide_the_ranges() {
        for (ranges, slices, count, expected) in [
            (
                &["9.9.9.9:1024-65535"][..],
                16,
                16,
                &[(1, "9.9.9.9:1024-5055"), (16, "9.9.9.9:61504-65535")][..],
            ),
            (&["9.9.9.9:1024-65535"], 1, 1, &[(1, "9.9.9.9:1024-65535")]),
            (&["9.9.9.8", "9.9.9.9"], 2, 2, &[(1, "9.9.9.8"), (2, "9.9.9.9")]),
            (&["9.9.9.8", "9.9.9.9"], 3, 4, &[(2, "9.9.9.8:32768-65535"), (3, "9.9.9.9:0-32767")]),
            // What is left over is not used.
            (
                &["9.9.9.8:1-10", "9.9.9.9:1-3"],
                4,
                4,
                &[(1, "9.9.9.8:1-3"), (3, "9.9.9.8:7-9"), (4, "9.9.9.9:1-3")],
            ),
        ] {
            let translation = translation(ranges, slices, &[]);
            assert_eq!((translation.check(count), translation.slice_count()), (Ok(()), count), "{ranges:?}");
            for (number, slice) in expected {
                assert_eq!(translation.slice(*number).unwrap().to_string(), *slice);
            }
            assert_eq!((translation.slice(0), translation.slice(count + 1)), (None, None));
            let too_many = TranslationError::Replicas { replicas: count + 1, slices: count };
            assert_eq!(translation.check(count + 1), Err(too_many));
        }
        let all = translation(&["9.9.9.9:1024-65535", "9.9.9.8:5-900"], 100, &[]);
        let slices: Vec<AddressRange> =
            (1..=all.slice_count()).map_while(|number| all.slice(number)).collect();
        for (number, one) in slices.iter().enumerate() {
            assert_eq!(one.len(), slices[0].len());
            assert!(slices.iter().take(number).all(|other| !other.overlaps(*one)));
        }
    }

    #[test]
    fn a_configuration_finds_its_slice() {
        let of = |text: &str| text.parse::<AddressRange>().unwrap().parameters();
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        let expected = [pair("TRANSLATE_ADDRESS", "9.9.9.9"), pair("TRANSLATE_PORTS", "1024-5055")];
        assert_eq!(of("9.9.9.9:1024-5055"), expected);
        assert_eq!(of("9.9.9.9")[1].1, "1-65535");
    }

    #[test]
    fn impossible_translations_are_refused() {
        let ok = &["9.9.9.9:1024-65535"][..];
        for (translation, why) in [
            (translation(&[], 1, &[]), "1 to 256 ranges"),
            (translation(ok, 0, &[]), "not 0"),
            (translation(ok, 129, &[]), "1 to 128 slices"),
            (translation(&["9.9.9.9:1-5"], 6, &[]), "5 ports"),
            (translation(&["9.9.9.9:1-5", "9.9.9.9:5-9"], 2, &[]), "in common"),
            (translation(ok, 4, &["tcp 9.9.9.9:2000 -> 1.1.1.1:1"]), "lies in the range"),
            (translation(ok, 4, &["9.9.9.9 -> 1.1.1.1"]), "lies in the range"),
            (
                translation(ok, 4, &["tcp 9.9.9.9:80 -> 1.1.1.1:1", "tcp 9.9.9.9:80 -> 1.1.1.1:2"]),
                "same outside",
            ),
            (translation(ok, 4, &["tcp 9.9.9.8:80 -> 1.1.1.1:1", "9.9.9.8 -> 1.1.1.1"]), "same outside"),
            (translation(ok, 2, &[]), "3 instances need"),
        ] {
            let error = translation.check(3).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        let fine = translation(ok, 4, &["tcp 9.9.9.9:80 -> 1.1.1.1:1", "udp 9.9.9.9:80 -> 1.1.1.1:1"]);
        assert_eq!(fine.check(4), Ok(()));
    }
}
