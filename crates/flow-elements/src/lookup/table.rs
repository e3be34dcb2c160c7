//! The element behind the IPv4 route lookups, which differ in their table.

use element::arguments::Raw;
use element::prelude::*;
use element::{LongWork, text};

use super::arguments::Filling;
use super::changes::{LongControl, ROUTES_A_STEP};
use super::forward::Ip4Forwarder;
use lookup::RouteStore;

/// Bytes of a configuration or of commands from which on they are processed in steps.
const MIN_LONG_TEXT: usize = 512;

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
    work: Option<Work>,
}

/// Work that is done in steps.
enum Work {
    /// Fills the table of a new element from its configuration, of which so many bytes have been read.
    Creation(Filling, usize),
    /// Executes the commands of a write to `ctrl`.
    Control(LongControl),
}

impl<K: RouteTableClass> Element for RouteTable<K> {
    type Args = K;
    const HANDLERS: &'static [Handler<Self>] = K::HANDLERS;
    const BEGIN: Option<fn(&str) -> Option<Self>> = Some(|configuration| {
        let mut table: Self = RouteTable::empty();
        table.store.defer_updates();
        table.work = Some(Work::Creation(Filling::default(), 0));
        (configuration.len() >= MIN_LONG_TEXT).then_some(table)
    });

    fn new(args: K, setup: &mut Setup) -> Result<Self, SetupError> {
        let mut table: Self = RouteTable::empty();
        let mut filling = Filling::default();
        table.store.defer_updates();
        for route in args.routes() {
            filling.add(&mut table.store, &route.0, setup);
        }
        table.store.apply_updates();
        filling.finish(setup).map(|()| table)
    }

    fn long_work(&mut self) -> Option<&mut dyn LongWork> {
        Some(self)
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        self.forwarder.forward(cx, batch, &mut self.store, K::LOG_NAME);
    }
}

impl<K: RouteTableClass> RouteTable<K> {
    fn empty() -> Self {
        RouteTable { store: K::store(), is_edited: false, forwarder: Ip4Forwarder::default(), work: None }
    }

    /// Whether a change is going on in steps, so that the table's updates are deferred.
    pub(super) fn is_changing(&self) -> bool {
        self.work.is_some()
    }
}

impl<K: RouteTableClass> LongWork for RouteTable<K> {
    /// A write that comes meanwhile is executed at once, and its routes are used together with those of the commands.
    fn begin_write(&mut self, _: &mut Context, handler: &str, value: &mut String) -> bool {
        let is_long = !self.is_changing() && handler == "ctrl" && value.len() >= MIN_LONG_TEXT;
        if is_long {
            self.store.defer_updates();
            self.work = Some(Work::Control(LongControl::new(core::mem::take(value))));
        }
        is_long
    }

    fn continue_write(&mut self, cx: &mut Context) -> Option<Result<(), HandlerError>> {
        let Some(Work::Control(mut control)) = self.work.take() else { return Some(Ok(())) };
        let result = control.step(&mut self.store, cx);
        match result {
            Some(_) => {
                self.store.apply_updates();
                self.is_edited |= matches!(result, Some(Ok(())));
            }
            None => self.work = Some(Work::Control(control)),
        }
        result
    }

    fn continue_creation(
        &mut self,
        configuration: &str,
        setup: &mut Setup,
    ) -> Option<Result<(), SetupError>> {
        let Some(Work::Creation(mut filling, read)) = self.work.take() else { return Some(Ok(())) };
        let mut rest = configuration.get(read..).unwrap_or_default();
        for _ in 0..ROUTES_A_STEP {
            let Some(argument) = text::next_argument(&mut rest) else {
                self.store.apply_updates();
                return Some(filling.finish(setup));
            };
            filling.add(&mut self.store, &argument, setup);
        }
        self.work = Some(Work::Creation(filling, configuration.len() - rest.len()));
        None
    }

    fn begin_removal(&mut self) -> bool {
        false
    }

    fn continue_removal(&mut self) -> bool {
        true
    }
}
