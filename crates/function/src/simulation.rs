//! Runs a configuration in simulated time, for the tests of functions.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::time::Duration;

use element::{Class, Descriptor, Environment, IoError, MemoryFile, Reader, Writer};
use packet::Timestamp;
use router::{Options, Registry, Router};

/// The start of simulated time.
const START: Timestamp = Timestamp::from_parts(1_000_000_000, 0);

/// The seed of all random numbers.
const SEED: u64 = 1;

/// Simulated seconds after which a configuration is stopped that does not end.
const LONGEST: i64 = 3_600;

/// Rounds of a configuration. Stops one in which simulated time never moves.
const MAX_ROUNDS: u64 = 1 << 22;

/// Flows that are handed over at once.
const FLOWS_AT_ONCE: usize = 100;

/// Packets alive at a time.
const PACKETS: usize = 1 << 14;

/// A simulated environment: no devices, no clock, and the files that the test gives.
///
/// A configuration ends when nothing more can happen. Every run gives the same results.
pub struct Simulation {
    registry: Registry,
    files: BTreeMap<String, Rc<[u8]>>,
}

/// A configuration that runs.
pub struct Started(Finished);

/// A configuration that has run, with the final state of its elements.
pub struct Finished {
    router: Router,
    log: Rc<RefCell<Vec<String>>>,
    written: Rc<RefCell<BTreeMap<String, Vec<u8>>>>,
}

impl Simulation {
    /// A simulation whose configurations may use these classes.
    pub fn new(classes: &'static [&'static [Class]]) -> Simulation {
        Simulation { registry: Registry::new(classes), files: BTreeMap::new() }
    }

    /// Adds a file, such as a capture for `FromDump(NAME)`.
    #[must_use]
    pub fn file(mut self, name: &str, contents: &[u8]) -> Simulation {
        self.files.insert(name.into(), Rc::from(contents));
        self
    }

    /// Runs a configuration to its end.
    ///
    /// # Errors
    ///
    /// The text has errors: all of them, one a line.
    pub fn run(&self, text: &str) -> Result<Finished, String> {
        Ok(self.start(text)?.finish())
    }

    /// Starts a configuration, which runs as far as the test wants.
    ///
    /// # Errors
    ///
    /// The text has errors: all of them, one a line.
    pub fn start(&self, text: &str) -> Result<Started, String> {
        let lines = |found: Vec<click_lang::Diagnostic>| {
            found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        let is_class = |name: &str| self.registry.contains(name);
        let compiled = click_lang::compile(text, &click_lang::Options::new("config", &is_class));
        if compiled.has_errors() {
            return Err(lines(compiled.diagnostics));
        }
        let options = Options {
            packets: PACKETS,
            simulated: Some(START),
            seed: Some(SEED),
            source: text.to_string(),
            ..Options::default()
        };
        let (log, written) = (Rc::default(), Rc::default());
        let environment = Rc::new(Simulated {
            files: self.files.clone(),
            log: Rc::clone(&log),
            written: Rc::clone(&written),
            rounds: Cell::new(0),
        });
        let router = Router::new(compiled.graph, self.registry, environment, options).map_err(lines)?;
        Ok(Started(Finished { router, log, written }))
    }
}

impl Started {
    /// Lets simulated time pass.
    pub fn run_for(&mut self, time: Duration) {
        self.0.router.run_for(Some(time));
    }

    /// The value of a handler.
    ///
    /// # Errors
    ///
    /// There is no such handler, or it can't be read.
    pub fn read(&self, handler: &str) -> Result<String, String> {
        self.0.read(handler)
    }

    /// Writes a handler, such as `hotconfig` with another configuration.
    ///
    /// # Errors
    ///
    /// There is no such handler, or it refuses the value.
    pub fn write(&mut self, handler: &str, value: &str) -> Result<(), String> {
        self.0.router.write(handler, value).map_err(|error| format!("{handler}: {error}"))
    }

    /// Hands the state of all flows over to another instance of the configuration, as an instance of a service does when it is
    /// drained. Returns how many states went over.
    ///
    /// # Errors
    ///
    /// Elements that keep the state of flows cannot hand it over, or the other instance refuses some. Its flows are lost then.
    pub fn hand_over(&mut self, to: &mut Started) -> Result<usize, String> {
        let (from, to) = (&self.0.router, &to.0.router);
        let losing = from.elements_that_lose_flows();
        if !losing.is_empty() {
            return Err(format!("can't hand over the state of flows: {}", losing.join(", ")));
        }
        let mut count = 0;
        loop {
            // The state of listed flows leaves, so that each list begins again.
            let groups = from.list_flows((0, 0), FLOWS_AT_ONCE, |_| true).groups;
            let states: Vec<_> = groups.iter().flat_map(|group| from.export_flow(group)).collect();
            if states.is_empty() {
                return match groups.is_empty() {
                    true => Ok(count),
                    false => Err(format!("the state of {} flows or more is too long", groups.len())),
                };
            }
            for state in states {
                to.import_flow(&state).map_err(|error| format!("{}: {error}", state.element))?;
                count += 1;
            }
        }
    }

    /// Runs the configuration to its end.
    pub fn finish(mut self) -> Finished {
        self.0.router.run(Some(START + Timestamp::from_parts(LONGEST, 0)));
        self.0.router.stop();
        self.0
    }
}

impl Finished {
    /// The value of a handler, such as `c.count`.
    ///
    /// # Errors
    ///
    /// There is no such handler, or it can't be read.
    pub fn read(&self, handler: &str) -> Result<String, String> {
        let value = self.router.read(handler, "").map_err(|error| format!("{handler}: {error}"))?;
        Ok(value.trim_end().into())
    }

    /// The lines that the configuration wrote to the log.
    pub fn log(&self) -> Vec<String> {
        self.log.borrow().clone()
    }

    /// The contents of a file that the configuration wrote, such as that of `ToDump(NAME)`.
    pub fn written(&self, name: &str) -> Option<Vec<u8>> {
        self.written.borrow().get(name).cloned()
    }
}

/// The environment.
struct Simulated {
    files: BTreeMap<String, Rc<[u8]>>,
    log: Rc<RefCell<Vec<String>>>,
    written: Rc<RefCell<BTreeMap<String, Vec<u8>>>>,
    rounds: Cell<u64>,
}

impl Environment for Simulated {
    fn now(&self) -> Timestamp {
        START
    }

    fn steady(&self) -> Timestamp {
        START
    }

    fn seed(&self) -> u64 {
        SEED
    }

    fn console(&self, text: &str) {
        self.log.borrow_mut().push(text.into());
    }

    fn open(&self, path: &str) -> Result<Box<dyn Reader>, IoError> {
        let contents = self.files.get(path).ok_or_else(|| IoError::NotFound("No such file".into()))?;
        Ok(Box::new(MemoryFile::new(contents.clone())))
    }

    fn create(&self, path: &str, append: bool) -> Result<Box<dyn Writer>, IoError> {
        if !append {
            self.written.borrow_mut().insert(path.into(), Vec::new());
        }
        Ok(Box::new(Written { files: self.written.clone(), name: path.into() }))
    }

    fn wait(&self, _: &[(Descriptor, bool, bool)], _: Option<Timestamp>) -> Vec<Descriptor> {
        Vec::new()
    }

    /// Called once a round: some configurations never end, nor let time pass.
    fn is_interrupted(&self) -> bool {
        self.rounds.set(self.rounds.get() + 1);
        self.rounds.get() > MAX_ROUNDS
    }
}

/// A file that the configuration writes.
struct Written {
    files: Rc<RefCell<BTreeMap<String, Vec<u8>>>>,
    name: String,
}

impl Writer for Written {
    fn write(&mut self, bytes: &[u8]) -> Result<(), IoError> {
        self.files.borrow_mut().entry(self.name.clone()).or_default().extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), IoError> {
        Ok(())
    }
}
