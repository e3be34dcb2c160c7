//! `LookupIPRouteMP`: routes by the most specific mask, without handlers.

use core::net::Ipv4Addr;

use element::arguments::{Ip4PrefixOrHost, Raw};
use element::prelude::*;
use element::{LongWork, text};
use packet::Ip4Prefix;

use super::filling::{FillAsNeeded, FilledTable};
use super::forward::Forwarder;
use lookup::{LinearRoutes, Route, RouteStore};

/// Routes packets like LinearIPLookup, without handlers.
///
/// It sets the destination annotation to the route's gateway, if there is one, and sends the packet to the route's
/// output. Packets without a route are dropped as `no_route`.
///
/// The most specific mask wins; among routes for the same prefix, the last one. Unlike in LinearIPLookup, `-` does not
/// stand for "no gateway".
///
/// ## Differences
/// There is no cache per processor; none is needed.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true)
///     -> SetIPAddress(10.1.2.3)
///     -> routes :: LookupIPRouteMP(10/8 0, 10.1/16 192.168.0.1 1);
/// routes[0] -> others :: Counter -> Discard;
/// routes[1] -> near :: Counter -> Discard;
/// ```
/// ```expect
/// others.count = 0
/// near.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "LookupIPRouteMP",
    group = "lookup",
    ports = "1/-",
    processing = "a/a",
    logs,
    see = "LinearIPLookup, RadixIPLookup",
    drops = "no_route"
)]
pub struct LookupIPRouteMPArgs {
    /// Routes: `ADDR/MASK [GATEWAY] OUTPUT`.
    #[arg(rest)]
    routes: Vec<Raw>,
}

pub struct LookupIPRouteMP {
    table: FilledTable<LinearRoutes>,
    forwarder: Forwarder<u32>,
}

impl Element for LookupIPRouteMP {
    type Args = LookupIPRouteMPArgs;

    const BEGIN: Option<fn(&str) -> Option<Self>> = Some(|configuration| {
        let table = FilledTable::begin(LinearRoutes::default(), filling(), configuration)?;
        Some(LookupIPRouteMP { table, forwarder: Forwarder::default() })
    });

    fn new(args: LookupIPRouteMPArgs, setup: &mut Setup) -> Result<LookupIPRouteMP, SetupError> {
        let table = FilledTable::filled(LinearRoutes::default(), filling(), &args.routes, setup)?;
        Ok(LookupIPRouteMP { table, forwarder: Forwarder::default() })
    }

    fn long_work(&mut self) -> Option<&mut dyn LongWork> {
        Some(&mut self.table)
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        self.forwarder.forward(
            cx,
            batch,
            &mut self.table.store,
            |packet| packet.destination_ip().to_bits(),
            |packet, gateway| packet.set_destination_ip(Ipv4Addr::from_bits(gateway)),
            // The address read as a little-endian number.
            |cx, address| cx.log(&format!("LookupIPRouteMP: no gw for {:x}", address.swap_bytes())),
        );
    }
}

/// Stores the routes of a configuration.
fn filling() -> FillAsNeeded<LinearRoutes> {
    FillAsNeeded::new("`DADDR/MASK [GATEWAY] OUTPUT'", |store, argument, setup| {
        let route = parse(argument, setup)?;
        let port = route.hop()?.port;
        store.set(route).ok()?;
        Some(port)
    })
}

fn parse(argument: &str, setup: &Setup) -> Option<Route> {
    let words = text::words(argument);
    let (prefix, gateway, port) = match words.as_slice() {
        [prefix, port] => (prefix, None, port),
        [prefix, gateway, port] => (prefix, Some(gateway), port),
        _ => return None,
    };
    let Ip4PrefixOrHost(prefix) = Ip4PrefixOrHost::from_argument(prefix, setup).ok()?;
    let gateway = match gateway {
        Some(gateway) => Ipv4Addr::from_argument(gateway, setup).ok()?,
        None => Ipv4Addr::UNSPECIFIED,
    };
    let prefix = Ip4Prefix { address: prefix.network(), mask: prefix.mask };
    Some(Route { prefix, gateway, port: i32::from_argument(port, setup).ok()? })
}
