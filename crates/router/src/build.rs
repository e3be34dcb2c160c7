//! Builds a router from a graph.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use click_lang::{ArgumentFinder, Diagnostic, Graph, Severity, nearest};
use element::{
    Arguments, Clock, CountingElements, DynElement, ElementState, Gathering, HandlerError, Message,
    Resources, Resting, Setup, SetupError, SetupRemark, ShardMode, Split, value_hint,
};
use packet::{BatchTrace, MAX_BATCH, Pool};

use crate::account::{Account, Totals};
use crate::check::CompilerErrors;
use crate::configure_order;
use crate::connection::Connection;
use crate::diagnostics::{did_you_mean, error, introduced, misplaced, named};
use crate::hooks::{Hook, Hooks};
use crate::hookup::{Hookup, PortLinks, hook_up};
use crate::join::{self, GatheringPlace};
use crate::node::{Node, NodeDetails, Notifier, Port};
use crate::order;
use crate::own_writes::OwnWrites;
use crate::pace;
use crate::parts::Parts;
use crate::predecessors::Predecessors;
use crate::preparation::GivenUp;
use crate::relays::Relays;
use crate::removal::{free_element, free_graph};
use crate::schedule::Schedule;
use crate::sharding;
use crate::state::{NO_ELEMENT, RouterState, Watch};
use crate::step_sizes::{CONNECTIONS_A_STEP, ELEMENTS_A_STEP};
use click_lang::steps::{complete, free_many, free_map, pause, pause_every};

/// A router with its warnings, or all diagnostics if there are errors.
pub(crate) type Built = Result<(Box<RouterState>, Vec<Diagnostic>), Vec<Diagnostic>>;

/// The error of a preparation that is given up, which is never shown.
const GIVEN_UP: &str = "given up";

/// A router with its warnings, or one that is refused with all diagnostics.
pub(crate) type Started = Result<(Box<RouterState>, Vec<Diagnostic>), (Box<RouterState>, Vec<Diagnostic>)>;

impl RouterState {
    /// Checks the graph, then creates and initialises its elements.
    pub(crate) fn build(graph: Graph, parts: Parts) -> Built {
        let (state, problems) = complete(RouterState::create_all(graph, parts, None))?;
        state.start(problems).map_err(|(_, problems)| problems)
    }

    /// Checks the graph, then creates its elements: in steps until that is given up, or at once. Nothing of it runs yet.
    pub(crate) async fn create_all(mut graph: Graph, parts: Parts, in_steps: Option<GivenUp>) -> Built {
        let Parts { registry, environment, options, .. } = &parts;
        let mut problems = registry.name_classes(&mut graph).await;
        let mut errors = Vec::new();
        let hookup = hook_up(&graph, registry, &mut errors).await;
        if let Some(hookup) = &hookup {
            sharding::check(&graph, hookup, options, &mut errors);
        }
        let has_failed = !errors.is_empty();
        problems.append(&mut errors);
        let Some(hookup) = hookup.filter(|_| !has_failed) else {
            free_graph(graph).await;
            return Err(problems);
        };
        pause().await;
        environment.prepare();
        let before = parts.before.clone();
        let mut state = RouterState::assemble(graph, parts, hookup).await;
        if let Some(before) = before {
            let found = Predecessors::find(&state.nodes, &state.hooks, &state.order, before).await;
            state.predecessors = RefCell::new(Some(found));
        }
        state.configure(&mut problems, in_steps).await;
        if !has_errors(&problems) {
            return Ok((state, problems));
        }
        state.free().await;
        Err(problems)
    }

    /// Initialises the elements that were created.
    pub(crate) fn start(mut self: Box<Self>, mut problems: Vec<Diagnostic>) -> Started {
        self.initialize(&mut problems);
        if has_errors(&problems) {
            return Err((self, problems));
        }
        // From here on, elements alone have the texts of their arguments.
        self.graph.elements.iter_mut().for_each(|element| element.config = String::new());
        self.started.set(self.resources.steady());
        Ok((self, problems))
    }

    /// Makes the state of a router whose elements are not created yet.
    pub(crate) async fn assemble(graph: Graph, parts: Parts, hookup: Hookup) -> Box<RouterState> {
        let Parts { registry, environment, mut options, pool, .. } = parts;
        options.batch = options.batch.clamp(1, MAX_BATCH);
        let seed = options.seed.unwrap_or_else(|| environment.seed());
        // The sequences of shards differ.
        let seed = seed.wrapping_add(u64::from(options.shard.index) << 48);
        let mut order = order::analyse(&hookup).await;
        pause().await;
        let joins = join::find(&hookup, &mut order).await;
        free_many(core::mem::take(&mut order.reach), ELEMENTS_A_STEP).await;
        let paces = pace::find(&hookup).await;
        let relays = Relays::find(&hookup).await;
        let Hookup { classes, inputs, outputs } = hookup;
        let hooks = Rc::new(Hooks::of(&classes).await);
        let counting = Rc::new(CountingElements::none(classes.len()));
        let mut nodes = Vec::with_capacity(classes.len());
        let mut connections = Vec::new();
        let count: usize = outputs.iter().map(Vec::len).sum();
        let ends = inputs.into_iter().zip(outputs);
        for (index, ((element, class), ((inputs, outputs), groups))) in
            graph.elements.iter().zip(classes).zip(ends.zip(order.groups)).enumerate()
        {
            pause_every(ELEMENTS_A_STEP, index).await;
            let counts = (inputs.len(), outputs.len());
            let identity = (&*element.name, class.info, &*element.config);
            let first_connection = connections.len();
            let is_split =
                |output: &PortLinks| output.peers.first().is_some_and(|peer| joins.splits.contains(&peer.0));
            for (port, output) in outputs.iter().enumerate() {
                pause_every(CONNECTIONS_A_STEP, port).await;
                connections.push(Connection::new(index, output, &order.serial, is_split(output)));
            }
            let gathering = |port| {
                let (place, split) = *joins.outputs.get(&(index, port))?;
                let connection = (count + place) as u32;
                let &GatheringPlace { is_meeting, mixed_input, part, .. } = joins.places.get(place)?;
                let (place, split) = (place as u32, split.map(|split| split as u32));
                let is_closed = split.is_some_and(|split| joins.closed.contains(&(split as usize)));
                let packets = Cell::new(0);
                Some(Gathering {
                    place,
                    connection,
                    split,
                    is_meeting,
                    mixed_input,
                    part,
                    is_closed,
                    packets,
                })
            };
            let mut gatherings = Vec::new();
            for port in 0..outputs.len() {
                pause_every(CONNECTIONS_A_STEP, port).await;
                gatherings.push(gathering(port));
            }
            if gatherings.iter().all(Option::is_none) {
                gatherings.clear();
            }
            if outputs.len() > CONNECTIONS_A_STEP {
                pause().await;
            }
            let split = joins.splits.contains(&index).then(|| Split {
                number: index as u32,
                is_closed: joins.closed.contains(&index),
                has_copies: joins.several.contains(&index),
            });
            let details = NodeDetails {
                class,
                location: element.location.clone(),
                inputs: make_ports(inputs).await,
                outputs: make_ports(outputs).await,
                // Both signals start active: packets and room are assumed until an element reports otherwise.
                empty: Notifier::active(),
                full: Notifier::active(),
                work: Cell::default(),
            };
            nodes.push(Node {
                object: RefCell::new(None),
                element: ElementState::new(
                    index,
                    identity,
                    counts,
                    (first_connection, groups, gatherings, split),
                    seed,
                    &counting,
                ),
                details: Box::new(details),
            });
        }
        let place = |&GatheringPlace { before: (element, input), mixed_input, .. }: &GatheringPlace| {
            let is_serial = order.serial.get(element) != Some(&false);
            Connection::of_place(
                (element, input),
                is_serial,
                joins.splits.contains(&element),
                mixed_input.is_some(),
            )
        };
        connections.extend(joins.places.iter().map(place));
        let is_wide = joins.is_wide;
        free_map(joins.outputs, CONNECTIONS_A_STEP).await;
        let mut by_name = BTreeMap::new();
        for (index, node) in nodes.iter().enumerate() {
            pause_every(ELEMENTS_A_STEP, index).await;
            by_name.insert(node.element.name.clone(), index);
        }
        pause().await;
        let phases: Vec<_> = nodes.iter().map(|node| node.element.class.phase).collect();
        let elements_in_order = configure_order::order(&phases);
        pause().await;
        let pool = pool.unwrap_or_else(|| Pool::new(options.packets));
        let mut resources = Resources::new(environment, pool, Clock::new(options.simulated));
        resources.shard = options.shard;
        Box::new(RouterState {
            schedule: RefCell::new(Schedule::new(nodes.len())),
            resources,
            nodes,
            counting,
            hooks,
            connections,
            graph,
            registry,
            options,
            missed: Cell::new(false),
            by_name: Rc::new(by_name),
            order: elements_in_order,
            to_initialize: Vec::new(),
            predecessors: RefCell::default(),
            timers: RefCell::default(),
            watched: RefCell::default(),
            relays,
            searches: Cell::new(0),
            turns_left: Cell::new(1),
            is_wide,
            extra_turns: Cell::new(0),
            paces,
            paced_turns: Cell::new(0),
            following: Cell::new(NO_ELEMENT),
            running: Cell::new(NO_ELEMENT),
            watch: Cell::new(Watch::Nothing),
            own_writes: OwnWrites::default(),
            owed: Cell::default(),
            has_moved: Cell::default(),
            stepped: Cell::default(),
            started: Cell::default(),
            has_run_timers: Cell::new(false),
            mixed_inputs: Cell::default(),
            current_batch: Cell::new(BatchTrace::EMPTY),
            outputs: RefCell::default(),
            successor: RefCell::default(),
            preparation: RefCell::default(),
            past: Account::default(),
            past_totals: Totals::default(),
        })
    }

    /// Creates all elements, then resolves the references between those that were created. The diagnostics of an
    /// element are kept together, in configuration order.
    async fn configure(&mut self, problems: &mut Vec<Diagnostic>, in_steps: Option<GivenUp>) {
        let mut found = self.create(None, in_steps).await;
        self.to_initialize = self.resolve(&mut found).await;
        if self.resources.needs_single_packets.get() {
            self.options.batch = 1;
        }
        sorting::sort_by_key(&mut found, |(position, _)| *position);
        problems.extend(found.into_iter().map(|(_, problem)| problem));
    }

    /// Creates all elements; returns each diagnostic with the element's position in configuration order.
    /// In a check, errors that depend on errors of the compiler are marked as consequences.
    pub(crate) async fn create(
        &mut self,
        check: Option<&CompilerErrors>,
        in_steps: Option<GivenUp>,
    ) -> Vec<(usize, Diagnostic)> {
        let mut found = Vec::new();
        let mut line_files = BTreeSet::new();
        let (mut loggers, mut logs_packets) = (0, false);
        for (position, &index) in self.order.iter().enumerate() {
            let Some(node) = self.nodes.get(index).filter(|node| !node.class.is_unknown()) else {
                continue;
            };
            if in_steps.as_ref().is_some_and(|given_up| given_up.get()) {
                found.push((position, error(None, GIVEN_UP.to_string())));
                break;
            }
            let config = self.graph.elements.get(index).map_or("", |element| &element.config);
            let mut setup = Setup::new(
                &node.element.name,
                node.element.ports,
                &self.resources.names,
                self.resources.environment.as_ref(),
            );
            setup.checking = check.is_some();
            setup.threads = self.options.threads;
            setup.shard = self.options.shard;
            let begun = in_steps.as_ref().and_then(|given_up| Some((node.class.begin(config)?, given_up)));
            let mut created = match begun {
                Some((object, given_up)) => create_in_steps(object, config, &mut setup, given_up).await,
                None => node.class.create(Arguments::new(config), &mut setup),
            };
            if setup.line_file.take().is_some_and(|file| !line_files.insert(file)) {
                self.resources.needs_single_packets.set(true);
            }
            loggers += usize::from(node.class.info.logs);
            logs_packets |= setup.logs_packets;
            if setup.unbatched {
                self.resources.needs_single_packets.set(true);
            }
            if (setup.unbatched || setup.logs_packets) && created.is_ok() {
                let result = setup.require_one_shard("acting on other elements while packets pass");
                created = result.and(created);
            }
            let mut finder = self.graph.elements.get(index).map(ArgumentFinder::new);
            let notes = setup.notes.into_iter().map(|text| (Severity::Note, Message::Other(text)));
            let warnings = setup.warnings.into_iter().map(|warning| (Severity::Warning, warning));
            for (severity, remark) in warnings.chain(notes) {
                let message = self.context("While configuring", index, &remark.to_string());
                let mut diagnostic = Diagnostic::new(severity, node.location.clone(), message);
                diagnostic.parts.extend(self.in_own_words(severity, index, &remark, &mut finder));
                found.push((position, diagnostic));
            }
            match created {
                Ok(object) => {
                    let rests =
                        self.options.shard.index > 0 && node.element.class.shards.mode == ShardMode::First;
                    *node.object.borrow_mut() = Some(if rests { Box::new(Resting(object)) } else { object });
                }
                Err(error) => {
                    let mut problem = self.problem("While configuring", index, &error);
                    let element = self.graph.elements.get(index);
                    if let Some((errors, element)) = check.zip(element) {
                        errors.mark_consequences(element, &error.messages, &mut problem.parts);
                    }
                    found.push((position, problem));
                }
            }
            if in_steps.is_some() {
                pause().await;
            }
        }
        // Their lines come in the order of the packets.
        if logs_packets && loggers > 1 {
            self.resources.needs_single_packets.set(true);
        }
        found
    }

    /// Resolves the references of the elements that were created. An error is suppressed if the element looked up an
    /// export of one that was not created, because its result is unknown. Returns the elements that must be initialised.
    async fn resolve(&self, found: &mut Vec<(usize, Diagnostic)>) -> Vec<usize> {
        let mut to_initialize = Vec::with_capacity(self.order.len());
        for (position, &index) in self.order.iter().enumerate() {
            pause_every(ELEMENTS_A_STEP, position).await;
            self.missed.set(false);
            self.resources.is_needless.set(false);
            let result = self.call(index, |object, cx| object.resolve(cx));
            if !self.resources.is_needless.take() {
                to_initialize.push(index);
            }
            let mut problems = Vec::new();
            self.report_remarks("While configuring", &mut problems);
            if let Some(Err(error)) = result
                && !self.missed.get()
            {
                problems.push(self.problem("While configuring", index, &error));
            }
            found.extend(problems.into_iter().map(|problem| (position, problem)));
        }
        to_initialize
    }

    fn initialize(&self, problems: &mut Vec<Diagnostic>) {
        let mut outputs = self.take_outputs();
        for (done, &index) in self.to_initialize.iter().enumerate() {
            if !self.hooks.needs(index, Hook::Initialize) {
                continue;
            }
            let result =
                self.call_hook(Hook::Initialize, &mut outputs, index, |object, cx| object.initialize(cx));
            self.report_remarks("While initializing", problems);
            if let Some(Err(error)) = result {
                problems.push(self.problem("While initializing", index, &error));
                self.close(self.to_initialize.get(..=done).unwrap_or_default());
                return;
            }
            self.run_deferred();
        }
        self.outputs.borrow_mut().push(outputs);
    }

    /// Turns the remarks of elements into diagnostics.
    fn report_remarks(&self, what: &str, problems: &mut Vec<Diagnostic>) {
        for SetupRemark { element, is_warning, data_location, text } in self.resources.remarks.take() {
            let severity = if is_warning { Severity::Warning } else { Severity::Note };
            if let Some(node) = self.nodes.get(element) {
                let message = self.context(what, element, &text);
                let diagnostic = Diagnostic::new(severity, node.location.clone(), message);
                problems.push(diagnostic.with_data_location(data_location));
            }
        }
    }

    fn problem(&self, what: &str, index: usize, problem: &SetupError) -> Diagnostic {
        let text =
            if problem.messages.is_empty() { "unspecified error".to_string() } else { problem.to_string() };
        let location = self.nodes.get(index).map(|node| node.location.clone());
        let Some(Message::InFile { location: data_location, is_named, .. }) = problem.messages.first() else {
            let mut diagnostic = error(location, self.context(what, index, &text));
            let parts = problem.messages.iter();
            let mut finder = self.graph.elements.get(index).map(ArgumentFinder::new);
            let own = |message| self.in_own_words(Severity::Error, index, message, &mut finder);
            let parts = parts.filter_map(own);
            diagnostic.parts.extend(parts);
            return diagnostic;
        };
        let subject = named(&self.graph, index);
        let subject = if *is_named { format!("{subject}({data_location})") } else { subject };
        error(location, introduced(what, &subject, &text)).with_data_location(Some(data_location.clone()))
    }

    /// A message about an element's arguments in our own words, at the argument.
    fn in_own_words(
        &self,
        severity: Severity,
        index: usize,
        message: &Message,
        finder: &mut Option<ArgumentFinder<'_>>,
    ) -> Option<Diagnostic> {
        let element = self.graph.elements.get(index)?;
        let class = self.nodes.get(index)?.class.info;
        let found = message.subject().zip(finder.as_mut()).and_then(|(subject, finder)| finder.find(subject));
        let hint = match message {
            Message::Unknown { keyword } => {
                nearest(keyword, class.arguments().map(|argument| argument.keyword)).map(did_you_mean)
            }
            Message::InArgument { unknown: Some((word, known)), .. } => {
                nearest(word, known.iter().copied()).map(did_you_mean)
            }
            _ => misplaced(class, &element.config, message),
        };
        let hint = hint.or_else(|| value_hint(message.subject()?).filter(|_| severity == Severity::Error));
        let text = message.beside_subject();
        // The name of an element without one says nothing that the class does not.
        let is_named = !element.name.contains('@');
        let name = if is_named { format!(" ‘{}’", element.name) } else { String::new() };
        let text = format!("{}{name}: {text}", class.name);
        let location = found.unwrap_or_else(|| element.location.clone());
        Some(Diagnostic::new(severity, location, text).with_hint(hint))
    }

    fn context(&self, what: &str, index: usize, text: &str) -> String {
        introduced(what, &named(&self.graph, index), text)
    }

    /// Gives an element new arguments while it runs; on failure nothing changes.
    pub(crate) fn reconfigure(&self, index: usize, config: &str) -> Result<(), HandlerError> {
        let Some(node) = self.nodes.get(index) else { return Ok(()) };
        let held = self.packets_waiting_at(node);
        let result = self.call(index, |object, _| {
            let mut setup = Setup::new(
                &node.element.name,
                node.element.ports,
                &self.resources.names,
                self.resources.environment.as_ref(),
            );
            setup.shard = self.options.shard;
            let result = object.reconfigure(Arguments::new(config), &mut setup);
            for warning in &setup.warnings {
                self.resources.log(&format!("  warning: {warning}"));
            }
            result
        });
        match result {
            Some(Ok(())) => {
                let removed = held.saturating_sub(self.packets_waiting_at(node));
                node.element.count_drops(element::Reason::REMOVED, removed);
                node.element.record_config(config);
                Ok(())
            }
            Some(Err(error)) => Err(error.into()),
            None => Err(HandlerError::Busy(node.element.name.clone())),
        }
    }
}

/// Makes the inputs or outputs of an element.
async fn make_ports(links: Vec<PortLinks>) -> Vec<Port> {
    let mut ports = Vec::with_capacity(links.len());
    for (done, links) in links.into_iter().enumerate() {
        pause_every(CONNECTIONS_A_STEP, done).await;
        ports.push(Port::new(links));
    }
    ports
}

/// Creates an element whose creation takes many steps, until it is given up.
async fn create_in_steps(
    mut object: Box<dyn DynElement>,
    config: &str,
    setup: &mut Setup<'_>,
    given_up: &GivenUp,
) -> Result<Box<dyn DynElement>, SetupError> {
    while let Some(work) = object.long_work() {
        let result = match given_up.get() {
            true => Some(Err(SetupError::new(GIVEN_UP))),
            false => work.continue_creation(config, setup),
        };
        match result {
            None => pause().await,
            Some(Ok(())) => break,
            Some(Err(error)) => {
                free_element(object).await;
                return Err(error);
            }
        }
    }
    Ok(object)
}

fn has_errors(problems: &[Diagnostic]) -> bool {
    problems.iter().any(|problem| problem.severity == Severity::Error)
}
