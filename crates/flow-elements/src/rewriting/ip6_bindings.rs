//! Addresses and ports of IPv6, and those that stand for them, for `AddressTranslator`.

use core::net::Ipv6Addr;

use element::prelude::*;
use flow::{Index, Key, Seed};

/// Bindings that are looked at for one that may be replaced. A flood of new flows could otherwise make each packet expensive.
const MAX_SEARCH: usize = 64;

/// An address with a port, or with the identifier of an ICMPv6 echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) address: Ipv6Addr,
    pub(super) port: u16,
}

/// A flow, as the side sees it that begins it.
#[derive(Clone, Copy)]
pub(super) struct Ip6Flow {
    pub(super) protocol: u8,
    /// The end that gets another address.
    pub(super) own: Endpoint,
    pub(super) other: Endpoint,
}

/// Bindings of endpoints to those of a pool.
pub(super) struct Bindings {
    /// The addresses of the pool; one address, if it is divided by ports.
    addresses: Vec<Ipv6Addr>,
    /// The first port, and the number of ports.
    ports: Option<(u16, usize)>,
    seed: Seed,
    index: Index,
    /// The bindings of the first endpoints of the pool: what is bound, and when it was used last.
    bound: Vec<([u128; 3], Timestamp)>,
    /// Where to look next for a binding that may be replaced.
    cursor: usize,
    timeout: Timestamp,
}

impl Bindings {
    /// No bindings yet. A binding that was not used for `timeout` may be replaced when no endpoint is free.
    pub(super) fn new(addresses: Vec<Ipv6Addr>, ports: Option<(u16, usize)>, timeout: Timestamp) -> Bindings {
        let (seed, index, bound) = (Seed::new(0, 0), Index::new(), Vec::new());
        Bindings { addresses, ports, seed, index, bound, cursor: 0, timeout }
    }

    /// Sets the secret of the hashes, before the first binding.
    pub(super) fn set_seed(&mut self, seed: Seed) {
        self.seed = seed;
    }

    /// Whether endpoints differ in their ports.
    pub(super) fn has_ports(&self) -> bool {
        self.ports.is_some()
    }

    /// The number of bindings.
    pub(super) fn len(&self) -> usize {
        self.bound.len()
    }

    /// What identifies a binding: of a pool of addresses, the address alone.
    fn key(&self, flow: Ip6Flow) -> [u128; 3] {
        let Ip6Flow { protocol, own, other } = flow;
        match self.has_ports() {
            false => [own.address.to_bits(), 0, 0],
            true => {
                let ports = u128::from(own.port) << 16 | u128::from(other.port);
                [own.address.to_bits(), other.address.to_bits(), u128::from(protocol) << 32 | ports]
            }
        }
    }

    /// The endpoint of the pool for a flow. `begins`: whether the flow may get a new one.
    pub(super) fn assign(&mut self, flow: Ip6Flow, now: Timestamp, begins: bool) -> Result<Endpoint, Reason> {
        let key = self.key(flow);
        let hash = key.hash(self.seed);
        let known =
            self.index.find(hash, |number| self.bound.get(number as usize).is_some_and(|(of, _)| *of == key));
        let number = match known {
            Some(number) => number as usize,
            None if !begins => return Err(Reason::NO_MAPPING),
            None => {
                let number = self.replaceable(now).ok_or(Reason::NO_FREE_MAPPING)?;
                match self.bound.get_mut(number) {
                    Some((old, _)) => {
                        self.index.remove(old.hash(self.seed), number as u32);
                        *old = key;
                    }
                    None => self.bound.push((key, now)),
                }
                self.index.insert(hash, number as u32);
                number
            }
        };
        self.touch(number, now);
        let port = self.ports.map_or(flow.own.port, |(first, _)| first.wrapping_add(number as u16));
        let address = self.addresses.get(if self.has_ports() { 0 } else { number });
        address.map(|address| Endpoint { address: *address, port }).ok_or(Reason::NO_FREE_MAPPING)
    }

    /// The number of an endpoint that is free, or whose binding may be replaced.
    fn replaceable(&mut self, now: Timestamp) -> Option<usize> {
        let size = self.ports.map_or(self.addresses.len(), |(_, count)| count);
        if self.bound.len() < size {
            return Some(self.bound.len());
        }
        for _ in 0..MAX_SEARCH.min(size) {
            let number = self.cursor;
            self.cursor = if number + 1 < size { number + 1 } else { 0 };
            if self.bound.get(number).is_some_and(|(_, used)| now - *used >= self.timeout) {
                return Some(number);
            }
        }
        None
    }

    fn touch(&mut self, number: usize, now: Timestamp) {
        if let Some((_, used)) = self.bound.get_mut(number) {
            *used = now;
        }
    }

    /// What is bound to an endpoint of the pool, for a packet of the flow's other direction.
    pub(super) fn bound(&mut self, flow: Ip6Flow, now: Timestamp) -> Result<Endpoint, Reason> {
        let number = match self.ports {
            Some((first, _)) if self.addresses.first() == Some(&flow.own.address) => {
                flow.own.port.checked_sub(first).map(usize::from)
            }
            Some(_) => None,
            None => self.addresses.iter().position(|address| *address == flow.own.address),
        };
        let number = number.ok_or(Reason::NO_MAPPING)?;
        let [own, ..] = self.bound.get(number).ok_or(Reason::NO_MAPPING)?.0;
        let port = self.bound.get(number).map_or(0, |(key, _)| (key[2] >> 16) as u16);
        let port = if self.has_ports() { port } else { flow.own.port };
        let found = Endpoint { address: own.into(), port };
        // The port belongs to one flow.
        let key = self.key(Ip6Flow { own: found, ..flow });
        if self.bound.get(number).is_none_or(|(bound, _)| *bound != key) {
            return Err(Reason::NO_MAPPING);
        }
        self.touch(number, now);
        Ok(found)
    }
}
