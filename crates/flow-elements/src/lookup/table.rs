//! The element behind the IPv4 route lookups, which differ in their table.

use element::arguments::Raw;
use element::prelude::*;

use super::arguments::configure;
use super::forward::Ip4Forwarder;
use lookup::RouteStore;

/// The arguments of one class, which select its table and handlers.
pub trait RouteTableClass: Args + 'static {
    /// The route table.
    type Store: RouteStore + 'static;
    const HANDLERS: &'static [Handler<RouteTable<Self>>];
    /// The name that log messages about missing routes start with; `None` for no messages.
    const LOG_NAME: Option<&'static str> = None;

    /// Creates an empty table.
    fn store() -> Self::Store;

    /// The routes in the arguments.
    fn routes(&self) -> &[Raw];
}

/// Routes packets by a table.
pub struct RouteTable<K: RouteTableClass> {
    pub(super) store: K::Store,
    /// Whether handlers changed the routes, so that they are no longer those of the arguments.
    pub(super) is_edited: bool,
    forwarder: Ip4Forwarder,
}

impl<K: RouteTableClass> Element for RouteTable<K> {
    type Args = K;
    const HANDLERS: &'static [Handler<Self>] = K::HANDLERS;

    fn new(args: K, setup: &mut Setup) -> Result<Self, SetupError> {
        let mut store = K::store();
        configure(&mut store, args.routes(), setup)?;
        Ok(RouteTable { store, is_edited: false, forwarder: Ip4Forwarder::default() })
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        self.forwarder.forward(cx, batch, &mut self.store, K::LOG_NAME);
    }
}
