//! An environment in memory, in which the tests run configurations.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod books;
mod network;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use element::{
    Descriptor, Device, DeviceRequest, Environment, IoError, MemoryFile, Reader, Socket, SocketError,
    SocketRequest, Terminal, Writer,
};
use network::Network;
use packet::Timestamp;
use router::{Options, Registry, Router, RunEnd};

/// The time at which simulated runs start.
pub(crate) const START: Timestamp = Timestamp::from_parts(1_000_000_000, 0);
/// Batch sizes at which results must be the same.
pub(crate) const BATCHES: [usize; 3] = [1, 7, 256];
/// Maximum simulated time of a run.
const MAX_TIME: Timestamp = Timestamp::from_parts(3_600, 0);

/// The content of a file that may be open for writing.
type File = Rc<RefCell<Vec<u8>>>;

/// Files in memory, with the project's test data behind them, a recorded console, and optionally a network.
#[derive(Default)]
pub(crate) struct Memory {
    files: RefCell<BTreeMap<String, File>>,
    console: RefCell<String>,
    network: Option<Rc<Network>>,
}

impl Memory {
    /// An environment with devices and sockets.
    pub(crate) fn connected() -> Memory {
        Memory { network: Some(Rc::default()), ..Memory::default() }
    }

    /// The text written to the console.
    pub(crate) fn console(&self) -> String {
        self.console.borrow().clone()
    }

    /// The content of a file that was written.
    pub(crate) fn file(&self, path: &str) -> Option<Vec<u8>> {
        self.files.borrow().get(path).map(|file| file.borrow().clone())
    }

    /// All files, with their contents as text.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        let files = self.files.borrow();
        let text = |file: &File| String::from_utf8_lossy(&file.borrow()).into_owned();
        files.iter().map(|(name, file)| (name.clone(), text(file))).collect()
    }

    /// Creates a file.
    pub(crate) fn put(&self, path: &str, bytes: &[u8]) {
        self.files.borrow_mut().insert(path.into(), Rc::new(RefCell::new(bytes.to_vec())));
    }
}

struct Output(File);

/// A file on a disk without room.
struct FullDisk;

impl Writer for FullDisk {
    fn write(&mut self, _: &[u8]) -> Result<(), IoError> {
        Err(IoError::Failed("No space left on device".into()))
    }

    fn flush(&mut self) -> Result<(), IoError> {
        Ok(())
    }
}

impl Writer for Output {
    fn write(&mut self, bytes: &[u8]) -> Result<(), IoError> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), IoError> {
        Ok(())
    }
}

impl Environment for Memory {
    fn now(&self) -> Timestamp {
        START
    }

    fn steady(&self) -> Timestamp {
        START
    }

    fn seed(&self) -> u64 {
        1
    }

    fn console(&self, text: &str) {
        let mut console = self.console.borrow_mut();
        console.push_str(text);
        console.push('\n');
    }

    fn terminal(&self) -> Option<Terminal> {
        Some(Terminal { columns: 60, output: false })
    }

    fn draw(&self, line: &str, _last: bool) {
        Environment::console(self, line);
    }

    fn open(&self, path: &str) -> Result<Box<dyn Reader>, IoError> {
        let bytes = match self.files.borrow().get(path) {
            Some(file) => file.borrow().clone(),
            // Of the machine's files, only the project's test data can be read.
            None if path.starts_with("testdata/") && !path.contains("..") => {
                std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path))
                    .map_err(|error| IoError::NotFound(error.to_string()))?
            }
            None => return Err(IoError::NotFound("No such file or directory".into())),
        };
        Ok(Box::new(MemoryFile::new(bytes.into())))
    }

    fn create(&self, path: &str, append: bool) -> Result<Box<dyn Writer>, IoError> {
        if path == "full" {
            return Ok(Box::new(FullDisk));
        }
        let mut files = self.files.borrow_mut();
        let file = files.entry(path.into()).or_default();
        if !append {
            file.borrow_mut().clear();
        }
        Ok(Box::new(Output(file.clone())))
    }

    fn device(&self, request: &DeviceRequest) -> Result<Box<dyn Device>, IoError> {
        let network = self.network.as_ref().ok_or(IoError::Unsupported("devices"))?;
        Ok(network.device(request))
    }

    fn socket(&self, request: &SocketRequest) -> Result<Socket, SocketError> {
        let socket = self.network.as_ref().and_then(|network| network.socket(request));
        socket.ok_or(SocketError { step: "socket", error: IoError::Unsupported("sockets") })
    }

    fn wait(&self, watched: &[(Descriptor, bool, bool)], _: Option<Timestamp>) -> Vec<Descriptor> {
        self.network.as_ref().map_or_else(Vec::new, |network| network.ready(watched))
    }
}

/// A finished run.
pub(crate) struct Run {
    pub(crate) router: Router,
    pub(crate) memory: Rc<Memory>,
}

/// Compiles and runs a configuration in simulated time until it ends.
pub(crate) fn run(config: &str, batch: usize) -> Result<Run, String> {
    run_with(config, batch, Rc::new(Memory::default()))
}

/// Like `run`, in a given environment.
pub(crate) fn run_with(config: &str, batch: usize, memory: Rc<Memory>) -> Result<Run, String> {
    let limits = Limits { batch, ..Limits::default() };
    run_graph(config, limits, memory, Registry::new(elements::REGISTRY), |_| {})
}

/// Limits of a run.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Packets in a batch.
    pub(crate) batch: usize,
    /// Packets in the pool.
    pub(crate) packets: usize,
    /// Simulated time.
    pub(crate) time: Timestamp,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { batch: 256, packets: 1 << 14, time: MAX_TIME }
    }
}

/// Like `run_with`, with other limits and other classes, after a change to the graph.
pub(crate) fn run_graph(
    config: &str,
    limits: Limits,
    memory: Rc<Memory>,
    registry: Registry,
    change: impl FnOnce(&mut click_lang::Graph),
) -> Result<Run, String> {
    let is_class = |name: &str| registry.contains(name);
    let mut compiled = click_lang::compile(config, &click_lang::Options::new("test", &is_class));
    let message = |problems: &[click_lang::Diagnostic]| {
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    if compiled.has_errors() {
        return Err(message(&compiled.diagnostics));
    }
    change(&mut compiled.graph);
    let options = Options {
        batch: limits.batch,
        simulated: Some(START),
        seed: Some(1),
        packets: limits.packets,
        ..Options::default()
    };
    let mut router =
        Router::new(compiled.graph, registry, memory.clone(), options).map_err(|all| message(&all))?;
    let mut until = START + limits.time;
    // Packets that arrive at the end of that time are still received.
    while router.run(Some(until)) == RunEnd::Paused
        && limits.time == MAX_TIME
        && memory.network.as_ref().is_some_and(|network| network.is_waiting())
    {
        until += Timestamp::from_parts(1, 0);
        assert!(
            until < START + MAX_TIME + MAX_TIME,
            "there are packets that the configuration never receives"
        );
    }
    Ok(Run { router, memory })
}

/// Checks `path = value` lines against handlers, and returns the differences. What a configuration shows must be listed:
/// the losses of each element, the count of each `Counter`, and the length of each queue that is not empty.
pub(crate) fn expectations(run: &Run, expect: &str) -> Vec<String> {
    let mut failures = Vec::new();
    let mut unlisted = visible(run);
    for line in expect.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")) {
        let Some((path, wanted)) = line.split_once('=') else {
            failures.push(format!("`{line}` is not of the form `path = value`"));
            continue;
        };
        unlisted.remove(path.trim());
        match run.router.read(path.trim(), "") {
            Ok(value) if value.trim().replace('\n', "\\n") == wanted.trim() => {}
            Ok(value) => {
                failures.push(format!("{} is `{}`, not `{}`", path.trim(), value.trim(), wanted.trim()))
            }
            Err(error) => failures.push(format!("{}: {error}", path.trim())),
        }
    }
    failures.extend(unlisted.iter().map(|(path, value)| format!("not listed: {path} = {value}")));
    failures
}

/// The handlers that show what a run has done, with their values.
fn visible(run: &Run) -> BTreeMap<String, String> {
    let read =
        |path: String| run.router.read(&path, "").ok().map(|value| (path, value.trim().replace('\n', "\\n")));
    let list = run.router.read("list", "").unwrap_or_default();
    let mut visible = BTreeMap::new();
    for element in list.lines().skip(1) {
        let is_counter = read(format!("{element}.class")).is_some_and(|(_, class)| class == "Counter");
        let is_queue = read(format!("{element}.highwater_length")).is_some();
        visible.extend(is_counter.then(|| read(format!("{element}.count"))).flatten());
        visible.extend(
            is_queue.then(|| read(format!("{element}.length"))).flatten().filter(|(_, length)| length != "0"),
        );
        visible.extend(read(format!("{element}.losses")).filter(|(_, losses)| !losses.is_empty()));
    }
    visible
}

/// All handlers that show what a run has done to packets.
pub(crate) fn state(run: &Run) -> Vec<(String, String)> {
    let elements = run.router.read("list", "").unwrap_or_default();
    let handlers = ["length", "highwater_length", "drops", "count", "losses", "icounts", "ocounts", "fates"];
    let read = |path: String| run.router.read(&path, "").ok().map(|value| (path, value));
    let mut found: Vec<_> = elements
        .lines()
        .skip(1)
        .flat_map(|element| handlers.iter().filter_map(move |handler| read(format!("{element}.{handler}"))))
        .collect();
    found.extend(read("account".into()));
    found
}
