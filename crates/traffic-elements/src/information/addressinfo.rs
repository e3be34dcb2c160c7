//! `AddressInfo`: names for addresses.

use core::net::{Ipv4Addr, Ipv6Addr};

use element::arguments::Raw;
use element::prelude::*;
use element::{NameKind, text};
use packet::{Ip4Prefix, Ip6Prefix, MacAddr};

use super::problems::Problems;

/// Defines names for addresses. Each argument is `NAME ADDRESS...`.
///
/// An address may be IPv4, IPv4 with a prefix length, IPv6, IPv6 with a prefix length, or Ethernet. A name may stand
/// for one of each kind. Arguments of other elements can then use `NAME`, or select an address with a suffix:
/// `NAME:ip`, `NAME:ipnet`, `NAME:bcast`, `NAME:gw`, `NAME:ip6`, `NAME:ip6net`, `NAME:eth`. A name is valid in the
/// compound element that defines it.
/// ```click
/// AddressInfo(here 10.0.0.1/24 0:1:2:3:4:5, there 10.0.0.2);
/// InfiniteSource(LENGTH 8, LIMIT 2, STOP true)
///     -> u :: UDPIPEncap(here, 1000, there, 2000)
///     -> c :: CheckIPHeader(BADSRC here, GOODDST here:bcast) -> Discard;
/// ```
/// ```expect
/// u.src = 10.0.0.1
/// c.drops = 2
/// c.losses = bad_source 2
/// ```
#[derive(Args)]
#[element(
    name = "AddressInfo",
    group = "information",
    ports = "0/0",
    phase = "names",
    shards = "independent",
    see = "PortInfo, AnnotationInfo"
)]
pub struct AddressInfoArgs {
    /// Names, each followed by its addresses.
    #[arg(rest)]
    names: Vec<Raw>,
}

pub struct AddressInfo;

/// The address kinds that a text can be parsed as.
#[derive(Clone, Copy, Default)]
struct ParsedAddresses {
    mac: Option<MacAddr>,
    ip4: Option<Ipv4Addr>,
    ip4_prefix: Option<Ip4Prefix>,
    ip6: Option<Ipv6Addr>,
    ip6_prefix: Option<Ip6Prefix>,
}

impl ParsedAddresses {
    fn of(text: &str, setup: &Setup) -> ParsedAddresses {
        let mut readings =
            ParsedAddresses { mac: MacAddr::from_argument(text, setup).ok(), ..ParsedAddresses::default() };
        readings.ip4 = Ipv4Addr::from_argument(text, setup).ok();
        if readings.ip4.is_none()
            && let Ok(prefix) = Ip4Prefix::from_argument(text, setup)
        {
            readings.ip4_prefix = Some(prefix);
            // Bits beyond the prefix make it a host's address as well.
            readings.ip4 = (prefix.network() != prefix.address).then_some(prefix.address);
        }
        readings.ip6 = Ipv6Addr::from_argument(text, setup).ok();
        if readings.ip6.is_none()
            && let Ok(prefix) = Ip6Prefix::from_argument(text, setup)
        {
            readings.ip6_prefix = Some(prefix);
            readings.ip6 = (prefix.network() != prefix.address).then_some(prefix.address);
        }
        readings
    }

    fn kinds(&self) -> [bool; 5] {
        [
            self.mac.is_some(),
            self.ip4.is_some(),
            self.ip4_prefix.is_some(),
            self.ip6.is_some(),
            self.ip6_prefix.is_some(),
        ]
    }

    /// Defines `name` for the kinds in `self`, except where the text is ambiguous and the name is already `taken` for
    /// that kind.
    fn define(&self, setup: &Setup, name: &str, taken: [bool; 5]) {
        let is_alone = self.kinds().iter().filter(|is_read| **is_read).count() == 1;
        let define = |kind, index: usize, bytes: &[u8]| {
            if is_alone || !taken.get(index).copied().unwrap_or(false) {
                setup.names().define(kind, setup.scope(), name, bytes);
            }
        };
        if let Some(mac) = self.mac {
            define(NameKind::Mac, 0, &mac.0);
        }
        if let Some(address) = self.ip4 {
            define(NameKind::Ip4, 1, &address.octets());
        }
        if let Some(prefix) = self.ip4_prefix {
            define(NameKind::Ip4Prefix, 2, &[prefix.address.octets(), prefix.mask.octets()].concat());
        }
        if let Some(address) = self.ip6 {
            define(NameKind::Ip6, 3, &address.octets());
        }
        if let Some(prefix) = self.ip6_prefix {
            define(NameKind::Ip6Prefix, 4, &[&prefix.address.octets()[..], &[prefix.length]].concat());
        }
    }
}

impl Element for AddressInfo {
    type Args = AddressInfoArgs;

    fn new(args: AddressInfoArgs, setup: &mut Setup) -> Result<AddressInfo, SetupError> {
        let mut problems = Problems::default();
        for Raw(argument) in &args.names {
            let words = text::words(argument);
            let (name, addresses) = match words.as_slice() {
                [] => continue,
                [name, addresses @ ..] => (name, addresses),
            };
            if addresses.is_empty() {
                problems.add("expected ‘NAME [ADDRS]’");
            }
            let mut taken = [false; 5];
            for address in addresses {
                let readings = ParsedAddresses::of(address, setup);
                let kinds = readings.kinds();
                if !kinds.contains(&true) {
                    problems.add(format!("‘{address}’ is not a recognizable address"));
                }
                readings.define(setup, name, taken);
                taken.iter_mut().zip(kinds).for_each(|(taken, is_read)| *taken |= is_read);
            }
        }
        problems.into_result().map(|()| AddressInfo)
    }
}
