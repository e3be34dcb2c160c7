//! `LinearIPLookup`: routes by the most specific mask.

use element::arguments::Raw;
use element::prelude::*;

use lookup::LinearRoutes;

use super::commands;
use super::table::{RouteTable, RouteTableClass};

/// Routes packets by the most specific mask that their destination annotation matches. Masks may be non-contiguous.
///
/// It sets the destination annotation to the route's gateway, if there is one, and sends the packet to the route's
/// output. Packets without a route are dropped as `no_route`.
///
/// The first matching route wins, unless the mask of a later match contains all bits of the best mask so far. With
/// contiguous masks this is the longest prefix, and the lookup time does not depend on the number of routes.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true)
///     -> SetIPAddress(10.1.2.3)
///     -> routes :: LinearIPLookup(10/8 0, 10.1/16 192.168.0.1 1, 0/0 0);
/// routes[0] -> others :: Counter -> Discard;
/// routes[1] -> near :: Counter -> Discard;
/// ```
/// ```expect
/// others.count = 0
/// near.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "LinearIPLookup",
    group = "lookup",
    ports = "1/-",
    processing = "h/h",
    shards = "independent",
    puts_back,
    logs,
    see = "RadixIPLookup, DirectIPLookup, RangeIPLookup, StaticIPLookup",
    drops = "no_route"
)]
pub struct LinearIPLookupArgs {
    /// Routes: `ADDR/MASK [GATEWAY] OUTPUT`.
    #[arg(rest)]
    routes: Vec<Raw>,
}

pub type LinearIPLookup = RouteTable<LinearIPLookupArgs>;

impl RouteTableClass for LinearIPLookupArgs {
    type Store = LinearRoutes;
    const HANDLERS: &'static [Handler<LinearIPLookup>] = &commands::handlers();
    const LOG_NAME: Option<&'static str> = Some("LinearIPLookup");

    fn store() -> LinearRoutes {
        LinearRoutes::default()
    }

    fn routes(&self) -> &[Raw] {
        &self.routes
    }
}
