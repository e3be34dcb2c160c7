//! Routes with the associations of tunnels, and their syntax.

use core::net::Ipv4Addr;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use element::arguments::{ArgumentError, Ip4PrefixOrHost};
use element::{FromArgument, Setup, text};
use lookup::{Ip4Routes, Route, RouteError, RouteStore};
use packet::Ip4Prefix;

use super::association::{Associations, Parameters};
use super::replay::MAX_WINDOW;
use super::transforms::{BLOCK, Keys};

/// The output of packets to tunnels.
const TO_TUNNEL: i32 = 1;
/// The form of a route.
const FORM: &str = "‘ADDR/MASK [GATEWAY] OUTPUT [SPI KEY KEY REPLAY OOSIZE [SPI KEY KEY REPLAY OOSIZE]]’";

/// A route to store.
#[derive(Clone)]
pub(super) struct TunnelRoute {
    pub(super) route: Route,
    /// As it was written.
    pub(super) text: String,
    /// The association for packets to the tunnel.
    pub(super) outbound: Option<Parameters>,
    /// The association for packets from the tunnel.
    inbound: Option<Parameters>,
}

impl TunnelRoute {
    /// Parses a route. Without `needs_output`, the prefix is enough.
    pub(super) fn parse(text: &str, setup: &Setup, needs_output: bool) -> Result<TunnelRoute, ArgumentError> {
        let form = || ArgumentError::new(format!("expected {FORM}"));
        let words = text::words(text);
        let mut words = words.iter().map(String::as_str).peekable();
        let Ip4PrefixOrHost(prefix) =
            Ip4PrefixOrHost::from_argument(words.next().ok_or_else(form)?, setup).map_err(|_| form())?;
        let prefix = Ip4Prefix { address: prefix.network(), mask: prefix.mask };
        let gateway = match words.peek() {
            Some(&"-") => Some(Ipv4Addr::UNSPECIFIED),
            Some(word) => Ipv4Addr::from_argument(word, setup).ok(),
            None => None,
        };
        if gateway.is_some() {
            words.next();
        }
        let port = match words.next() {
            Some(word) => i32::from_argument(word, setup).map_err(|_| form())?,
            None if needs_output => return Err(form()),
            None => -1,
        };
        let route = Route { prefix, gateway: gateway.unwrap_or(Ipv4Addr::UNSPECIFIED), port };
        let mut associations = Vec::new();
        while words.peek().is_some() && associations.len() < 2 {
            let words: Vec<&str> = words.by_ref().take(5).collect();
            let [spi, encryption, authentication, first, window] = words[..] else { return Err(form()) };
            associations.push(parameters([spi, encryption, authentication, first, window], setup)?);
        }
        if words.next().is_some() {
            return Err(form());
        }
        let mut associations = associations.into_iter();
        let outbound = associations.next();
        let inbound = associations.next().or_else(|| outbound.clone());
        if needs_output && port == TO_TUNNEL && outbound.is_none() {
            return Err(ArgumentError::new(format!("output {TO_TUNNEL} is for tunnels: expected {FORM}")));
        }
        let outbound = outbound.filter(|_| port == TO_TUNNEL);
        Ok(TunnelRoute { route, text: text.trim().to_string(), outbound, inbound })
    }
}

/// Parses an association.
fn parameters(words: [&str; 5], setup: &Setup) -> Result<Parameters, ArgumentError> {
    let [spi, encryption, authentication, first, window] = words;
    let number = |name: &str, text: &str, least: u32, most: u32| {
        let number = u32::from_argument(text, setup).ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| ArgumentError::new(format!("{name} must be a number from {least} to {most}")))
    };
    let encryption = key(encryption).and_then(|key| key.try_into().ok());
    let encryption: [u8; BLOCK] = encryption
        .ok_or_else(|| ArgumentError::new("the first key must have 16 bytes: 32 hexadecimal digits"))?;
    let authentication = key(authentication).filter(|key| [16, 20].contains(&key.len()));
    let authentication = authentication.ok_or_else(|| {
        ArgumentError::new("the second key must have 20 or 16 bytes: 40 or 32 hexadecimal digits")
    })?;
    Ok(Parameters {
        spi: number("SPI", spi, 1, u32::MAX)?,
        keys: Keys { encryption, authentication },
        first: number("REPLAY", first, 0, u32::MAX)?,
        window: number("OOSIZE", window, 0, MAX_WINDOW)?,
    })
}

/// The bytes of a key: hexadecimal digits, or the bytes themselves, which are fewer.
fn key(text: &str) -> Option<Vec<u8>> {
    let bytes = text::unquote_bytes(text);
    if bytes.len() < 32 {
        return Some(bytes);
    }
    let digits = bytes.strip_prefix(b"0x").unwrap_or(&bytes);
    let digit = |digit: &u8| char::from(*digit).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some((digit(high)? << 4 | digit(low)?) as u8),
        _ => None,
    };
    digits.chunks(2).map(pair).collect()
}

/// Why a route can't be stored.
pub(super) enum Refusal {
    /// The table can't have it.
    Route(RouteError),
    /// Its association has other keys in another route.
    Keys(u32),
}

/// The routes, and the numbers of their slots by prefix.
pub(super) struct Routes {
    /// A table whose outputs are the numbers of slots.
    numbers: Ip4Routes,
    slots: Vec<Option<TunnelRoute>>,
    /// Slots without a route, of which the last is used next.
    free: Vec<usize>,
}

impl Default for Routes {
    fn default() -> Routes {
        Routes { numbers: Ip4Routes::in_slot_order(), slots: Vec::new(), free: Vec::new() }
    }
}

impl Routes {
    /// The route of exactly this prefix.
    pub(super) fn get(&self, prefix: Ip4Prefix) -> Option<&TunnelRoute> {
        self.slots.get(usize::try_from(self.numbers.get(prefix)?.port).ok()?)?.as_ref()
    }

    /// The route of an address.
    pub(super) fn lookup(&self, address: Ipv4Addr) -> Option<&TunnelRoute> {
        self.slots.get(self.numbers.lookup(address)?.port)?.as_ref()
    }

    /// All routes, in the order of their slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = &TunnelRoute> {
        self.slots.iter().flatten()
    }

    /// Stores a route and its associations. Returns the route that it replaces.
    pub(super) fn set(
        &mut self,
        route: TunnelRoute,
        associations: &mut Associations,
    ) -> Result<Option<TunnelRoute>, Refusal> {
        acquire(&route, associations)?;
        let prefix = route.route.prefix;
        let old = self.remove(prefix, associations);
        let slot = self.free.pop().unwrap_or(self.slots.len());
        let number = Route { prefix, gateway: Ipv4Addr::UNSPECIFIED, port: slot as i32 };
        if let Err(error) = self.numbers.set(number) {
            self.free.extend((slot < self.slots.len()).then_some(slot));
            release(&route, associations);
            return Err(Refusal::Route(error));
        }
        match self.slots.get_mut(slot) {
            Some(place) => *place = Some(route),
            None => self.slots.push(Some(route)),
        }
        Ok(old)
    }

    /// Removes a route.
    pub(super) fn remove(
        &mut self,
        prefix: Ip4Prefix,
        associations: &mut Associations,
    ) -> Option<TunnelRoute> {
        let slot = usize::try_from(self.numbers.remove(prefix)?.port).ok()?;
        let route = self.slots.get_mut(slot)?.take()?;
        self.free.push(slot);
        release(&route, associations);
        Some(route)
    }
}

fn acquire(route: &TunnelRoute, associations: &mut Associations) -> Result<(), Refusal> {
    let TunnelRoute { route: Route { prefix, .. }, outbound, inbound, .. } = route;
    if let Some(outbound) = outbound {
        associations.acquire(outbound, None).map_err(|_| Refusal::Keys(outbound.spi))?;
    }
    if let Some(inbound) = inbound
        && associations.acquire(inbound, Some(*prefix)).is_err()
    {
        if let Some(outbound) = outbound {
            associations.release(outbound.spi, None);
        }
        return Err(Refusal::Keys(inbound.spi));
    }
    Ok(())
}

fn release(route: &TunnelRoute, associations: &mut Associations) {
    if let Some(outbound) = &route.outbound {
        associations.release(outbound.spi, None);
    }
    if let Some(inbound) = &route.inbound {
        associations.release(inbound.spi, Some(route.route.prefix));
    }
}
