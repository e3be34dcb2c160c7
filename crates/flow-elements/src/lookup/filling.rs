//! Fills route tables from configurations, at once or in steps.

use alloc::format;
use alloc::string::String;

use element::arguments::Raw;
use element::{Context, HandlerError, LongWork, Message, Setup, SetupError, text};
use lookup::StepwiseTable;

/// Bytes of a configuration or of commands from which on they are processed in steps.
pub(super) const MIN_LONG_TEXT: usize = 512;

/// Routes that are stored in a step. Each takes about a microsecond.
pub(super) const ROUTES_A_STEP: usize = 16;

/// Stores the routes of a configuration in a table, and collects what is wrong with them.
pub(super) trait Fill<S> {
    /// Stores the route in the next argument.
    fn add(&mut self, store: &mut S, argument: &str, setup: &Setup);

    /// Reports what was wrong.
    fn finish(self, setup: &mut Setup) -> Result<(), SetupError>;
}

/// Fills a table.
pub(super) fn fill<S: StepwiseTable>(
    store: &mut S,
    mut fill: impl Fill<S>,
    arguments: &[Raw],
    setup: &mut Setup,
) -> Result<(), SetupError> {
    store.defer_updates();
    for argument in arguments {
        fill.add(store, &argument.0, setup);
    }
    store.apply_updates();
    fill.finish(setup)
}

/// The filling of a table in steps.
pub(super) struct Filling<F> {
    fill: F,
    /// Bytes of the configuration that have been read; `None` when all have.
    read: Option<usize>,
}

impl<F> Filling<F> {
    /// Begins to fill a table.
    pub(super) fn begin(store: &mut impl StepwiseTable, fill: F) -> Filling<F> {
        store.defer_updates();
        Filling { fill, read: Some(0) }
    }
}

/// Performs a step of filling a table. Returns the result when it is done.
pub(super) fn continue_filling<S: StepwiseTable, F: Fill<S>>(
    filling: &mut Option<Filling<F>>,
    store: &mut S,
    configuration: &str,
    setup: &mut Setup,
) -> Option<Result<(), SetupError>> {
    let Some(Filling { fill, read }) = filling else { return Some(Ok(())) };
    let Some(at) = *read else {
        let is_done = store.apply_some_updates();
        return is_done.then(|| filling.take().map_or(Ok(()), |filling| filling.fill.finish(setup)));
    };
    let mut rest = configuration.get(at..).unwrap_or_default();
    for _ in 0..ROUTES_A_STEP {
        let Some(argument) = text::next_argument(&mut rest) else {
            *read = None;
            return None;
        };
        fill.add(store, &argument, setup);
    }
    *read = Some(configuration.len() - rest.len());
    None
}

/// Parses a route and stores it. Returns its output.
pub(super) type StoreRoute<S> = fn(&mut S, &str, &Setup) -> Option<usize>;

/// Stores routes, and reports those that are invalid, and how many outputs they need.
pub(super) struct FillAsNeeded<S> {
    store_route: StoreRoute<S>,
    /// The syntax of a route.
    form: &'static str,
    /// The number of the last argument.
    number: usize,
    highest: Option<usize>,
    errors: SetupError,
}

impl<S> FillAsNeeded<S> {
    pub(super) fn new(form: &'static str, store_route: StoreRoute<S>) -> FillAsNeeded<S> {
        FillAsNeeded { store_route, form, number: 0, highest: None, errors: SetupError::default() }
    }
}

impl<S> Fill<S> for FillAsNeeded<S> {
    fn add(&mut self, store: &mut S, argument: &str, setup: &Setup) {
        self.number += 1;
        let (number, form) = (self.number, self.form);
        let port = (self.store_route)(store, argument, setup);
        if port.is_none() {
            let text = format!("argument {number} should be {form}");
            self.errors.messages.push(Message::in_argument(argument, text, format!("a route is {form}")));
        }
        self.highest = self.highest.max(port);
    }

    fn finish(self, setup: &mut Setup) -> Result<(), SetupError> {
        self.errors.into_result()?;
        match self.highest {
            None => setup.warn("no routes"),
            Some(highest) if highest >= setup.outputs() => {
                return Err(SetupError::ports(format!("need {} or more output ports", highest + 1)));
            }
            Some(_) => {}
        }
        Ok(())
    }
}

/// A table that is filled by [`FillAsNeeded`], and of which no write is long.
pub(super) struct FilledTable<S> {
    pub(super) store: S,
    filling: Option<Filling<FillAsNeeded<S>>>,
}

impl<S: StepwiseTable> FilledTable<S> {
    /// Fills an empty table.
    pub(super) fn filled(
        mut store: S,
        routes: FillAsNeeded<S>,
        arguments: &[Raw],
        setup: &mut Setup,
    ) -> Result<FilledTable<S>, SetupError> {
        fill(&mut store, routes, arguments, setup)?;
        Ok(FilledTable { store, filling: None })
    }

    /// Begins to fill an empty table, if the configuration is long.
    pub(super) fn begin(
        mut store: S,
        routes: FillAsNeeded<S>,
        configuration: &str,
    ) -> Option<FilledTable<S>> {
        let filling = Some(Filling::begin(&mut store, routes));
        (configuration.len() >= MIN_LONG_TEXT).then_some(FilledTable { store, filling })
    }
}

impl<S: StepwiseTable> LongWork for FilledTable<S> {
    fn begin_write(&mut self, _: &mut Context, _: &str, _: &mut String) -> bool {
        false
    }

    fn continue_write(&mut self, _: &mut Context) -> Option<Result<(), HandlerError>> {
        Some(Ok(()))
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
