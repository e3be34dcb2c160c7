//! The probe's main loop: packets, mailbox, sleep.

use crate::command::Command;
use crate::mischief::{self, Scribbler};
use crate::port::Port;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use boot::Boot;
use boundary::limits::MAX_REQUEST;
use boundary::{
    BoxState, ChannelError, CorruptIndex, Diagnostic, Event, FlowList, FrameReader, FrameWriter, IdleBackoff,
    Inbox, Mapped, Message, Outbox, PacketAccount, RefusedWrite, Reply, Request, Stats, StatusPage,
    WriteEffect, Written, control,
};

pub(crate) struct Program {
    region: Mapped,
    status: StatusPage<Mapped>,
    requests: FrameReader<Mapped>,
    replies: FrameWriter<Mapped>,
    events: FrameWriter<Mapped>,
    inbox: Inbox,
    outbox: Outbox,
    console: Outbox,
    ports: Vec<Port>,
    command: Command,
    /// What the handler `value` holds. A write to `call` makes a system call and leaves its result here.
    value: Vec<u8>,
    /// Stands for a configuration: what the last write to `setting` and all writes to `edit` said.
    setting: Vec<u8>,
    edits: Vec<Vec<u8>>,
    /// Writes that the next installation executes.
    prepared: Vec<(String, Vec<u8>)>,
    refused: Vec<RefusedWrite>,
    /// What it says of the state of flows.
    flows: Flows,
    busy_cycles: u64,
    tsc_hz: u64,
    /// The time stamp counter at which the next alarm comes.
    alarm: Option<u64>,
}

/// What a box says of the state of its flows that has none: replies that were written to `listed` and `exported`, the latter after as
/// many microseconds as were written to `pause`.
#[derive(Default)]
struct Flows {
    listed: Vec<u8>,
    exported: Vec<u8>,
    pause: u64,
}

impl Program {
    pub(crate) fn new(boot: Boot) -> Result<Self, &'static str> {
        let region = boot.region.into_mapped();
        let channel = |offset| region.part(offset, control::CHANNEL_SIZE).ok_or("no channel");
        let status = region.part(control::STATUS, control::PAGE_SIZE).ok_or("no status page")?;
        let ports: Option<Vec<Port>> = boot.info.ports.iter().map(|info| Port::new(&region, info)).collect();
        boot::on_crash(|page| page.set_element(b"probe"));
        let status = StatusPage(status);
        status.set_state(BoxState::Ready);
        Ok(Self {
            region,
            status,
            requests: FrameReader::new(channel(control::REQUESTS)?).map_err(|_| "requests don't fit")?,
            replies: FrameWriter::new(channel(control::REPLIES)?).map_err(|_| "replies don't fit")?,
            events: FrameWriter::new(channel(control::EVENTS)?).map_err(|_| "events don't fit")?,
            inbox: Inbox::new(MAX_REQUEST),
            outbox: Outbox::default(),
            console: Outbox::default(),
            ports: ports.ok_or("a port is outside the shared region")?,
            command: Command::Drop,
            value: Vec::new(),
            setting: Vec::new(),
            edits: Vec::new(),
            prepared: Vec::new(),
            refused: Vec::new(),
            flows: Flows::default(),
            busy_cycles: 0,
            tsc_hz: boot.info.tsc_hz,
            alarm: None,
        })
    }

    pub(crate) fn run(mut self) -> ! {
        let (mut backoff, mut used) = (IdleBackoff::new(self.tsc_hz), 0);
        loop {
            let served = self.serve().unwrap_or_else(|error| panic!("{error}"));
            let start = boot::cycles();
            let moved = self.move_packets().unwrap_or_else(|error| panic!("{error}"));
            if moved > 0 {
                self.busy_cycles += boot::cycles() - start;
            }
            if self.status.stop_requested() {
                boot::stop();
            }
            used += moved;
            let quantum = self.status.quantum();
            if quantum != 0 && used >= quantum && boot::cycles() >= self.status.uncontended_until() {
                used = 0;
                boot::end_turn();
            }
            if moved > 0 {
                backoff.found_work(moved.into());
            } else if served || self.command == Command::Busy || self.status.is_polling() {
                backoff.reset();
            } else if backoff.should_idle(start, self.status.uncontended_until()) {
                used = 0;
                if backoff.should_yield(boot::cycles()) && boot::yield_before_idle() {
                    backoff.has_yielded(boot::cycles());
                    continue;
                }
                if self.is_stuck().unwrap_or_else(|error| panic!("{error}")) {
                    boot::end_turn();
                } else {
                    self.sleep().unwrap_or_else(|error| panic!("{error}"));
                }
                backoff.has_slept(boot::cycles());
            }
        }
    }

    /// Whether packets that are to go on find no room.
    fn is_stuck(&mut self) -> Result<bool, CorruptIndex> {
        let mut waiting = 0;
        for port in &mut self.ports {
            waiting += port.receive.available(1)?;
        }
        Ok(waiting > 0 && matches!(self.command, Command::Mirror | Command::Forward))
    }

    /// Sleeps, unless there is work: it sets the sleep flags, looks once more, then leaves.
    fn sleep(&mut self) -> Result<(), ChannelError> {
        let seen = boot::prepare_idle();
        let mut sleeps = self.requests.prepare_sleep()?;
        for port in &mut self.ports {
            sleeps &= port.receive.prepare_sleep()?;
        }
        if matches!(self.command, Command::Send(_)) {
            for port in &mut self.ports {
                sleeps &= port.transmit.prepare_sleep_for(port.worth)?;
            }
        }
        if !self.outbox.is_empty() {
            sleeps &= self.replies.prepare_sleep()?;
        }
        if sleeps && !self.status.stop_requested() {
            boot::idle(seen, self.alarm);
        }
        self.requests.end_sleep();
        self.replies.end_sleep();
        for port in &self.ports {
            port.receive.end_sleep();
            port.transmit.end_sleep();
        }
        Ok(())
    }

    fn move_packets(&mut self) -> Result<u32, CorruptIndex> {
        let mut moved = 0;
        match self.command {
            Command::Drop | Command::Late(_) | Command::Mute(_) => {
                for port in &mut self.ports {
                    moved += port.drop_batch()?;
                }
            }
            Command::Mirror | Command::Busy => {
                for port in &mut self.ports {
                    moved += port.mirror_batch()?;
                }
            }
            Command::Forward => {
                for pair in self.ports.chunks_exact_mut(2) {
                    if let [left, right] = pair {
                        moved += left.forward_batch(right)? + right.forward_batch(left)?;
                    }
                }
            }
            Command::Send(length) => {
                if let Some(port) = self.ports.first_mut() {
                    moved += port.send_batch(length)?;
                }
            }
            Command::Alarm(microseconds) => {
                let now = boot::cycles();
                if self.alarm.is_none_or(|alarm| now >= alarm) {
                    if self.alarm.is_some() {
                        self.say("alarm");
                    }
                    self.alarm = Some(now + microseconds * self.tsc_hz / 1_000_000);
                }
            }
            Command::Work(microseconds) => {
                self.work(microseconds);
                self.command = Command::Drop;
            }
            Command::Loop => loop {
                core::hint::spin_loop();
            },
            Command::Ring => loop {
                boot::ring_host();
            },
            Command::RingMailbox => loop {
                boot::ring_mailbox();
            },
            Command::Fault(kind) => mischief::fault(kind),
            Command::Panic => panic!("as commanded"),
            Command::Memory => mischief::take_all_memory(),
            Command::Scribble(seed) => Scribbler::new(seed).scribble(&self.region),
        }
        Ok(moved)
    }

    /// Computes for some time.
    fn work(&self, microseconds: u64) {
        let until = boot::cycles() + microseconds * self.tsc_hz / 1_000_000;
        while boot::cycles() < until {
            core::hint::spin_loop();
        }
    }

    /// Answers requests; whether there was one, or an answer is still on its way.
    fn serve(&mut self) -> Result<bool, ChannelError> {
        let mut served = false;
        // The reply to this command itself still rings.
        let mute = matches!(self.command, Command::Mute(_));
        while let Some(message) = self.inbox.poll(&mut self.requests)? {
            if let Command::Late(microseconds) | Command::Mute(microseconds) = self.command {
                self.work(microseconds);
            }
            let reply = match Request::decode(&message) {
                Ok(request @ Request::ExportFlows { .. }) => {
                    self.work(self.flows.pause);
                    self.answer(&request)
                }
                Ok(request) => self.answer(&request),
                Err(error) => Err(format!("{error}")),
            };
            let reply = match &reply {
                Ok(value) => Reply::Done(value),
                Err(reason) => Reply::Failed(reason.as_bytes()),
            };
            self.outbox.push(reply.encode(message.number));
            served = true;
        }
        let has_room = self.requests.release();
        let replied = !self.outbox.is_empty() && self.outbox.flush(&mut self.replies)?;
        if (has_room || replied) && !mute {
            boot::ring_mailbox();
        }
        if !self.console.is_empty() {
            self.console.flush(&mut self.events)?;
        }
        Ok(served)
    }

    fn answer(&mut self, request: &Request) -> Result<Vec<u8>, String> {
        match *request {
            Request::Install { configuration, .. } => {
                self.alarm = None;
                self.command =
                    Command::parse(configuration).ok_or_else(|| format!("`{configuration}`: unknown"))?;
                self.say(configuration);
                (self.setting, self.edits) = (Vec::new(), Vec::new());
                self.refused.clear();
                for (number, (handler, value)) in (0..).zip(core::mem::take(&mut self.prepared)) {
                    if let Err(reason) = self.configure(&handler, &value) {
                        self.refused.push(RefusedWrite { number, reason });
                    }
                }
                Ok(Vec::new())
            }
            Request::Destinations { .. } | Request::Parameters { .. } => Ok(Vec::new()),
            Request::Remove { .. } => {
                self.command = Command::Drop;
                Ok(Vec::new())
            }
            Request::Read { handler: "value", .. } => Ok(self.value.clone()),
            Request::Read { handler: "setting", .. } => Ok(self.setting.clone()),
            Request::Read { handler: "edits", .. } => Ok(self.edits.join(&b' ')),
            Request::Write { handler: handler @ ("setting" | "edit"), value, .. } => {
                self.configure(handler, value).map(Written::encode)
            }
            Request::Prepare { handler, value, .. } => {
                self.prepared.push((handler.into(), value.into()));
                Ok(Vec::new())
            }
            Request::Prepared => {
                self.prepared.clear();
                Ok(RefusedWrite::encode(&core::mem::take(&mut self.refused)))
            }
            Request::Write { handler: "value", value, .. } => {
                self.value = value.to_vec();
                Ok(Vec::new())
            }
            Request::Write { handler: "listed", value, .. } => {
                self.flows.listed = value.to_vec();
                Ok(Vec::new())
            }
            Request::Write { handler: "exported", value, .. } => {
                self.flows.exported = value.to_vec();
                Ok(Vec::new())
            }
            Request::Write { handler: "pause", value, .. } => {
                let microseconds = core::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                self.flows.pause = microseconds.ok_or("no number of microseconds")?;
                Ok(Vec::new())
            }
            Request::Write { handler: "call", value, .. } => {
                let result = mischief::system_call(value).ok_or("not a system call")?;
                self.value = format!("{result}").into_bytes();
                Ok(Vec::new())
            }
            Request::Stats => {
                let heap = boot::heap_use();
                let stats = Stats {
                    busy_cycles: self.busy_cycles,
                    heap_used: heap.used as u64,
                    heap_peak: heap.peak as u64,
                    lost_events: 0,
                    ports: self.ports.iter().map(|port| port.stats).collect(),
                    drops: Vec::new(),
                    account: PacketAccount::default(),
                };
                Ok(stats.encode())
            }
            Request::Read { handler, .. } | Request::Write { handler, .. } => {
                Err(format!("`{handler}`: no such handler"))
            }
            Request::ListFlows { .. } if self.flows.listed.is_empty() => Ok(FlowList::default().encode()),
            Request::ListFlows { .. } => Ok(self.flows.listed.clone()),
            Request::ExportFlows { .. } if !self.flows.exported.is_empty() => Ok(self.flows.exported.clone()),
            Request::ExportFlows { .. }
            | Request::ImportFlows { .. }
            | Request::Shard { .. }
            | Request::Ranges
            | Request::Stage { .. }
            | Request::Commit
            | Request::Abort
            | Request::Merge { .. } => Err("the probe runs alone, and keeps no state of flows".into()),
            Request::File { name, .. } => Err(format!("`{name}`: files are not kept")),
            Request::Rewrite { .. } => Err("the probe's configurations have no elements".into()),
            Request::Check { configuration } => match Command::parse(configuration) {
                Some(_) => Ok(Diagnostic::encode(&[])),
                None => Err(format!("`{configuration}`: unknown")),
            },
        }
    }

    /// Writes to a handler that changes the configuration. The value `refuse` is refused.
    fn configure(&mut self, handler: &str, value: &[u8]) -> Result<Written, String> {
        let effect = match handler {
            _ if value == b"refuse" => return Err(format!("`{handler}`: refused")),
            "setting" => {
                self.setting = value.into();
                WriteEffect::Setting
            }
            "edit" => {
                self.edits.push(value.into());
                WriteEffect::Edit
            }
            _ => return Err(format!("`{handler}`: no such handler")),
        };
        Ok(Written { effect, in_config: false })
    }

    fn say(&mut self, command: &str) {
        let line = format!("runs `{command}`");
        let event = Event::Console { name: b"", line: line.as_bytes() };
        let message: Message = event.encode(0);
        self.console.push(message);
    }
}
