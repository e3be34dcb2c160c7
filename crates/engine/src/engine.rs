//! The engine: its parts and its main loop.

use crate::account_publisher::AccountPublisher;
use crate::configuration::Configuration;
use crate::context::BoxContext;
use crate::error::EngineError;
use crate::events::Events;
use crate::own_writes::OwnWriteReports;
use crate::prepared_writes::PreparedWrites;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use boundary::limits::MAX_REQUEST;
use boundary::{
    BootInfo, BoxRegion, BoxState, FrameReader, FrameWriter, IdleBackoff, Inbox, Mapped, Outbox, Platform,
    StatusPage, control,
};
use router::{Account, LongWrite, Registry, Successor, Swap};

/// The program of a box.
pub struct Engine {
    pub(crate) context: Rc<BoxContext>,
    /// The memory of boot info, status, mailbox and rings.
    pages: Mapped,
    pub(crate) status: StatusPage<Mapped>,
    pub(crate) requests: FrameReader<Mapped>,
    pub(crate) replies: FrameWriter<Mapped>,
    pub(crate) inbox: Inbox,
    pub(crate) outbox: Outbox,
    pub(crate) configurations: Vec<Configuration>,
    pub(crate) prepared: PreparedWrites,
    /// A configuration that can take over.
    pub(crate) staged: Option<Staged>,
    /// A request that goes on in steps.
    pub(crate) long_request: Option<LongRequest>,
    pub(crate) own_writes: OwnWriteReports,
    /// What became of the packets of configurations that were removed.
    pub(crate) past: Account,
    pub(crate) publisher: AccountPublisher,
    pub(crate) busy_cycles: u64,
    pub(crate) generation: u32,
    /// What an empty text stands for.
    pub(crate) default_configuration: &'static str,
    backoff: IdleBackoff,
}

/// A request that goes on in steps. Those that come later wait for it.
pub(crate) struct LongRequest {
    /// Its number.
    pub(crate) number: u32,
    /// The configuration that it is about.
    pub(crate) name: String,
    pub(crate) work: LongWork,
}

/// What goes on in steps.
pub(crate) enum LongWork {
    /// The write of a handler.
    Write(LongWrite),
    /// The replacement of a configuration.
    Swap(Swap),
    /// The preparation of a replacement.
    Stage(Swap),
}

/// A configuration that was prepared.
pub(crate) enum Staged {
    /// One with a new name.
    New(Box<Configuration>),
    /// One that takes over from that of this name.
    Successor(String, Successor),
}

impl Engine {
    /// Creates an engine in the region that a boot info describes, and reports that it is ready. Configurations may use
    /// the classes of `registry`.
    pub fn new(
        info: &BootInfo,
        region: BoxRegion,
        platform: Rc<dyn Platform>,
        registry: Registry,
    ) -> Result<Engine, EngineError> {
        let (pages, leases) = region.split(&info.ports).ok_or(EngineError::Region)?;
        let channel = |offset| pages.part(offset, control::CHANNEL_SIZE).ok_or(EngineError::Region);
        let reader = |offset| FrameReader::new(channel(offset)?).map_err(EngineError::Layout);
        let writer = |offset| FrameWriter::new(channel(offset)?).map_err(EngineError::Layout);
        let status =
            pages.part(control::STATUS, control::PAGE_SIZE).ok_or(EngineError::Region).map(StatusPage)?;
        // A request that would exhaust the heap is refused before it is received.
        let heap = platform.heap_use().size;
        let longest = if heap == 0 { MAX_REQUEST } else { MAX_REQUEST.min(heap / 2) };
        let events = Events::new(writer(control::EVENTS)?, heap);
        let engine = Engine {
            context: Rc::new(BoxContext::new(info, &pages, leases, status, platform, registry, events)?),
            requests: reader(control::REQUESTS)?,
            replies: writer(control::REPLIES)?,
            inbox: Inbox::new(longest),
            outbox: Outbox::default(),
            prepared: PreparedWrites::default(),
            staged: None,
            long_request: None,
            own_writes: OwnWriteReports::default(),
            configurations: Vec::new(),
            past: Account::default(),
            publisher: AccountPublisher::default(),
            busy_cycles: 0,
            generation: status.generation(),
            default_configuration: "",
            backoff: IdleBackoff::new(info.tsc_hz),
            pages,
            status,
        };
        engine.status.set_state(BoxState::Ready);
        Ok(engine)
    }

    /// Sets the configuration that an empty text stands for: that of an image which is a single function.
    pub fn set_default_configuration(&mut self, text: &'static str) {
        self.default_configuration = text;
    }

    /// Serves mailbox and configurations until the host asks the box to stop.
    pub fn run(&mut self) -> Result<(), EngineError> {
        while !self.status.stop_requested() {
            self.round()?;
        }
        self.publish_account();
        // Elements close their files, and their last output is sent.
        self.configurations.clear();
        self.flush()
    }

    /// Runs one round: requests, a turn for each configuration, and events. After many rounds without work, the box
    /// sleeps. Returns whether it slept.
    pub fn round(&mut self) -> Result<bool, EngineError> {
        let platform = self.context.platform.clone();
        platform.pause_point();
        self.renew();
        let served = self.serve()?;
        let start = platform.cycles();
        let before = self.context.quota.moved();
        let worked = self.turn()?;
        let moved = self.context.quota.moved() - before;
        if worked {
            self.busy_cycles += platform.cycles().wrapping_sub(start);
        }
        if served {
            let template_packets =
                self.configurations.iter().map(|configuration| configuration.template_packets);
            self.context.set_template_packets(template_packets.sum());
        }
        if worked || served {
            self.context.publish_packets_held();
        }
        self.flush()?;
        let is_turn_over = self.context.is_turn_over();
        if self.publisher.is_due(worked, is_turn_over) {
            self.publish_account();
        }
        if is_turn_over {
            self.context.quota.begin();
            platform.end_turn();
        }
        if worked {
            self.backoff.found_work(moved);
            return Ok(false);
        }
        if served || self.status.is_polling() {
            self.backoff.reset();
            return Ok(false);
        }
        if !self.backoff.should_idle(start, self.status.uncontended_until()) {
            return Ok(false);
        }
        if self.backoff.should_yield(platform.cycles()) && platform.yield_before_idle() {
            self.backoff.has_yielded(platform.cycles());
            self.context.quota.begin();
            return Ok(false);
        }
        self.idle()?;
        self.backoff.has_slept(platform.cycles());
        Ok(true)
    }

    /// Gives each configuration a turn. Returns whether any had work.
    fn turn(&mut self) -> Result<bool, EngineError> {
        let mut worked = false;
        for configuration in &mut self.configurations {
            worked |= configuration.turn();
        }
        self.context.fault()?;
        self.own_writes.report(&self.context, &self.configurations);
        Ok(worked)
    }

    /// Takes the seeds, the time and the addresses that the host has given the box meanwhile: because it is a copy, or because it
    /// waited for a use.
    pub(crate) fn renew(&mut self) {
        if self.status.generation() != self.generation {
            self.take_boot_info();
        }
    }

    #[cold]
    fn take_boot_info(&mut self) {
        self.generation = self.status.generation();
        if let Ok(info) = BootInfo::read(&self.pages) {
            self.context.set_boot_info(&info);
            for configuration in &self.configurations {
                configuration.router.reseed(self.context.seed());
            }
        }
    }
}
