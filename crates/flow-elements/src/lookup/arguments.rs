//! Routes as arguments.

use element::arguments::{ArgumentError, Ip4PrefixOrHost};
use element::prelude::*;
use element::text;

use core::net::Ipv4Addr;
use lookup::Route;
use packet::Ip4Prefix;

/// A route to add: `ADDR/MASK [GATEWAY] OUTPUT`, where `-` stands for no gateway.
pub(super) struct RouteToAdd(pub(super) Route);

impl FromArgument for RouteToAdd {
    const KIND: &'static str = "route";

    fn from_argument(text: &str, setup: &Setup) -> Result<RouteToAdd, ArgumentError> {
        let route = parse(text, setup, true).map(RouteToAdd);
        route.ok_or_else(|| ArgumentError::new("expected ‘ADDR/MASK [GATEWAY] OUTPUT’"))
    }
}

/// A route to remove: `ADDR/MASK [GATEWAY] [OUTPUT]`. Without OUTPUT only the prefix counts.
pub(super) struct RouteToRemove(pub(super) Route);

impl FromArgument for RouteToRemove {
    const KIND: &'static str = "route";

    fn from_argument(text: &str, setup: &Setup) -> Result<RouteToRemove, ArgumentError> {
        let route = parse(text, setup, false).map(RouteToRemove);
        route.ok_or_else(|| ArgumentError::new("expected ‘ADDR/MASK [GATEWAY OUTPUT]’"))
    }
}

fn parse(text: &str, setup: &Setup, needs_port: bool) -> Option<Route> {
    let words = text::words(text);
    let mut words = words.iter().map(String::as_str).peekable();
    let Ip4PrefixOrHost(prefix) = Ip4PrefixOrHost::from_argument(words.next()?, setup).ok()?;
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
        Some(word) => i32::from_argument(word, setup).ok()?,
        None if needs_port => return None,
        None => -1,
    };
    let route = Route { prefix, gateway: gateway.unwrap_or(Ipv4Addr::UNSPECIFIED), port };
    words.next().is_none().then_some(route)
}
