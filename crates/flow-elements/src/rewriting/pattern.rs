//! Patterns: new addresses and ports for flows.

use core::cell::RefCell;
use core::fmt;
use core::net::Ipv4Addr;

use element::arguments::Ip4PrefixOrHost;
use element::prelude::*;
use element::{DividedRange, NameKind};

use flow::{Ip4Flow, NumberChooser, NumberPool, TakenNumbers};

/// New addresses and ports; zero leaves a field unchanged. One of them may be chosen from a range.
///
/// A named pattern is shared by its users, so that they continue the same sequence of choices.
pub(crate) struct Pattern {
    fields: Ip4Flow,
    has_ports: bool,
    /// The last number of the range, relative to the first, of all shards together.
    top: u32,
    choice: RefCell<NumberChooser>,
}

/// The range parsed so far.
#[derive(Default)]
struct NumberRange {
    top: u32,
    sequential: bool,
    random: bool,
}

impl NumberRange {
    /// Strips the suffix of a word: `#` for sequential choice, `?` for random choice.
    fn strip<'t>(&mut self, word: &'t str) -> &'t str {
        if let Some(rest) = word.strip_suffix('#') {
            (self.sequential, self.random) = (true, true);
            rest
        } else if let Some(rest) = word.strip_suffix('?') {
            self.random = true;
            rest
        } else {
            word
        }
    }

    /// Parses a range or prefix of addresses and returns the first one.
    fn addresses(&mut self, word: &str, setup: &Setup) -> Option<u32> {
        let word = self.strip(word);
        if let Some((first, last)) = word.split_once('-') {
            let first = Ipv4Addr::from_argument(first, setup).ok()?.to_bits();
            self.top = Ipv4Addr::from_argument(last, setup).ok()?.to_bits().checked_sub(first)?;
            return Some(first);
        }
        let Ip4PrefixOrHost(prefix) = Ip4PrefixOrHost::from_argument(word, setup).ok()?;
        let (address, length) = (prefix.address.to_bits(), prefix.length()?);
        if address == 0 || length == 0 {
            return None;
        }
        let network = address & prefix.mask.to_bits();
        Some(match length {
            32 => {
                self.top = 0;
                address
            }
            31 => {
                self.top = 1;
                network
            }
            // Excludes the network and broadcast addresses.
            _ => {
                self.top = !prefix.mask.to_bits() - 2;
                network | 1
            }
        })
    }

    /// Parses a range of ports and returns the first one.
    fn ports(&mut self, word: &str, setup: &Setup) -> Option<u16> {
        let (first, last) = self.strip(word).split_once('-')?;
        let first = u16::from_argument(first, setup).ok()?;
        self.top = u16::from_argument(last, setup).ok()?.checked_sub(first)?.into();
        Some(first)
    }
}

/// Parses a port number; `-` is 0.
fn port(word: &str, setup: &Setup) -> Option<u16> {
    match word {
        "-" => Some(0),
        _ => u16::from_argument(word, setup).ok().filter(|port| *port > 0),
    }
}

/// Parses an address; `-` is 0.
fn address(word: &str, setup: &Setup) -> Option<u32> {
    match word {
        "-" => Some(0),
        _ => Ipv4Addr::from_argument(word, setup).ok().map(Ipv4Addr::to_bits),
    }
}

/// Leaves this shard its part of the numbers of a pattern, and lets replies be spread by them. Fails if replies could
/// reach a shard that does not have their flow.
fn divide(range: &mut NumberPool, fields: Ip4Flow, has_ports: bool, setup: &Setup) -> Result<(), String> {
    if (fields.destination, fields.destination_port) != (0, 0) {
        return Err("a pattern that sets the destination needs one shard".into());
    }
    if (fields.source, fields.source_port) == (0, 0) {
        return Ok(());
    }
    let has_range = fields.source != 0 && (!has_ports || fields.source_port != 0);
    // A range of one number leaves no choice, so it would be given out twice.
    let part = setup.shard.part(range.top).filter(|(first, last)| has_range && first < last);
    let (first, last) = part.ok_or_else(|| {
        let least = setup.shard.count * 2;
        format!("several shards need a pattern with a range of at least {least}: SADDR PORT-PORT - -, or SADDR-SADDR -")
    })?;
    let address = |number: u32| Ipv4Addr::from_bits(range.base.saturating_add(number));
    let divided = match has_ports {
        true => {
            let last = u16::try_from(range.base.saturating_add(range.top)).unwrap_or(u16::MAX);
            DividedRange::Ports(Ipv4Addr::from_bits(fields.source), fields.source_port, last)
        }
        false => DividedRange::Addresses(address(0), address(range.top)),
    };
    setup.environment().divide(divided).map_err(|error| error.to_string())?;
    (range.base, range.top) = (range.base + first, last - first);
    Ok(())
}

impl Pattern {
    /// Parses `SADDR SPORT DADDR DPORT`, `SADDR DADDR`, or the name of a pattern.
    pub(crate) fn parse(words: &[String], setup: &Setup) -> Result<Rc<Pattern>, String> {
        let (source, source_port, destination, destination_port) = match words {
            [name] => {
                let named = setup.names().shared(NameKind::Pattern, setup.scope(), name);
                return named.ok_or_else(|| format!("no such pattern ‘{name}’"));
            }
            [source, destination] => (source, None, destination, None),
            [source, destination, source_port] => (source, Some(source_port), destination, None),
            [source, source_port, destination, port] => (source, Some(source_port), destination, Some(port)),
            _ => return Err("syntax error".into()),
        };
        let mut variation = NumberRange::default();
        let first = address(source, setup)
            .or_else(|| variation.addresses(source, setup))
            .ok_or("bad source address")?;
        let mut fields = Ip4Flow { source: first, ..Ip4Flow::default() };
        if let Some(word) = source_port {
            fields.source_port =
                port(word, setup).or_else(|| variation.ports(word, setup)).ok_or("bad source port")?;
        }
        fields.destination = address(destination, setup).ok_or("bad destination address")?;
        if let Some(word) = destination_port {
            fields.destination_port = port(word, setup).ok_or("bad destination port")?;
        }
        let has_ports = source_port.is_some();
        let mut range = NumberPool {
            base: if has_ports { fields.source_port.into() } else { fields.source },
            top: variation.top,
            sequential: variation.sequential,
            same_first: has_ports && !variation.random,
        };
        if setup.shard.count > 1 {
            divide(&mut range, fields, has_ports, setup)?;
        }
        Ok(Rc::new(Pattern {
            fields,
            has_ports,
            top: variation.top,
            choice: RefCell::new(NumberChooser::new(range)),
        }))
    }

    /// Gives `flow` new addresses and ports; `None` if every number of the range is taken.
    ///
    /// `is_taken` receives flows as this function would return them; `random(top)` returns a number from 0 to `top`.
    pub(crate) fn rewrite(
        &self,
        flow: Ip4Flow,
        known: &mut TakenNumbers,
        peer: impl FnOnce(Ip4Flow, bool) -> u128,
        random: impl FnOnce(u32) -> u32,
        mut is_taken: impl FnMut(Ip4Flow) -> bool,
    ) -> Option<Ip4Flow> {
        let or = |new: u32, old: u32| if new == 0 { old } else { new };
        let or_port = |new: u16, old: u16| if new == 0 { old } else { new };
        let wanted = Ip4Flow {
            source: or(self.fields.source, flow.source),
            destination: or(self.fields.destination, flow.destination),
            source_port: or_port(self.fields.source_port, flow.source_port),
            destination_port: or_port(self.fields.destination_port, flow.destination_port),
        };
        let mut choice = self.choice.borrow_mut();
        if choice.pool().top == 0 {
            return Some(wanted);
        }
        let with = |number: u32| match self.has_ports {
            true => Ip4Flow { source_port: number as u16, ..wanted },
            false => Ip4Flow { source: number, ..wanted },
        };
        let current = if self.has_ports { flow.source_port.into() } else { flow.source };
        let peer = peer(wanted, self.has_ports);
        choice.choose(peer, current, known, random, |number| is_taken(with(number))).map(with)
    }
}

/// The format of the `patterns` handler, without the suffixes for the kind of choice.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ip4Flow { source, destination, source_port, destination_port } = self.fields;
        let top = self.top;
        let address = |f: &mut fmt::Formatter, bits: u32| match bits {
            0 => f.write_str("-"),
            _ => write!(f, "{}", Ipv4Addr::from_bits(bits)),
        };
        if !self.has_ports && top > 0 {
            let last = Ipv4Addr::from_bits(source.saturating_add(top));
            write!(f, "{}-{last}", Ipv4Addr::from_bits(source))?;
        } else {
            address(f, source)?;
        }
        match (self.has_ports, source_port) {
            (false, _) => {}
            (true, 0) => f.write_str(" -")?,
            (true, port) if top > 0 => write!(f, " {port}-{}", u32::from(port) + top)?,
            (true, port) => write!(f, " {port}")?,
        }
        f.write_str(" ")?;
        address(f, destination)?;
        match (self.has_ports, destination_port) {
            (false, _) => Ok(()),
            (true, 0) => f.write_str(" -"),
            (true, port) => write!(f, " {port}"),
        }
    }
}

/// A pattern and the outputs of both directions.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) pattern: Rc<Pattern>,
    /// Output ports of forward packets and of replies.
    pub(crate) outputs: [u16; 2],
}

impl Target {
    /// Parses a pattern and two output ports.
    pub(crate) fn parse(words: &[String], setup: &Setup) -> Result<Target, String> {
        let (pattern, ports) = match words.len() {
            0..=2 => return Err("syntax error".into()),
            count => words.split_at(count - 2),
        };
        Ok(Target { pattern: Pattern::parse(pattern, setup)?, outputs: parse_ports(ports, setup)? })
    }
}

/// Parses two output ports. A number below 0 or above 65,535 becomes 65,535, which no element has.
pub(crate) fn parse_ports(words: &[String], setup: &Setup) -> Result<[u16; 2], String> {
    let [forward, reply] = words else { return Err("bad forward port".into()) };
    let parse =
        |word: &str| i32::from_argument(word, setup).map(|port| u16::try_from(port).unwrap_or(u16::MAX));
    let forward = parse(forward).map_err(|_| "bad forward port")?;
    Ok([forward, parse(reply).map_err(|_| "bad reply port")?])
}
