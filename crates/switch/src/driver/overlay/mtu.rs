//! The MTU of a tunnel: what its path leaves of the path's own MTU.

use super::format::{ETHERNET, HEADER, UDP};
use crate::batch::MAX_FRAME;
use std::net::IpAddr;
use std::time::Duration;

/// Lengths of the outer IP headers.
const IP4: u16 = 20;
const IP6: u16 = 40;
/// How long a smaller MTU is used before a greater one is tried (RFC 1191, section 6.3).
const MEMORY: Duration = Duration::from_secs(600);
/// Common MTUs (RFC 1191, section 7.1): tried in turn when a router does not say which one it has.
const PLATEAUS: [u16; 8] = [4352, 2002, 1492, 1280, 1006, 508, 296, 68];

/// Bytes that a tunnel adds to the packets in it: the inner Ethernet header, and the outer headers from IP on.
pub(super) fn overhead(remote: IpAddr) -> u16 {
    let ip = if remote.is_ipv4() { IP4 } else { IP6 };
    (ETHERNET + HEADER + UDP) as u16 + ip
}

/// The MTU of a tunnel.
#[derive(Debug)]
pub(super) struct TunnelMtu {
    overhead: u16,
    /// The limit that was set for the port.
    limit: u16,
    /// The MTU of the path when the tunnel was opened. A connected socket does not say later ones.
    path: u16,
    /// A smaller MTU of the path, found by a packet that was refused, and when it was.
    found: Option<(u16, Duration)>,
}

impl TunnelMtu {
    /// The MTU on a path with this MTU; at most `limit`.
    pub(super) fn new(remote: IpAddr, path: u16, limit: Option<u16>) -> Self {
        let limit = limit.unwrap_or(u16::MAX).min((MAX_FRAME - ETHERNET) as u16);
        Self { overhead: overhead(remote), limit, path, found: None }
    }

    /// The longest packet that the tunnel carries: from the network header on, with VLAN tags.
    pub(super) fn get(&self) -> u16 {
        let path = self.found.map_or(self.path, |(found, _)| found.min(self.path));
        path.saturating_sub(self.overhead).min(self.limit)
    }

    /// Forgets a smaller MTU after a while, so that a greater one is tried.
    pub(super) fn expire(&mut self, now: Duration) {
        self.found = self.found.filter(|(_, at)| now.saturating_sub(*at) < MEMORY);
    }

    /// Notes that the kernel refused to send a frame of this length. `told`: the MTU of the path that it gave as the reason.
    pub(super) fn refuse(&mut self, frame: usize, told: Option<u16>, now: Duration) {
        let length =
            u16::try_from(frame.saturating_sub(ETHERNET)).unwrap_or(u16::MAX).saturating_add(self.overhead);
        let guess = || PLATEAUS.into_iter().find(|plateau| *plateau < length).unwrap_or(PLATEAUS[7]);
        self.found = Some((told.filter(|told| *told < length).unwrap_or_else(guess), now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunnel_takes_its_headers_from_the_path() {
        let mtu = |remote: &str, path, limit| TunnelMtu::new(remote.parse().unwrap(), path, limit).get();
        assert_eq!((mtu("192.0.2.2", 1500, None), mtu("2001:db8::2", 1500, None)), (1450, 1430));
        assert_eq!((mtu("192.0.2.2", 1500, Some(1400)), mtu("192.0.2.2", 1500, Some(1500))), (1400, 1450));
        // A switch has no longer frames.
        assert_eq!((mtu("192.0.2.2", 9000, None), mtu("192.0.2.2", 20, None)), (2034, 0));
    }

    #[test]
    fn smaller_mtus_are_learned_and_forgotten() {
        let time = Duration::from_secs;
        let mut mtu = TunnelMtu::new("192.0.2.2".parse().unwrap(), 1500, None);
        // A router said which one it has.
        mtu.refuse(1464, Some(1400), time(2));
        mtu.expire(time(601));
        assert_eq!(mtu.get(), 1350);
        mtu.expire(time(602));
        assert_eq!(mtu.get(), 1450);
        // It did not, or what it said is impossible.
        mtu.refuse(1464, None, time(700));
        assert_eq!(mtu.get(), 1492 - 50);
        mtu.refuse(1456, Some(1500), time(701));
        mtu.expire(time(1300));
        assert_eq!(mtu.get(), 1280 - 50);
        mtu.expire(time(1301));
        assert_eq!(mtu.get(), 1450);
        for frame in [14, 0] {
            mtu.refuse(frame, Some(0), time(1302));
            assert_eq!(mtu.get(), 0);
        }
    }
}
