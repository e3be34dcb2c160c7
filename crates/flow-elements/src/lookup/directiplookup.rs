//! `DirectIPLookup`: routes by longest prefix.

use element::arguments::Raw;
use element::prelude::*;

use lookup::Ip4Routes;

use super::commands;
use super::table::{RouteTable, RouteTableClass};

/// Longest-prefix routing by destination annotation, with the table format of Click's DirectIPLookup.
///
/// It sets the destination annotation to the route's gateway, if there is one, and sends the packet to the route's
/// output. Packets without a route are dropped as `no_route`.
///
/// It uses the same data structure as RadixIPLookup; only the order of the routes in `table` differs.
///
/// ## Differences
/// Memory grows with the number of routes, instead of 48 MB from the start. Non-contiguous masks are refused. In Click,
/// routes added with the gateway and output of the default route change with the default route; here they stay.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true)
///     -> SetIPAddress(10.1.2.3)
///     -> routes :: DirectIPLookup(10/8 0, 10.1/16 192.168.0.1 1, 0/0 0);
/// routes[0] -> others :: Counter -> Discard;
/// routes[1] -> near :: Counter -> Discard;
/// ```
/// ```expect
/// others.count = 0
/// near.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "DirectIPLookup",
    group = "lookup",
    ports = "1/-",
    processing = "h/h",
    order_insensitive,
    shards = "independent",
    see = "RadixIPLookup, RangeIPLookup, LinearIPLookup, StaticIPLookup",
    drops = "no_route"
)]
pub struct DirectIPLookupArgs {
    /// Routes: `ADDR/MASK [GATEWAY] OUTPUT`.
    #[arg(rest)]
    routes: Vec<Raw>,
}

pub type DirectIPLookup = RouteTable<DirectIPLookupArgs>;

impl RouteTableClass for DirectIPLookupArgs {
    type Store = Ip4Routes;
    const HANDLERS: &'static [Handler<DirectIPLookup>] = &commands::handlers_with_flush();

    fn store() -> Ip4Routes {
        Ip4Routes::in_bucket_order()
    }

    fn routes(&self) -> &[Raw] {
        &self.routes
    }
}
