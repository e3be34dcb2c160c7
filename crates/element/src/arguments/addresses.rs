//! Addresses and prefixes, as literals or as names that `AddressInfo` defines.
//!
//! A suffix of the name selects one of its addresses: `eth0:ip`, `eth0:bcast`, `eth0:ipnet`. A name that is not defined
//! is looked up as a network interface.

use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use packet::address::{ip4_mask, parse_ip4, parse_ip6};
use packet::{Ip4Prefix, Ip6Prefix, MacAddr};

use crate::error::ArgumentError;
use crate::names::NameKind;

use super::parser::FromArgument;
use super::setup::Setup;

/// An IPv4 prefix, or an address as a prefix of that one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip4PrefixOrHost(pub Ip4Prefix);

/// An IPv6 prefix, or an address as a prefix of that one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip6PrefixOrHost(pub Ip6Prefix);

impl FromArgument for MacAddr {
    const KIND: &'static str = "Ethernet address";

    fn from_argument(text: &str, setup: &Setup) -> Result<MacAddr, ArgumentError> {
        MacAddr::from_str(text).ok().or_else(|| named_mac(text, setup)).ok_or(ArgumentError::Syntax)
    }
}

impl FromArgument for Ipv4Addr {
    const KIND: &'static str = "IPv4 address";

    fn from_argument(text: &str, setup: &Setup) -> Result<Ipv4Addr, ArgumentError> {
        parse_ip4(text).ok().or_else(|| named_ip4(text, setup)).ok_or(ArgumentError::Syntax)
    }
}

impl FromArgument for Ip4Prefix {
    const KIND: &'static str = "IPv4 prefix";

    fn from_argument(text: &str, setup: &Setup) -> Result<Ip4Prefix, ArgumentError> {
        let written = Ip4Prefix::parse(text).ok().or_else(|| {
            let (address, mask) = text.rsplit_once('/')?;
            let address = parse_ip4(address).ok().or_else(|| named_ip4(address, setup))?;
            let length = mask.parse().ok().filter(|_| mask.bytes().all(|byte| byte.is_ascii_digit()));
            let mask = match length {
                Some(length) => ip4_mask(length)?,
                None => parse_ip4(mask).ok().or_else(|| named_ip4(mask, setup))?,
            };
            Some(Ip4Prefix { address, mask })
        });
        written.or_else(|| named_ip4_prefix(text, setup)).ok_or(ArgumentError::Syntax)
    }
}

impl FromArgument for Ip4PrefixOrHost {
    const KIND: &'static str = "IPv4 prefix";

    fn from_argument(text: &str, setup: &Setup) -> Result<Ip4PrefixOrHost, ArgumentError> {
        // Order of precedence: a prefix literal, an address, a named prefix.
        let host = || Ipv4Addr::from_argument(text, setup).ok().map(Ip4Prefix::host);
        let prefix = match text.contains('/') {
            true => Ip4Prefix::from_argument(text, setup).ok().or_else(host),
            false => host().or_else(|| Ip4Prefix::from_argument(text, setup).ok()),
        };
        prefix.map(Ip4PrefixOrHost).ok_or(ArgumentError::Syntax)
    }
}

impl FromArgument for Ipv6Addr {
    const KIND: &'static str = "IPv6 address";

    fn from_argument(text: &str, setup: &Setup) -> Result<Ipv6Addr, ArgumentError> {
        parse_ip6(text).ok().or_else(|| named_ip6(text, setup)).ok_or(ArgumentError::Syntax)
    }
}

impl FromArgument for Ip6Prefix {
    const KIND: &'static str = "IPv6 prefix";

    fn from_argument(text: &str, setup: &Setup) -> Result<Ip6Prefix, ArgumentError> {
        let written = Ip6Prefix::parse(text).ok().or_else(|| {
            let (address, length) = text.rsplit_once('/')?;
            Ip6Prefix::new(named_ip6(address, setup)?, length.parse().ok()?)
        });
        written.or_else(|| named_ip6_prefix(text, setup)).ok_or(ArgumentError::Syntax)
    }
}

impl FromArgument for Ip6PrefixOrHost {
    const KIND: &'static str = "IPv6 prefix";

    fn from_argument(text: &str, setup: &Setup) -> Result<Ip6PrefixOrHost, ArgumentError> {
        let host =
            || Ipv6Addr::from_argument(text, setup).ok().and_then(|address| Ip6Prefix::new(address, 128));
        let prefix = match text.contains('/') {
            true => Ip6Prefix::from_argument(text, setup).ok().or_else(host),
            false => host().or_else(|| Ip6Prefix::from_argument(text, setup).ok()),
        };
        prefix.map(Ip6PrefixOrHost).ok_or(ArgumentError::Syntax)
    }
}

/// The bytes that a name is defined as.
fn find<const LENGTH: usize>(kind: NameKind, name: &str, setup: &Setup) -> Option<[u8; LENGTH]> {
    setup.names().find(kind, setup.scope(), name)?.try_into().ok()
}

/// The name without its suffix; `None` if its suffix is not one of `suffixes`.
fn strip<'t>(name: &'t str, suffixes: &[&str]) -> Option<&'t str> {
    match name.rsplit_once(':') {
        None => Some(name),
        Some((name, suffix)) => {
            suffixes.iter().any(|known| known.eq_ignore_ascii_case(suffix)).then_some(name)
        }
    }
}

fn named_mac(name: &str, setup: &Setup) -> Option<MacAddr> {
    let name = strip(name, &["eth", "ether", "ethernet"])?;
    let defined = find(NameKind::Mac, name, setup);
    defined.or_else(|| setup.environment().interface(name)?.link).map(MacAddr)
}

fn named_ip4(name: &str, setup: &Setup) -> Option<Ipv4Addr> {
    if let Some((network, suffix)) = name.rsplit_once(':') {
        if suffix.eq_ignore_ascii_case("bcast") {
            let prefix = named_ip4_prefix(network, setup)?;
            return Some(Ipv4Addr::from_bits(prefix.address.to_bits() | !prefix.mask.to_bits()));
        }
        if suffix.eq_ignore_ascii_case("gw") {
            // A gateway without a name of its own is the network's first address.
            return find(NameKind::Ip4, name, setup).map(Ipv4Addr::from).or_else(|| {
                let prefix = named_ip4_prefix(network, setup)?;
                Some(Ipv4Addr::from_bits(prefix.network().to_bits() | 1))
            });
        }
    }
    let name = strip(name, &["ip", "ip4"])?;
    let defined = find(NameKind::Ip4, name, setup).map(Ipv4Addr::from);
    defined.or_else(|| Some(setup.environment().interface(name)?.ip?.0))
}

fn named_ip4_prefix(name: &str, setup: &Setup) -> Option<Ip4Prefix> {
    let name = strip(name, &["net", "ipnet", "ip4net"])?;
    if let Some([a, b, c, d, e, f, g, h]) = find(NameKind::Ip4Prefix, name, setup) {
        return Some(Ip4Prefix { address: Ipv4Addr::new(a, b, c, d), mask: Ipv4Addr::new(e, f, g, h) });
    }
    let (address, length) = setup.environment().interface(name)?.ip?;
    Ip4Prefix::new(address, length)
}

fn named_ip6(name: &str, setup: &Setup) -> Option<Ipv6Addr> {
    find::<16>(NameKind::Ip6, strip(name, &["ip6"])?, setup).map(Ipv6Addr::from)
}

fn named_ip6_prefix(name: &str, setup: &Setup) -> Option<Ip6Prefix> {
    let bytes: [u8; 17] = find(NameKind::Ip6Prefix, strip(name, &["ip6net"])?, setup)?;
    let (address, length) = bytes.split_first_chunk::<16>()?;
    Ip6Prefix::new(Ipv6Addr::from(*address), *length.first()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::{Descriptor, Environment, Interface};
    use crate::names::Names;
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;
    use packet::Timestamp;

    /// A host with one interface.
    struct Host;

    impl Environment for Host {
        fn now(&self) -> Timestamp {
            Timestamp::default()
        }
        fn steady(&self) -> Timestamp {
            Timestamp::default()
        }
        fn seed(&self) -> u64 {
            0
        }
        fn console(&self, _: &str) {}
        fn wait(&self, _: &[(Descriptor, bool, bool)], _: Option<Timestamp>) -> Vec<Descriptor> {
            Vec::new()
        }
        fn interface(&self, name: &str) -> Option<Interface> {
            let ip = Some((Ipv4Addr::new(10, 7, 0, 1), 16));
            (name == "eth7").then_some(Interface { ip, link: Some([0, 1, 2, 3, 4, 7]) })
        }
    }

    /// Parses each text as a `T` where `net` is 1.0.0.2/24 and 00-00-00-00-00-05; `-` means that an error is expected.
    #[track_caller]
    fn check<T: FromArgument>(texts: &[(&str, &str)], print: impl Fn(T) -> String) {
        let names = Names::new();
        names.define(NameKind::Ip4, "", "net", &[1, 0, 0, 2]);
        names.define(NameKind::Ip4Prefix, "", "net", &[1, 0, 0, 2, 255, 255, 255, 0]);
        names.define(NameKind::Mac, "", "net", &[0, 0, 0, 0, 0, 5]);
        names.define(NameKind::Ip6, "", "net", &(1u128 << 126 | 9).to_be_bytes());
        let setup = Setup::new("box/r", (1, 1), &names, &Host);
        for (text, expected) in texts {
            let printed = T::from_argument(text, &setup).map_or("-".to_string(), &print);
            assert_eq!(printed, *expected, "{text}");
        }
    }

    #[test]
    fn ip4() {
        let addresses = [
            ("9.8.7.6", "9.8.7.6"),
            ("net", "1.0.0.2"),
            ("net:ip", "1.0.0.2"),
            ("net:BCAST", "1.0.0.255"),
            ("net:gw", "1.0.0.1"),
            ("net:eth", "-"),
            ("eth7", "10.7.0.1"),
            ("eth7:bcast", "10.7.255.255"),
            ("eth8", "-"),
            ("1.2.3", "-"),
            ("", "-"),
        ];
        check(&addresses, |address: Ipv4Addr| address.to_string());
    }

    #[test]
    fn ip4_prefixes() {
        let prefixes = [
            ("10/8", "10.0.0.0/8"),
            ("10.1/8", "10.1.0.0/8"),
            ("10/9", "-"),
            ("net/16", "1.0.0.2/16"),
            ("net:ipnet", "1.0.0.2/24"),
            ("eth7", "10.7.0.1/16"),
            ("1.2.3.4", "-"),
            ("1.2.3.4/33", "-"),
            ("1.2.3.4/255.255.0.0", "1.2.3.4/16"),
        ];
        check(&prefixes, |prefix: Ip4Prefix| prefix.to_string());
        let hosts = [("1.2.3.4", "1.2.3.4/32"), ("net", "1.0.0.2/32"), ("10/8", "10.0.0.0/8"), ("x/8", "-")];
        check(&hosts, |prefix: Ip4PrefixOrHost| prefix.0.to_string());
    }

    #[test]
    fn others() {
        check(
            &[("net", "00-00-00-00-00-05"), ("eth7:eth", "00-01-02-03-04-07"), ("a:b", "-")],
            |mac: MacAddr| mac.to_string(),
        );
        check(&[("net:ip6", "4000::9"), ("::1", "::1"), ("net:ip", "-")], |address: Ipv6Addr| {
            address.to_string()
        });
        let print = |prefix: Ip6Prefix| alloc::format!("{} {}", prefix.address, prefix.length);
        check(&[("net/64", "4000::9 64"), ("3ffe::/16", "3ffe:: 16"), ("3ffe::", "-")], print);
        check(&[("3ffe::", "3ffe:: 128")], |prefix: Ip6PrefixOrHost| print(prefix.0));
    }
}
