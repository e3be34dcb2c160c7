//! Tunnels to switches on other hosts.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::size::{TunnelMtu, UdpPort, Vni};
use crate::text::as_text;

/// The headers of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TunnelKind {
    /// VXLAN, RFC 7348.
    Vxlan,
    /// GENEVE, RFC 8926.
    Geneve,
}

impl TunnelKind {
    /// The UDP port that is used if none is given: the one that IANA assigned.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Vxlan => 4789,
            Self::Geneve => 6081,
        }
    }
}

impl fmt::Display for TunnelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vxlan => "vxlan",
            Self::Geneve => "geneve",
        })
    }
}

/// The address of one host, of IPv4 or IPv6: not link-local, as that means nothing without an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostAddress(IpAddr);

/// Text that is not the address of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAddressError;

impl fmt::Display for HostAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the address of a host is one of IPv4 or IPv6 such as 192.0.2.2: unicast, and not link-local",
        )
    }
}

impl std::error::Error for HostAddressError {}

impl HostAddress {
    /// The address.
    pub fn ip(self) -> IpAddr {
        self.0
    }
}

impl FromStr for HostAddress {
    type Err = HostAddressError;

    fn from_str(text: &str) -> Result<Self, HostAddressError> {
        let address: IpAddr = text.parse().map_err(|_| HostAddressError)?;
        let is_group = address.is_unspecified() || address.is_multicast();
        let is_one = match address {
            IpAddr::V4(address) => !address.is_broadcast() && !address.is_link_local(),
            // An IPv4 address in the form of IPv6 has two texts.
            IpAddr::V6(address) => !address.is_unicast_link_local() && address.to_ipv4_mapped().is_none(),
        };
        if is_one && !is_group { Ok(Self(address)) } else { Err(HostAddressError) }
    }
}

impl fmt::Display for HostAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

as_text!(HostAddress, "HostAddress", "^[0-9a-fA-F:.]+$", "The address of a host: IPv4 or IPv6.");

/// A tunnel to a switch on another host, as a port's driver describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// The headers.
    pub kind: TunnelKind,
    /// The address of the other host.
    pub remote: HostAddress,
    /// The number of the virtual network.
    pub vni: Vni,
    /// The address of this host. Absent: the one that the host's routes choose.
    pub local: Option<HostAddress>,
    /// The UDP port of both hosts.
    pub udp_port: u16,
    /// The MTU for packets in the tunnel. Absent: the greatest that the path allows.
    pub mtu: Option<TunnelMtu>,
}

/// The two addresses of a tunnel, local and remote, are not of the same family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelFamilies(HostAddress, HostAddress);

impl fmt::Display for TunnelFamilies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(local, remote) = self;
        write!(f, "{local} and {remote} are not of the same family: give two addresses of IPv4 or of IPv6")
    }
}

impl std::error::Error for TunnelFamilies {}

impl Tunnel {
    /// A tunnel with the default port of its kind, unless one is given.
    pub(crate) fn new(
        kind: TunnelKind,
        (remote, local): (HostAddress, Option<HostAddress>),
        vni: Vni,
        udp_port: Option<UdpPort>,
        mtu: Option<TunnelMtu>,
    ) -> Self {
        let udp_port = udp_port.map_or(kind.default_port(), UdpPort::number);
        Self { kind, remote, vni, local, udp_port, mtu }
    }

    /// Checks that both addresses are of the same family.
    pub fn check(&self) -> Result<(), TunnelFamilies> {
        let other = self.local.filter(|local| local.0.is_ipv4() != self.remote.0.is_ipv4());
        other.map_or(Ok(()), |local| Err(TunnelFamilies(local, self.remote)))
    }

    /// Whether two tunnels would receive the same packets on one host.
    pub fn conflicts(&self, other: &Self) -> bool {
        let same_local = match (self.local, other.local) {
            (Some(one), Some(other)) => one == other,
            // The local address is found later.
            _ => true,
        };
        (self.remote, self.vni, self.udp_port) == (other.remote, other.vni, other.udp_port) && same_local
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tunnel(remote: &str, local: Option<&str>, vni: u32, kind: TunnelKind) -> Tunnel {
        let ip = |text: &str| text.parse().expect("an address");
        Tunnel::new(kind, (ip(remote), local.map(ip)), vni.try_into().expect("a number"), None, None)
    }

    #[test]
    fn addresses_are_those_of_one_host() {
        for good in ["192.0.2.2", "127.0.0.1", "2001:db8::2", "::1"] {
            assert_eq!(good.parse().map(HostAddress::ip), Ok(good.parse::<IpAddr>().expect("an address")));
        }
        let bad = ["0.0.0.0", "224.0.0.1", "255.255.255.255", "169.254.0.1", "::", "ff02::1", "fe80::1"];
        for bad in bad.into_iter().chain(["::ffff:192.0.2.2", "", "host", "192.0.2.2:80", "2001:db8::/64"]) {
            assert_eq!(bad.parse::<HostAddress>(), Err(HostAddressError), "{bad}");
        }
        let check = |local| tunnel("192.0.2.2", local, 1, TunnelKind::Vxlan).check();
        assert_eq!([None, Some("192.0.2.1")].map(check), [Ok(()); 2]);
        assert!(check(Some("::1")).is_err());
    }

    #[test]
    fn tunnels_that_receive_the_same_conflict() {
        let one = tunnel("192.0.2.2", None, 1, TunnelKind::Vxlan);
        for (remote, local, vni, kind, expected) in [
            ("192.0.2.2", None, 1, TunnelKind::Vxlan, true),
            ("192.0.2.2", Some("192.0.2.1"), 1, TunnelKind::Vxlan, true),
            ("192.0.2.3", None, 1, TunnelKind::Vxlan, false),
            ("192.0.2.2", None, 2, TunnelKind::Vxlan, false),
            ("192.0.2.2", None, 1, TunnelKind::Geneve, false),
        ] {
            assert_eq!(one.conflicts(&tunnel(remote, local, vni, kind)), expected);
        }
        let [one, other] =
            ["192.0.2.1", "192.0.2.9"].map(|local| tunnel("192.0.2.2", Some(local), 1, TunnelKind::Vxlan));
        assert!(!one.conflicts(&other));
    }
}
