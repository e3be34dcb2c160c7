//! An element that routes by a table of IPv4 routes, but for which table it is.

use element::arguments::Raw;
use element::prelude::*;

use super::arguments::configure;
use super::forward::Ip4Forwarder;
use lookup::RouteStore;

/// The arguments of such an element: what tells it from the others.
pub trait Kind: Args + 'static {
    /// What holds the routes.
    type Store: RouteStore + 'static;
    /// Its handlers.
    const HANDLERS: &'static [Handler<RouteTable<Self>>];
    /// The name under which packets without a route are logged, if they are.
    const SAYS: Option<&'static str> = None;

    /// A table without routes.
    fn store() -> Self::Store;

    /// The routes as they are written.
    fn routes(&self) -> &[Raw];
}

/// Routes packets by a table.
pub struct RouteTable<K: Kind> {
    pub(super) store: K::Store,
    forwarder: Ip4Forwarder,
}

impl<K: Kind> Element for RouteTable<K> {
    type Args = K;
    const HANDLERS: &'static [Handler<Self>] = K::HANDLERS;

    fn new(args: K, setup: &mut Setup) -> Result<Self, SetupError> {
        let mut store = K::store();
        configure(&mut store, args.routes(), setup)?;
        Ok(RouteTable { store, forwarder: Ip4Forwarder::default() })
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        self.forwarder.forward(cx, batch, &self.store, K::SAYS);
    }
}
