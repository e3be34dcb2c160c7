//! Rules and routes that are drawn from the flows of the traffic, so that packets match them.

use std::collections::HashSet;
use std::fmt;
use std::net::Ipv4Addr;

use super::flow::{Flow, Zipf};
use super::frame::{TCP, UDP};
use random::Random;

/// An address prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Prefix {
    address: u32,
    length: u32,
}

impl Prefix {
    fn of(address: u32, length: u32) -> Self {
        let mask = u32::MAX.checked_shl(32 - length.min(32)).unwrap_or(0);
        Self { address: address & mask, length }
    }

    /// Whether an address has this prefix.
    pub(super) fn contains(self, address: u32) -> bool {
        Self::of(address, self.length) == self
    }

    /// Its number of bits.
    pub(super) fn length(self) -> u32 {
        self.length
    }

    /// The first and the last address.
    pub(super) fn range(self) -> (u32, u32) {
        (self.address, self.address | u32::MAX.checked_shr(self.length).unwrap_or(0))
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from_bits(self.address), self.length)
    }
}

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// Its destinations.
    pub(super) prefix: Prefix,
    /// Its output.
    pub(super) output: u32,
}

impl Route {
    /// The routes in the argument of a route table: `ADDRESS/LENGTH [GATEWAY] OUTPUT, ...`. `None` if they are written in
    /// another way.
    pub(super) fn parse_all(text: &str) -> Option<Vec<Self>> {
        let parse = |route: &str| {
            let mut words = route.split_whitespace();
            let (address, length) = words.next()?.split_once('/')?;
            let address: Ipv4Addr = address.parse().ok()?;
            let length = length.parse().ok().filter(|length| *length <= 32)?;
            Some(Self { prefix: Prefix::of(address.to_bits(), length), output: words.last()?.parse().ok()? })
        };
        text.split(',').map(parse).collect()
    }
}

/// A firewall rule: the conjunction of its conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// Whether it allows packets.
    pub(super) allow: bool,
    /// The prefix of source addresses.
    pub(super) source: Option<Prefix>,
    /// The prefix of destination addresses.
    pub(super) destination: Option<Prefix>,
    /// The protocol's number.
    pub(super) protocol: Option<u8>,
    /// The lowest and the highest destination port.
    pub(super) ports: Option<(u16, u16)>,
}

impl Rule {
    /// Draws a rule that this flow matches. Its prefixes are shorter than those of a host or a small network by
    /// `shorter` bits.
    fn draw(flow: &Flow, shorter: u32, random: &mut Random) -> Self {
        let port = flow.destination_port;
        let exact = Some((port, port));
        let protocol = Some(flow.protocol);
        let source = |length: u32| Some(Prefix::of(flow.source, length.saturating_sub(shorter)));
        let destination = |length: u32| Some(Prefix::of(flow.destination, length.saturating_sub(shorter)));
        let any = Self {
            allow: random.below_u64(5) < 3,
            source: None,
            destination: None,
            protocol: None,
            ports: None,
        };
        let rule = match random.below_u64(10) {
            0..3 => Self { destination: destination(32), protocol, ports: exact, ..any },
            3..5 => Self { source: source(random.between(22, 26) as u32), protocol, ports: exact, ..any },
            5..7 => Self {
                destination: destination(random.between(20, 28) as u32),
                protocol,
                ports: exact,
                ..any
            },
            7 => Self { source: source(32), destination: destination(16), ..any },
            8 => Self { source: source(random.between(26, 30) as u32), ..any },
            _ => {
                let range = Some((port & !1023, port | 1023));
                Self { destination: destination(24), protocol, ports: range, ..any }
            }
        };
        // Other protocols have no ports.
        if matches!(flow.protocol, TCP | UDP) { rule } else { Self { protocol: None, ports: None, ..rule } }
    }

    /// Whether a flow matches.
    #[cfg(test)]
    pub(super) fn matches(&self, flow: &Flow) -> bool {
        self.source.is_none_or(|prefix| prefix.contains(flow.source))
            && self.destination.is_none_or(|prefix| prefix.contains(flow.destination))
            && self.protocol.is_none_or(|protocol| protocol == flow.protocol)
            && self.ports.is_none_or(|(low, high)| (low..=high).contains(&flow.destination_port))
    }
}

impl fmt::Display for Rule {
    /// In IPFilter's syntax.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.allow { "allow" } else { "deny" })?;
        let mut separator = " ";
        let mut term = |f: &mut fmt::Formatter<'_>, text: String| {
            write!(f, "{separator}{text}")?;
            separator = " and ";
            Ok(())
        };
        match self.protocol {
            Some(TCP) => term(f, "tcp".into())?,
            Some(UDP) => term(f, "udp".into())?,
            _ => {}
        }
        for (side, prefix) in [("src", self.source), ("dst", self.destination)] {
            if let Some(prefix) = prefix {
                term(f, format!("{side} net {prefix}"))?;
            }
        }
        match self.ports {
            Some((low, high)) if low == high => term(f, format!("dst port {low}"))?,
            Some((low, high)) => term(f, format!("dst port >= {low} and dst port <= {high}"))?,
            None => {}
        }
        Ok(())
    }
}

/// Draws `count` - 1 distinct rules from flows, weighted by the flows' packets. [`rules_text`] adds the last rule,
/// which allows everything.
pub(crate) fn rules(count: u32, flows: &[Flow], random: &mut Random) -> Vec<Rule> {
    let zipf = Zipf::new(flows.len());
    let mut rules: Vec<Rule> = Vec::new();
    let mut known = HashSet::new();
    let wanted = count.saturating_sub(1) as usize;
    // A few rules match large networks, many rules small ones. Otherwise a few rules would catch all packets.
    let shorter = match count {
        ..50 => 12,
        50..500 => 6,
        _ => 0,
    };
    // Few flows yield few distinct rules, so rules repeat then.
    let mut tries = 20 * wanted;
    while rules.len() < wanted {
        let Some(flow) = flows.get(zipf.draw(random)) else { break };
        let rule = Rule::draw(flow, shorter, random);
        tries = tries.saturating_sub(1);
        if known.insert(rule.to_string()) || tries == 0 {
            rules.push(rule);
        }
    }
    rules
}

/// The argument of an IPFilter.
pub(crate) fn rules_text(rules: &[Rule]) -> String {
    let rules: String = rules.iter().map(|rule| format!("{rule},\n")).collect();
    rules + "allow all"
}

/// The argument of a route table: `count` - 1 prefixes and a default route. The prefixes cover the destinations as far
/// as their number allows. The distribution of lengths is that of an Internet routing table: half are /24.
pub(crate) fn routes_text(count: u32, outputs: u32, flows: &[Flow], random: &mut Random) -> String {
    let mut known = HashSet::new();
    let mut text = String::new();
    let mut index = 0;
    while known.len() + 1 < count as usize {
        // After three per flow, prefixes without traffic, which real tables contain too.
        let address = match flows.get(index / 3) {
            Some(flow) => flow.destination,
            None => random.next() as u32,
        };
        index += 1;
        let length = match random.below_u64(100) {
            0..50 => 24,
            50..85 => random.between(16, 23) as u32,
            _ => random.between(25, 32) as u32,
        };
        let prefix = Prefix::of(address, length);
        if known.insert(prefix) {
            text += &format!("{prefix} {},\n", random.below_u64(outputs.max(1).into()));
        }
    }
    text + "0.0.0.0/0 0"
}

#[cfg(test)]
mod tests {
    use super::super::flow::generate_flows;
    use super::*;

    /// Packets match many rules, no rule matches most of them, and some reach the last.
    #[test]
    fn packets_match_different_rules() {
        for count in [10, 100, 1_000] {
            let mut random = Random::new(5);
            let flows = generate_flows(60_000, &mut random);
            let rules = rules(count, &flows, &mut random);
            assert_eq!(rules.len() as u32, count - 1);
            let zipf = Zipf::new(flows.len());
            let mut hits = vec![0u32; rules.len() + 1];
            let packets = 20_000;
            for _ in 0..packets {
                let flow = &flows[zipf.draw(&mut random)];
                let rule = rules.iter().position(|rule| rule.matches(flow)).unwrap_or(rules.len());
                hits[rule] += 1;
            }
            let (last, others) = hits.split_last().expect("rules");
            let most = others.iter().max().expect("a rule");
            let used = others.iter().filter(|hits| **hits > 0).count();
            assert!(*most < packets / 2, "{count}: one rule has {most}");
            assert!((packets / 50..packets * 19 / 20).contains(last), "{count}: the last has {last}");
            assert!(used * 3 > others.len(), "{count}: {used} are used");
        }
    }

    #[test]
    fn routes_are_parsed() {
        let routes = Route::parse_all("0.0.0.0/0 192.0.2.1 0,\n10.1.0.0/16 1").expect("two routes");
        assert_eq!(routes[1], Route { prefix: Prefix::of(0x0a01_0000, 16), output: 1 });
        assert_eq!(
            routes.iter().map(|route| route.prefix.range()).collect::<Vec<_>>(),
            [(0, u32::MAX), (0x0a01_0000, 0x0a01_ffff)]
        );
        for wrong in ["", "10.0.0.0/33 1", "10.0.0.0 1", "10.0.0.0/8 out"] {
            assert_eq!(Route::parse_all(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn rules_and_routes_have_the_requested_count() {
        let mut random = Random::new(1);
        let flows = generate_flows(100, &mut random);
        assert_eq!(rules_text(&rules(1_000, &flows, &mut random)).lines().count(), 1_000);
        assert_eq!(rules_text(&rules(10, &flows[..1], &mut random)).lines().count(), 10);
        assert_eq!(routes_text(1, 3, &flows, &mut random), "0.0.0.0/0 0");
        assert_eq!(routes_text(1_000, 3, &flows, &mut random).lines().count(), 1_000);
    }
}
