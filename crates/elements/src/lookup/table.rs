//! The element behind the IPv4 route tables.

use element::arguments::Raw;
use element::prelude::*;

use super::commands::configure;
use super::forward::Ip4Forwarder;
use lookup::RouteStore;

/// The arguments of a route table class, which select the variant.
pub trait Kind: Args + 'static {
    /// The data structure for the routes.
    type Store: RouteStore + 'static;
    /// Its handlers.
    const HANDLERS: &'static [Handler<RouteTable<Self>>];
    /// The name under which packets without a route are logged; `None` logs nothing.
    const SAYS: Option<&'static str> = None;

    /// Creates an empty table.
    fn store() -> Self::Store;

    /// The routes in the arguments.
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
