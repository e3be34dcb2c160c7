//! `IP6NDAdvertiser`: answers IPv6 neighbour solicitations.

use core::net::Ipv6Addr;

use element::arguments::{Ip6PrefixOrHost, Raw};
use element::prelude::*;
use element::text::words;
use packet::{Ip6Prefix, MacAddr};

use super::neighbour::{Endpoint, advertise, parse_solicitation};

/// Answers IPv6 neighbour solicitations (RFC 4861) for a set of addresses.
///
/// Each argument gives one or more addresses or prefixes, and the Ethernet address to answer with. The entry with
/// the longest matching prefix answers; among equal prefixes, the last one. Advertisements have the router flag set.
/// Invalid solicitations are dropped as `no_solicitation`, and those for other addresses as `unknown_target`.
/// ```click
/// asker :: IP6NDSolicitor(2001:db8::1, 2:2:2:2:2:2);
/// InfiniteSource(DATA \<6000000000003b4020010db800000000000000000000000120010db8000000000000000000000002>, LIMIT 1)
///     -> GetIP6Address(24) -> asker;
/// asker[0] -> sent :: Classifier(0/040404040404 6/020202020202 12/86dd, -);
/// asker[1] -> IP6NDAdvertiser(2001:db8::/32 4:4:4:4:4:4) -> answers :: Counter -> [1] asker;
/// sent[0] -> right :: Counter -> Discard;
/// sent[1] -> wrong :: Counter -> Discard;
/// DriverManager(wait 1ms, stop);
/// ```
/// ```expect
/// answers.count = 1
/// answers.byte_count = 86
/// right.count = 1
/// wrong.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "IP6NDAdvertiser",
    group = "ethernet",
    order_insensitive,
    shards = "independent",
    see = "IP6NDSolicitor, ARPResponder",
    drops = "unknown_target, no_solicitation",
    fates = "made, consumed"
)]
pub struct IP6NDAdvertiserArgs {
    /// Addresses or prefixes with their Ethernet address: `IP6/MASK [IP6/MASK...] ETH`.
    #[arg(rest)]
    entries: Vec<Raw>,
}

pub struct IP6NDAdvertiser {
    entries: Vec<(Ip6Prefix, MacAddr)>,
}

impl Filter for IP6NDAdvertiser {
    type Args = IP6NDAdvertiserArgs;

    fn new(args: IP6NDAdvertiserArgs, setup: &mut Setup) -> Result<IP6NDAdvertiser, SetupError> {
        let (mut entries, mut errors) = (Vec::new(), SetupError::default());
        for (index, argument) in args.entries.iter().enumerate() {
            let (mut prefixes, mut mac) = (Vec::new(), None);
            for word in words(&argument.0) {
                if let Ok(prefix) = Ip6PrefixOrHost::from_argument(&word, setup) {
                    prefixes.push(prefix.0);
                } else if let Ok(address) = MacAddr::from_argument(&word, setup) {
                    if mac.replace(address).is_some() {
                        let problem = "has more than one Ethernet address";
                        errors.merge(in_argument(index, argument, problem));
                    }
                } else {
                    errors.merge(in_argument(index, argument, "should be `IP6/MASK ETHADDR'"));
                    break;
                }
            }
            if prefixes.is_empty() {
                errors.merge(in_argument(index, argument, "had no IP6 address and masks"));
            }
            let mac = mac.unwrap_or(MacAddr::ZERO);
            entries.extend(prefixes.into_iter().map(|prefix| (prefix, mac)));
        }
        errors.into_result()?;
        Ok(IP6NDAdvertiser { entries })
    }

    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict {
        let Some(solicitation) = parse_solicitation(packet.data()) else {
            return Verdict::Drop(packet, Reason::NO_SOLICITATION);
        };
        let Some(mac) = self.lookup(solicitation.target) else {
            return Verdict::Drop(packet, Reason::UNKNOWN_TARGET);
        };
        let answer = advertise(cx, Endpoint { mac, ip: solicitation.target }, solicitation.sender);
        cx.end(packet, Fate::Consumed);
        answer.map_or(Verdict::Taken, Verdict::Pass)
    }
}

impl IP6NDAdvertiser {
    fn lookup(&self, address: Ipv6Addr) -> Option<MacAddr> {
        let matching = self.entries.iter().filter(|(prefix, _)| prefix.contains(address));
        matching.max_by_key(|(prefix, _)| prefix.length).map(|(_, mac)| *mac)
    }
}

/// An error in the argument of this number.
fn in_argument(index: usize, argument: &Raw, problem: &str) -> SetupError {
    SetupError::in_argument(&argument.0, format!("argument {index} {problem}"), format!("an entry {problem}"))
}
