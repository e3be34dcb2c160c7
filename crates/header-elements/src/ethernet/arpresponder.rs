//! `ARPResponder`: answers ARP queries.

use alloc::collections::{BTreeMap, BTreeSet};
use core::net::Ipv4Addr;

use element::arguments::{Ip4PrefixOrHost, Raw};
use element::prelude::*;
use element::text::words;
use packet::{ArpView, EtherType, Ip4Prefix, MacAddr, view::arp};

use super::arp::{Endpoint, FRAME_LENGTH, reply};
use super::header::{LENGTH, read_u16};
use super::vlan::{annotation, set_annotation};

/// Answers ARP queries (RFC 826) for a set of addresses.
///
/// Each argument gives one or more IPv4 addresses or prefixes, and the Ethernet address to answer with. The entry
/// with the longest matching prefix answers. The query becomes the reply and keeps its device and VLAN annotations. All
/// other packets go to output 1, or are dropped as `unknown_target`. `ARPResponder(NAME)` uses a name that stands for
/// both kinds of address.
/// ```click
/// InfiniteSource(DATA \<ffffffffffff 020202020202 0806 0001 0800 06 04 0001
///                       020202020202 01000001 000000000000 01000002>, LIMIT 2, STOP true)
///     -> r :: ARPResponder(1.0.0.0/24 4:4:4:4:4:4)
///     -> c :: Classifier(0/020202020202 6/040404040404 20/0002 22/040404040404 28/01000002, -);
/// r[1] -> other :: Counter -> Discard;
/// c[0] -> right :: Counter -> Discard;
/// c[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// right.count = 2
/// right.byte_count = 84
/// wrong.count = 0
/// other.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "ARPResponder",
    group = "ethernet",
    ports = "1/1-2",
    processing = "a/ah",
    order_insensitive,
    shards = "independent",
    see = "ARPQuerier, ARPFaker, AddressInfo",
    drops = "unknown_target",
    fates = "made, consumed"
)]
pub struct ARPResponderArgs {
    /// Addresses or prefixes with their Ethernet address: `IP/MASK [IP/MASK...] ETH`.
    #[arg(rest)]
    entries: Vec<Raw>,
}

pub struct ARPResponder {
    /// Entries; each one precedes those that contain it.
    entries: Vec<Entry>,
    /// Whether handlers changed the entries, so that they are no longer those of the arguments.
    is_edited: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    prefix: Ip4Prefix,
    mac: MacAddr,
}

impl Filter for ARPResponder {
    type Args = ARPResponderArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("table", "The entries, one per line.", |responder| {
            let lines = responder.entries.iter().map(|entry| format!("{} {}\n", entry.prefix, entry.mac));
            lines.collect()
        }),
        Handler::read_with("lookup", "The Ethernet address for an IP address.", |responder, cx, value| {
            let ip = cx.argument(value).map_err(|_| HandlerError::new("expected IP address"))?;
            Ok(responder.lookup(ip).map_or_else(String::new, |mac| mac.to_string()))
        }),
        Handler::read_with("config", "The configuration, with the present entries.", |responder, cx, _| {
            if !responder.is_edited {
                return Ok(cx.configuration());
            }
            let entries = responder.entries.iter().map(|entry| format!("{} {}", entry.prefix, entry.mac));
            Ok(entries.collect::<Vec<_>>().join(", "))
        }),
        Handler::edit("add", "Adds entries: `IP/MASK [IP/MASK...] ETH`.", |responder, cx, value| {
            let name = cx.name();
            for entry in parse(value, &cx.setup(&name))
                .map_err(|text| HandlerError::with_code(HandlerError::UNSPECIFIED, text))?
            {
                add(&mut responder.entries, entry);
                responder.is_edited = true;
            }
            Ok(())
        }),
        Handler::edit("remove", "Removes the entry of an `IP/MASK`.", |responder, cx, value| {
            let prefix: Ip4PrefixOrHost =
                cx.argument(value).map_err(|_| HandlerError::new("expected IP/MASK"))?;
            let prefix = network(prefix.0);
            let found = responder.entries.iter().position(|entry| entry.prefix == prefix);
            let found = found.ok_or_else(|| HandlerError::new(format!("{prefix} not found")))?;
            responder.entries.remove(found);
            responder.is_edited = true;
            Ok(())
        }),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: ARPResponderArgs, setup: &mut Setup) -> Result<ARPResponder, SetupError> {
        let (mut entries, mut errors) = (Vec::new(), SetupError::default());
        for (index, argument) in args.entries.iter().enumerate() {
            match parse(&argument.0, setup) {
                Ok(parsed) => entries.extend(parsed),
                Err(problem) => {
                    let text = format!("argument {index}: {problem}");
                    errors.merge(SetupError::in_argument(&argument.0, text, problem));
                }
            }
        }
        errors.into_result()?;
        let mut table = Builder::default();
        for entry in entries {
            if table.add(entry) {
                setup.warn(format!("multiple entries for {}", entry.prefix));
            }
        }
        Ok(ARPResponder { entries: table.finish(), is_edited: false })
    }

    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict {
        match self.answer(cx, packet.data()) {
            Some(mut answer) => {
                answer.set_device(packet.device());
                set_annotation(&mut answer, annotation(&packet));
                cx.end(packet, Fate::Consumed);
                Verdict::Pass(answer)
            }
            None => Verdict::Divert(packet, Reason::UNKNOWN_TARGET),
        }
    }
}

impl ARPResponder {
    fn lookup(&self, ip: Ipv4Addr) -> Option<MacAddr> {
        self.entries.iter().find(|entry| entry.prefix.contains(ip)).map(|entry| entry.mac)
    }

    /// The reply to a frame, if it is a query for a configured address.
    fn answer(&self, cx: &mut Context, frame: &[u8]) -> Option<Packet> {
        let view = ArpView::new(frame.get(LENGTH..)?).filter(|_| frame.len() >= FRAME_LENGTH)?;
        let is_query = read_u16(frame, 12) == Some(EtherType::ARP.0)
            && view.hardware() == arp::HARDWARE_ETHERNET
            && view.protocol() == EtherType::IP4.0
            && view.operation() == arp::REQUEST;
        let mac = self.lookup(view.target_ip()).filter(|_| is_query)?;
        let sender = Endpoint { mac, ip: view.target_ip() };
        reply(cx, sender, Endpoint { mac: view.sender_mac(), ip: view.sender_ip() })
    }
}

/// Parses prefixes and an Ethernet address, in any order.
fn parse(text: &str, setup: &Setup) -> Result<Vec<Entry>, &'static str> {
    let words = words(text);
    let (mut prefixes, mut mac) = (Vec::new(), None);
    for word in &words {
        if let Ok(prefix) = Ip4PrefixOrHost::from_argument(word, setup) {
            prefixes.push(network(prefix.0));
        } else if let Ok(address) = MacAddr::from_argument(word, setup) {
            if mac.replace(address).is_some() {
                return Err("more than one ETH");
            }
        } else {
            return Err("expected IP/MASK ETH");
        }
    }
    // A name may stand for an IP address and an Ethernet address.
    let both = || words.iter().find_map(|word| MacAddr::from_argument(word, setup).ok());
    let mac = mac.or_else(both);
    if prefixes.is_empty() {
        return Err("missing IP/MASK");
    }
    let mac = mac.ok_or("missing ETH")?;
    Ok(prefixes.into_iter().map(|prefix| Entry { prefix, mac }).collect())
}

/// The prefix with its host bits cleared.
fn network(prefix: Ip4Prefix) -> Ip4Prefix {
    Ip4Prefix { address: prefix.network(), mask: prefix.mask }
}

/// Adds entries as `add` does, but in linear time if all masks are prefixes. Stops: a hundred thousand addresses.
#[derive(Default)]
struct Builder {
    /// The entries in the order in which they came.
    entries: Vec<Entry>,
    /// For each entry, those that stand before it because it contains them.
    before: Vec<Vec<usize>>,
    /// The entries that no other one contained when they came.
    last: Vec<usize>,
    numbers: BTreeMap<Ip4Prefix, usize>,
    masks: BTreeSet<Ipv4Addr>,
}

impl Builder {
    /// Adds an entry. Returns whether it replaced one.
    fn add(&mut self, new: Entry) -> bool {
        if let Some(old) = self.numbers.get(&new.prefix).and_then(|number| self.entries.get_mut(*number)) {
            *old = new;
            return true;
        }
        let number = self.entries.len();
        self.entries.push(new);
        self.before.push(Vec::new());
        self.numbers.insert(new.prefix, number);
        self.masks.insert(new.prefix.mask);
        // Of the entries that contain the new one, the narrowest stands first.
        let wider = self.masks.range(..new.prefix.mask).rev();
        let mut containers =
            wider.filter_map(|mask| self.numbers.get(&network(Ip4Prefix { mask: *mask, ..new.prefix })));
        match containers.next().and_then(|container| self.before.get_mut(*container)) {
            Some(before) => before.push(number),
            None => self.last.push(number),
        }
        false
    }

    /// The entries in the order of the table.
    fn finish(self) -> Vec<Entry> {
        if self.masks.iter().any(|mask| mask.to_bits().leading_ones() != mask.to_bits().count_ones()) {
            let mut entries = Vec::new();
            for entry in self.entries {
                add(&mut entries, entry);
            }
            return entries;
        }
        let mut sorted = Vec::with_capacity(self.entries.len());
        let mut waiting: Vec<(usize, bool)> = self.last.iter().rev().map(|number| (*number, false)).collect();
        while let Some((number, is_placed)) = waiting.pop() {
            if is_placed {
                sorted.extend(self.entries.get(number));
            } else {
                waiting.push((number, true));
                let before = self.before.get(number).into_iter().flatten();
                waiting.extend(before.rev().map(|number| (*number, false)));
            }
        }
        sorted
    }
}

/// Inserts an entry before the first one that contains it, or replaces the one for the same prefix. Returns whether it
/// replaced one.
fn add(entries: &mut Vec<Entry>, new: Entry) -> bool {
    if let Some(old) = entries.iter_mut().find(|entry| entry.prefix == new.prefix) {
        *old = new;
        return true;
    }
    let wider =
        |entry: &Entry| entry.prefix.contains(new.prefix.address) && entry.prefix.mask < new.prefix.mask;
    let position = entries.iter().position(wider).unwrap_or(entries.len());
    entries.insert(position, new);
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_entries_are_ordered_as_one_by_one() {
        let mut state = 1_u32;
        let mut random = move |bound: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % bound
        };
        for round in 0..300 {
            let (mut entries, mut table) = (Vec::new(), Builder::default());
            for number in 0..30 {
                let bits = [0, 8, 12, 16, 24, 32][random(6) as usize];
                let mask = if round % 7 == 0 { random(5) << 24 } else { (u64::MAX << (32 - bits)) as u32 };
                let address = Ipv4Addr::from_bits(0x0a00_0000 | random(3) << 20 | random(3) << 8 | random(3));
                let prefix = network(Ip4Prefix { address, mask: Ipv4Addr::from_bits(mask) });
                let entry = Entry { prefix, mac: MacAddr([number; 6]) };
                assert_eq!(add(&mut entries, entry), table.add(entry));
            }
            assert_eq!(entries, table.finish());
        }
    }
}
