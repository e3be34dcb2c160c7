//! `LinearIPLookup`: routes by the most specific mask.

use element::arguments::Raw;
use element::prelude::*;

use lookup::LinearRoutes;

use super::commands;
use super::table::{Kind, RouteTable};

/// Routes packets by the most specific mask that their destination annotation matches.
///
/// Sets the annotation to the route's gateway if it has one, and sends the packet to the route's output; packets
/// without a route are dropped as `no_route`.
///
/// Masks need not be contiguous. The first route that matches wins, unless a later one's mask has all the bits of the
/// best so far; for contiguous masks that is the longest prefix, and as long as there are no others the look-up costs
/// the same with any number of routes.
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
    see = "RadixIPLookup, DirectIPLookup, RangeIPLookup, StaticIPLookup",
    drops = "no_route"
)]
pub struct LinearIPLookupArgs {
    /// Routes: `ADDR/MASK [GATEWAY] OUTPUT`.
    #[arg(rest)]
    routes: Vec<Raw>,
}

/// The element.
pub type LinearIPLookup = RouteTable<LinearIPLookupArgs>;

impl Kind for LinearIPLookupArgs {
    type Store = LinearRoutes;
    const HANDLERS: &'static [Handler<LinearIPLookup>] = &commands::handlers();
    const SAYS: Option<&'static str> = Some("LinearIPLookup");

    fn store() -> LinearRoutes {
        LinearRoutes::default()
    }

    fn routes(&self) -> &[Raw] {
        &self.routes
    }
}
