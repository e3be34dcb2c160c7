//! Parsing of routes.

use element::Message;
use element::arguments::{ArgumentError, Ip4PrefixOrHost};
use element::prelude::*;
use element::text;

use core::net::Ipv4Addr;
use lookup::{Route, RouteStore};
use packet::Ip4Prefix;

use super::filling::Fill;

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

/// Stores routes. If several have the same prefix, the first is kept.
#[derive(Default)]
pub(super) struct FillFirst {
    /// The number of the last argument.
    number: usize,
    /// Routes that were not kept.
    replaced: usize,
    errors: SetupError,
}

impl<S: RouteStore> Fill<S> for FillFirst {
    fn add(&mut self, store: &mut S, argument: &str, setup: &Setup) {
        self.number += 1;
        let (number, errors) = (self.number, &mut self.errors);
        let Ok(RouteToAdd(route)) = RouteToAdd::from_argument(argument, setup) else {
            let text = format!("argument {number} should be ‘ADDR/MASK [GATEWAY] OUTPUT’");
            let problem = "a route is ‘ADDR/MASK [GATEWAY] OUTPUT’";
            errors.messages.push(Message::in_argument(argument, text, problem));
            return;
        };
        if !has_port(&route, setup.outputs()) {
            errors.messages.push(Message::Ports(format!("argument {number} bad OUTPUT")));
        } else if store.get(route.prefix).is_some() {
            self.replaced += 1;
        } else if let Err(error) = store.set(route) {
            let text = format!("argument {number}: {error}");
            errors.messages.push(Message::in_argument(argument, text, error));
        }
    }

    fn finish(self, setup: &mut Setup) -> Result<(), SetupError> {
        let Self { replaced, mut errors, .. } = self;
        if replaced > 0 {
            let routes = if replaced > 1 { "routes" } else { "route" };
            let text = format!("{replaced} {routes} replaced by later versions");
            if errors.messages.is_empty() {
                setup.warn(text);
            } else {
                errors.messages.push(Message::Other(format!("warning: {text}")));
            }
        }
        errors.into_result()
    }
}

/// Whether the element has the route's output.
pub(super) fn has_port(route: &Route, outputs: usize) -> bool {
    usize::try_from(route.port).is_ok_and(|port| port < outputs)
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
