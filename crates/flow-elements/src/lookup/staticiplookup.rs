//! `StaticIPLookup`: routes by the most specific mask, with a fixed table.

use element::arguments::Raw;
use element::prelude::*;

use lookup::LinearRoutes;

use super::commands;
use super::table::{RouteTable, RouteTableClass};

/// Routes packets like LinearIPLookup, by a fixed list of routes.
///
/// It sets the destination annotation to the route's gateway, if there is one, and sends the packet to the route's
/// output. Packets without a route are dropped as `no_route`.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true)
///     -> SetIPAddress(10.1.2.3)
///     -> routes :: StaticIPLookup(10/8 0, 10.1/16 192.168.0.1 1, 0/0 0);
/// routes[0] -> others :: Counter -> Discard;
/// routes[1] -> near :: Counter -> Discard;
/// ```
/// ```expect
/// others.count = 0
/// near.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "StaticIPLookup",
    group = "lookup",
    ports = "1/-",
    processing = "h/h",
    shards = "independent",
    puts_back,
    logs,
    see = "LinearIPLookup, RadixIPLookup",
    drops = "no_route"
)]
pub struct StaticIPLookupArgs {
    /// Routes: `ADDR/MASK [GATEWAY] OUTPUT`.
    #[arg(rest)]
    routes: Vec<Raw>,
}

pub type StaticIPLookup = RouteTable<StaticIPLookupArgs>;

impl RouteTableClass for StaticIPLookupArgs {
    type Store = LinearRoutes;
    const HANDLERS: &'static [Handler<StaticIPLookup>] = &commands::read_handlers();
    const LOG_NAME: Option<&'static str> = Some("LinearIPLookup");

    fn store() -> LinearRoutes {
        LinearRoutes::default()
    }

    fn routes(&self) -> &[Raw] {
        &self.routes
    }
}
