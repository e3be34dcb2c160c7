//! The firewall's loop: the header check, and rules by classes of field values (Gupta and McKeown, "Packet classification
//! on multiple fields", 1999). Values of a field that the same rules match are one class; classes of two fields are
//! combined into one by a table.

use std::collections::HashMap;

use super::addresses::{Addresses, starts};
use super::frames::Frames;
use super::header::{destination, ip_header, source};
use crate::engine::rules::{Prefix, Rule};

/// The rules that a class matches, one bit each.
type Matches = Vec<u64>;

/// Classes, with the rules that each matches.
#[derive(Default)]
struct Classes {
    matches: Vec<Matches>,
    numbers: HashMap<Matches, u32>,
}

/// A firewall.
pub(super) struct Firewall {
    sources: Addresses,
    destinations: Addresses,
    /// The class of a destination port, for TCP, UDP and other protocols.
    ports: [Vec<u32>; 3],
    /// The class of a pair of source and destination classes.
    pairs: Vec<u32>,
    destination_classes: usize,
    /// Whether a class of pairs and a class of ports are allowed.
    verdicts: Vec<bool>,
    port_classes: usize,
    allowed: u64,
}

impl Classes {
    /// The number of the class that these rules match.
    fn number(&mut self, matches: Matches) -> u32 {
        let next = self.matches.len() as u32;
        *self.numbers.entry(matches).or_insert_with_key(|matches| {
            self.matches.push(matches.clone());
            next
        })
    }
}

/// The rules for which `is_match` holds.
fn matches(rules: &[Rule], is_match: impl Fn(&Rule) -> bool) -> Matches {
    rules
        .chunks(64)
        .map(|some| some.iter().rev().fold(0, |bits, rule| bits << 1 | u64::from(is_match(rule))))
        .collect()
}

/// A table from addresses to classes of the prefixes that `field` returns.
fn addresses(rules: &[Rule], field: impl Fn(&Rule) -> Option<Prefix>) -> (Addresses, Vec<Matches>) {
    let mut classes = Classes::default();
    let class = |start| {
        (
            start,
            classes.number(matches(rules, |rule| field(rule).is_none_or(|prefix| prefix.contains(start)))),
        )
    };
    let ranges: Vec<_> =
        starts(rules.iter().filter_map(&field).map(Prefix::range)).into_iter().map(class).collect();
    (Addresses::new(&ranges), classes.matches)
}

fn both<'a>(one: &'a Matches, other: &'a Matches) -> impl Iterator<Item = u64> + 'a {
    one.iter().zip(other).map(|(one, other)| one & other)
}

impl Firewall {
    /// A firewall that allows what no rule matches.
    pub(super) fn new(rules: &[Rule]) -> Self {
        let (sources, by_source) = addresses(rules, |rule| rule.source);
        let (destinations, by_destination) = addresses(rules, |rule| rule.destination);
        let mut classes = Classes::default();
        let ports = [Some(6), Some(17), None].map(|protocol| {
            let class = |port| {
                classes.number(matches(rules, |rule| {
                    rule.protocol.is_none_or(|wanted| protocol == Some(wanted))
                        && rule.ports.is_none_or(|(low, high)| (low..=high).contains(&port))
                }))
            };
            (0..=u16::MAX).map(class).collect()
        });
        let mut pairs = Classes::default();
        let all = by_source
            .iter()
            .flat_map(|one| by_destination.iter().map(move |other| both(one, other).collect()));
        let numbers = all.map(|matches| pairs.number(matches)).collect();
        let verdict = |pair: &Matches, port: &Matches| {
            let mut words = both(pair, port).enumerate().filter(|(_, word)| *word != 0);
            words.next().is_none_or(|(word, bits)| rules[word * 64 + bits.trailing_zeros() as usize].allow)
        };
        let ports_of = |pair| classes.matches.iter().map(move |port| verdict(pair, port));
        let verdicts = pairs.matches.iter().flat_map(ports_of).collect();
        let (destination_classes, port_classes) = (by_destination.len(), classes.matches.len());
        Self {
            sources,
            destinations,
            ports,
            pairs: numbers,
            destination_classes,
            verdicts,
            port_classes,
            allowed: 0,
        }
    }

    /// Decides about the frames of a batch.
    pub(super) fn process(&mut self, frames: &mut Frames) {
        for frame in frames.iter_mut() {
            let Some(ip) = ip_header(frame) else { continue };
            let at = usize::from(ip[0] & 15) * 4 + 2;
            let port =
                ip.get(at..at + 2).map_or(0, |port| usize::from(u16::from_be_bytes([port[0], port[1]])));
            let by_port = self.ports[match ip[9] {
                6 => 0,
                17 => 1,
                _ => 2,
            }][port] as usize;
            let (source, destination) =
                (self.sources.get(source(ip)), self.destinations.get(destination(ip)));
            let pair = self.pairs[source as usize * self.destination_classes + destination as usize] as usize;
            self.allowed += u64::from(self.verdicts[pair * self.port_classes + by_port]);
        }
    }

    /// Packets allowed.
    pub(super) fn passed(&self) -> u64 {
        self.allowed
    }
}
