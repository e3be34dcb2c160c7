//! Serves a mailbox: runs each installed configuration in simulated time until it ends.
//!
//! - `File` stores a file that configurations can read.
//! - `Install` runs a configuration, always from the same time and with the same seed, and keeps its final state. The
//!   name of the configuration is the batch size. The reply contains the lines that the configuration logged.
//! - `Read` calls a read handler of the configuration that ran last.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use boundary::limits::MAX_REQUEST;
use boundary::{
    BoxState, ChannelError, FrameReader, FrameWriter, Inbox, Mapped, Outbox, Platform, Reply, Request,
    StatusPage, control,
};
use core::cell::{Cell, RefCell};
use element::{Descriptor, Environment, IoError, MemoryFile, Reader, Writer};
use packet::Timestamp;
use router::{Options, Registry, Router};

/// Start of simulated time.
const START: Timestamp = Timestamp::from_parts(1_000_000_000, 0);

/// Seed of all random numbers.
const SEED: u64 = 1;

/// Simulated seconds after which a configuration that does not end is stopped.
const LONGEST: i64 = 3_600;

/// Rounds of a configuration. Stops: one in which simulated time never moves.
const MAX_ROUNDS: u64 = 1 << 22;

/// Bytes of lines that a reply holds.
const MAX_LOG: usize = 1 << 20;

/// Packets alive at a time; they fit into the memory that the tests give to a box.
const PACKETS: usize = 12_000;

type Files = Rc<RefCell<BTreeMap<String, Rc<[u8]>>>>;

/// The mailbox, and the configuration that ran last.
pub(crate) struct Runner {
    status: StatusPage<Mapped>,
    requests: FrameReader<Mapped>,
    replies: FrameWriter<Mapped>,
    inbox: Inbox,
    outbox: Outbox,
    files: Files,
    last: Option<Router>,
}

impl Runner {
    /// A runner in the region that it shares with its host.
    pub(crate) fn new(region: Mapped) -> Result<Runner, ChannelError> {
        let part = |offset, size| region.part(offset, size).ok_or(ChannelError::Disordered);
        let channel = |offset| part(offset, control::CHANNEL_SIZE);
        let status = StatusPage(part(control::STATUS, control::PAGE_SIZE)?);
        let runner = Runner {
            status,
            requests: FrameReader::new(channel(control::REQUESTS)?).map_err(|_| ChannelError::Disordered)?,
            replies: FrameWriter::new(channel(control::REPLIES)?).map_err(|_| ChannelError::Disordered)?,
            inbox: Inbox::new(MAX_REQUEST),
            outbox: Outbox::default(),
            files: Files::default(),
            last: None,
        };
        status.set_state(BoxState::Ready);
        Ok(runner)
    }

    /// Serves requests until the host stops the box.
    pub(crate) fn run(&mut self, platform: &dyn Platform) -> Result<(), ChannelError> {
        while !self.status.stop_requested() {
            platform.pause_point();
            let served = self.serve(platform)?;
            if !self.outbox.is_empty() && self.outbox.flush(&mut self.replies)? {
                platform.ring_mailbox();
            }
            if !served {
                self.idle(platform)?;
            }
        }
        Ok(())
    }

    /// Sleeps until the host has sent a request or made room for a reply.
    fn idle(&mut self, platform: &dyn Platform) -> Result<(), ChannelError> {
        let seen = platform.prepare_idle();
        let mut sleeps = self.requests.prepare_sleep()?;
        if !self.outbox.is_empty() {
            sleeps &= self.replies.prepare_sleep()?;
        }
        if sleeps && !self.status.stop_requested() {
            platform.idle(seen, None);
        }
        self.requests.end_sleep();
        self.replies.end_sleep();
        Ok(())
    }

    /// Answers the requests that have come; whether there were any.
    fn serve(&mut self, platform: &dyn Platform) -> Result<bool, ChannelError> {
        let mut served = false;
        while let Some(message) = self.inbox.poll(&mut self.requests)? {
            let answer = match Request::decode(&message) {
                Ok(request) => self.answer(&request),
                Err(error) => Err(error.to_string()),
            };
            let reply = match &answer {
                Ok(value) => Reply::Done(value),
                Err(reason) => Reply::Failed(reason.as_bytes()),
            };
            self.outbox.push(reply.encode(message.number));
            served = true;
        }
        if self.requests.release() {
            platform.ring_mailbox();
        }
        Ok(served)
    }

    fn answer(&mut self, request: &Request) -> Result<Vec<u8>, String> {
        match *request {
            Request::Install { name, configuration } => {
                let batch = name.parse().map_err(|_| format!("`{name}` is not the size of a batch"))?;
                self.run_configuration(configuration, batch)
            }
            Request::Read { handler, argument, .. } => {
                let router = self.last.as_mut().ok_or("nothing has run")?;
                let argument = core::str::from_utf8(argument).map_err(|error| error.to_string())?;
                router.read(handler, argument).map(String::into_bytes).map_err(|error| error.to_string())
            }
            Request::File { name, contents } => {
                self.files.borrow_mut().insert(name.into(), Rc::from(contents));
                Ok(Vec::new())
            }
            _ => Err("this image runs cases of the corpus, and nothing else".into()),
        }
    }

    /// Runs a configuration to its end; the lines that it logged.
    fn run_configuration(&mut self, text: &str, batch: usize) -> Result<Vec<u8>, String> {
        self.last = None;
        let registry = || Registry::new(elements::REGISTRY);
        let is_class = |name: &str| registry().contains(name);
        let compiled = click_lang::compile(text, &click_lang::Options::new("config", &is_class));
        let lines = |diagnostics: Vec<click_lang::Diagnostic>| {
            diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        if compiled.has_errors() {
            return Err(lines(compiled.diagnostics));
        }
        let options = Options {
            batch,
            packets: PACKETS,
            simulated: Some(START),
            seed: Some(SEED),
            source: text.to_string(),
            ..Options::default()
        };
        let log = Rc::new(RefCell::new(Vec::new()));
        let environment = Rc::new(SimulatedEnvironment {
            files: self.files.clone(),
            log: log.clone(),
            rounds: Cell::new(0),
        });
        let mut router = Router::new(compiled.graph, registry(), environment, options).map_err(lines)?;
        router.run(Some(START + Timestamp::from_parts(LONGEST, 0)));
        router.stop();
        self.last = Some(router);
        Ok(log.take())
    }
}

/// The environment of a case: files that were sent, and a log.
struct SimulatedEnvironment {
    files: Files,
    log: Rc<RefCell<Vec<u8>>>,
    rounds: Cell<u64>,
}

impl Environment for SimulatedEnvironment {
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
        let mut log = self.log.borrow_mut();
        if log.len() + text.len() < MAX_LOG {
            log.extend_from_slice(text.as_bytes());
            log.push(b'\n');
        }
    }

    fn open(&self, path: &str) -> Result<Box<dyn Reader>, IoError> {
        let files = self.files.borrow();
        let contents = files.get(path).ok_or_else(|| IoError::NotFound("No such file".into()))?.clone();
        Ok(Box::new(MemoryFile::new(contents)))
    }

    fn create(&self, _path: &str, _append: bool) -> Result<Box<dyn Writer>, IoError> {
        Ok(Box::new(Sink))
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

/// Discards what is written.
struct Sink;

impl Writer for Sink {
    fn write(&mut self, _: &[u8]) -> Result<(), IoError> {
        Ok(())
    }

    fn flush(&mut self) -> Result<(), IoError> {
        Ok(())
    }
}
