//! The element behind the IPv4 route lookups, which differ in their table.

use element::LongWork;
use element::arguments::Raw;
use element::prelude::*;

use super::arguments::FillFirst;
use super::changes::LongControl;
use super::filling::{Filling, MIN_LONG_TEXT, continue_filling, fill};
use super::forward::Ip4Forwarder;
use lookup::{RouteStore, StepwiseTable};

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
    /// The filling of a new table.
    filling: Option<Filling<FillFirst>>,
    /// A write to `ctrl`.
    control: Option<Control>,
}

/// A write to `ctrl` that is executed in steps.
enum Control {
    /// Executes the commands.
    Executing(LongControl),
    /// Lets lookups see the changes.
    Applying(Result<(), HandlerError>),
}

impl<K: RouteTableClass> Element for RouteTable<K> {
    type Args = K;
    const HANDLERS: &'static [Handler<Self>] = K::HANDLERS;
    const BEGIN: Option<fn(&str) -> Option<Self>> = Some(|configuration| {
        let mut table: Self = RouteTable::empty();
        table.filling = Some(Filling::begin(&mut table.store, FillFirst::default()));
        (configuration.len() >= MIN_LONG_TEXT).then_some(table)
    });

    fn new(args: K, setup: &mut Setup) -> Result<Self, SetupError> {
        let mut table: Self = RouteTable::empty();
        fill(&mut table.store, FillFirst::default(), args.routes(), setup)?;
        Ok(table)
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
        let forwarder = Ip4Forwarder::default();
        RouteTable { store: K::store(), is_edited: false, forwarder, filling: None, control: None }
    }

    /// Whether a change is going on in steps, so that the table's updates are deferred.
    pub(super) fn is_changing(&self) -> bool {
        self.control.is_some()
    }
}

impl<K: RouteTableClass> LongWork for RouteTable<K> {
    /// A write that comes meanwhile is executed at once, and its routes are used together with those of the commands.
    fn begin_write(&mut self, _: &mut Context, handler: &str, value: &mut String) -> bool {
        let is_long = !self.is_changing() && handler == "ctrl" && value.len() >= MIN_LONG_TEXT;
        if is_long {
            self.store.defer_updates();
            self.control = Some(Control::Executing(LongControl::new(core::mem::take(value))));
        }
        is_long
    }

    fn continue_write(&mut self, cx: &mut Context) -> Option<Result<(), HandlerError>> {
        match self.control.as_mut() {
            None => return Some(Ok(())),
            Some(Control::Executing(control)) => {
                if let Some(result) = control.step(&mut self.store, cx) {
                    self.control = Some(Control::Applying(result));
                }
                return None;
            }
            Some(Control::Applying(_)) => {}
        }
        if !self.store.apply_some_updates() {
            return None;
        }
        let Some(Control::Applying(result)) = self.control.take() else { return Some(Ok(())) };
        self.is_edited |= result.is_ok();
        Some(result)
    }

    fn continue_creation(
        &mut self,
        configuration: &str,
        setup: &mut Setup,
    ) -> Option<Result<(), SetupError>> {
        continue_filling(&mut self.filling, &mut self.store, configuration, setup)
    }

    fn begin_removal(&mut self) -> bool {
        !self.store.free_some()
    }

    fn continue_removal(&mut self) -> bool {
        self.store.free_some()
    }
}
