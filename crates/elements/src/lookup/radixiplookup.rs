//! `RadixIPLookup`: routes by longest prefix.

use element::arguments::Raw;
use element::prelude::*;

use super::Ip4Routes;
use super::commands::{self, RouteElement};
use super::forward::Ip4Forwarder;

/// Routes packets by the longest prefix of their destination annotation.
///
/// Sets the annotation to the route's gateway if it has one, and sends the packet to the route's output; packets
/// without a route are dropped as `no_route`.
///
/// The longest prefix wins. 1,000,000 routes are looked up at a third of the rate of one or faster, and a change takes
/// microseconds whatever the size of the table.
///
/// ## Differences
/// The number of different gateways and outputs has no limit; masks that are not contiguous are refused.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true)
///     -> SetIPAddress(10.1.2.3)
///     -> routes :: RadixIPLookup(10/8 0, 10.1/16 192.168.0.1 1, 0/0 0);
/// routes[0] -> others :: Counter -> Discard;
/// routes[1] -> near :: Counter -> Discard;
/// ```
/// ```expect
/// others.count = 0
/// near.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "RadixIPLookup",
    group = "lookup",
    ports = "1/-",
    processing = "h/h",
    see = "DirectIPLookup, RangeIPLookup, LinearIPLookup, StaticIPLookup"
)]
pub struct RadixIPLookupArgs {
    /// Routes: `ADDR/MASK [GATEWAY] OUTPUT`.
    #[arg(rest)]
    routes: Vec<Raw>,
}

/// The element.
pub struct RadixIPLookup {
    store: Ip4Routes,
    forwarder: Ip4Forwarder,
}

impl RouteElement for RadixIPLookup {
    type Store = Ip4Routes;

    fn store(&self) -> &Ip4Routes {
        &self.store
    }

    fn store_mut(&mut self) -> &mut Ip4Routes {
        &mut self.store
    }
}

impl Element for RadixIPLookup {
    type Args = RadixIPLookupArgs;
    const HANDLERS: &'static [Handler<Self>] = &commands::handlers_with_flush();

    fn new(args: RadixIPLookupArgs, setup: &mut Setup) -> Result<RadixIPLookup, SetupError> {
        let mut store = Ip4Routes::by_slot();
        commands::configure(&mut store, &args.routes, setup)?;
        Ok(RadixIPLookup { store, forwarder: Ip4Forwarder::default() })
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        self.forwarder.forward(cx, batch, &self.store, Some("IPRouteTable"));
    }
}
