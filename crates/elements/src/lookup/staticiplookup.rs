//! `StaticIPLookup`: routes by the most specific mask, unchangeably.

use element::arguments::Raw;
use element::prelude::*;

use super::LinearRoutes;
use super::commands::{self, RouteElement};
use super::forward::Ip4Forwarder;

/// Routes packets as LinearIPLookup does, by routes that do not change.
///
/// Sets the annotation to the route's gateway if it has one, and sends the packet to the route's output; packets
/// without a route are dropped as `no_route`.
///
/// The rules for masks are LinearIPLookup's.
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
    see = "LinearIPLookup, RadixIPLookup"
)]
pub struct StaticIPLookupArgs {
    /// Routes: `ADDR/MASK [GATEWAY] OUTPUT`.
    #[arg(rest)]
    routes: Vec<Raw>,
}

/// The element.
pub struct StaticIPLookup {
    store: LinearRoutes,
    forwarder: Ip4Forwarder,
}

impl RouteElement for StaticIPLookup {
    type Store = LinearRoutes;

    fn store(&self) -> &LinearRoutes {
        &self.store
    }

    fn store_mut(&mut self) -> &mut LinearRoutes {
        &mut self.store
    }
}

impl Element for StaticIPLookup {
    type Args = StaticIPLookupArgs;
    const HANDLERS: &'static [Handler<Self>] = &commands::read_handlers();

    fn new(args: StaticIPLookupArgs, setup: &mut Setup) -> Result<StaticIPLookup, SetupError> {
        let mut store = LinearRoutes::default();
        commands::configure(&mut store, &args.routes, setup)?;
        Ok(StaticIPLookup { store, forwarder: Ip4Forwarder::default() })
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        self.forwarder.forward(cx, batch, &self.store, Some("LinearIPLookup"));
    }
}
