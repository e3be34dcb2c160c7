//! Frames of any bytes at a port with bound addresses.

use packet::MacAddr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use switch::SourceGuard;

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const IP4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const IP6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

/// The guard takes or refuses the frame. What it takes without VLAN tags has a bound source, or none.
pub fn frame(bytes: &[u8]) {
    let guard = SourceGuard::new(Some(MAC), [(IpAddr::from(IP4), 32), (IpAddr::from(IP6), 128)]);
    if guard.check(bytes).is_err() {
        return;
    }
    let derived = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, 1);
    let ip6 = || Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[22..38]).unwrap());
    let is_bound = match bytes[12..14] {
        [0x08, 0x00] => [IP4.octets(), [0; 4]].iter().any(|source| bytes[26..30] == *source),
        [0x08, 0x06] => [IP4.octets(), [0; 4]].iter().any(|source| bytes[28..32] == *source),
        [0x86, 0xdd] => [IP6, derived, Ipv6Addr::UNSPECIFIED].contains(&ip6()),
        _ => true,
    };
    assert!(is_bound, "{bytes:02x?}");
}
