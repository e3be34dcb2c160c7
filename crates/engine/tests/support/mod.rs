//! Helpers shared by the engine's tests: a box in this thread, over plain memory, with simulated time.

#![allow(unsafe_code, reason = "the memory of a box that has no sandbox")]
#![allow(dead_code, reason = "each test program uses its part")]

use boundary::limits::{BUFFER_SIZE, MAX_EVENT, MAX_REPLY};
use boundary::{
    BootInfo, BoxRegion, CpuFeatures, Diagnostic, DoorbellCount, Event, FrameReader, FrameWriter, HostPort,
    Inbox, Mapped, Outbox, Platform, PlatformKind, PortInfo, RegionLayout, Reply, Request, Slots, Stats,
    StatusPage, control,
};
use engine::Engine;
use router::Registry;
use std::cell::Cell;
use std::ptr::NonNull;
use std::rc::Rc;

/// Cycles per second of the simulated counter, and cycles per round of the engine.
pub(crate) const TSC_HZ: u64 = 1_000_000_000;
const ROUND: u64 = 1_000;

/// Seconds since 1970 at the start of a test.
pub(crate) const NOW: u64 = 1_700_000_000;

/// A platform whose time advances with each round, and jumps to the alarm when the box sleeps_until_alarm.
#[derive(Default)]
pub(crate) struct SteppedPlatform {
    cycles: Cell<u64>,
    pub(crate) sleeps: Cell<u32>,
    pub(crate) turns: Cell<u32>,
    /// The number of yields before a sleep.
    pub(crate) yields: Cell<u32>,
    /// Whether a sleep lasts until the alarm instead of returning at once.
    pub(crate) sleeps_until_alarm: Cell<bool>,
    pub(crate) alarm: Cell<Option<u64>>,
    /// The cycles that pass before each look at them: a box may be delayed at any time.
    pub(crate) delay: Cell<u64>,
}

impl Platform for SteppedPlatform {
    fn cycles(&self) -> u64 {
        self.cycles.set(self.cycles.get() + self.delay.get());
        self.cycles.get()
    }

    fn prepare_idle(&self) -> DoorbellCount {
        DoorbellCount(0)
    }

    fn idle(&self, _: DoorbellCount, alarm: Option<u64>) {
        self.sleeps.set(self.sleeps.get() + 1);
        self.alarm.set(alarm);
        if let Some(alarm) = alarm.filter(|_| self.sleeps_until_alarm.get()) {
            self.cycles.set(self.cycles.get().max(alarm));
        }
    }

    fn end_turn(&self) {
        self.turns.set(self.turns.get() + 1);
    }

    fn yield_before_idle(&self) -> bool {
        self.yields.set(self.yields.get() + 1);
        true
    }

    fn ring_host(&self) {}
    fn ring_mailbox(&self) {}

    fn pause_point(&self) {
        self.cycles.set(self.cycles.get() + ROUND);
    }
}

/// A box in this thread, and the host's ends.
pub(crate) struct TestBox {
    pub(crate) engine: Engine,
    pub(crate) platform: Rc<SteppedPlatform>,
    pub(crate) ports: Vec<HostPort<()>>,
    pub(crate) region_memory: Mapped,
    pub(crate) info: BootInfo,
    requests: FrameWriter<Mapped>,
    replies: FrameReader<Mapped>,
    events: FrameReader<Mapped>,
    outbox: Outbox,
    inbox: Inbox,
    event_inbox: Inbox,
    number: u32,
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    Failed(String),
    Missing(String),
    Rejected(Vec<Diagnostic>),
}

impl TestBox {
    /// A box with this many ports and slots.
    pub(crate) fn new(ports: usize, slots: u32) -> TestBox {
        TestBox::paired(ports, slots, 1)
    }

    /// A box whose ports have several ring pairs. `ports` has all of the first port, then those of the next one.
    pub(crate) fn paired(ports: usize, slots: u32, pairs: usize) -> TestBox {
        let slots = Slots::new(slots).unwrap();
        let layout = RegionLayout::paired(&vec![slots; ports], pairs).unwrap();
        let memory = Vec::leak(vec![0u64; layout.size / 8]);
        // SAFETY: the memory is never freed, and nothing else uses it.
        let region_memory = unsafe { Mapped::new(NonNull::from(&mut *memory).cast(), layout.size) };
        let info = |(number, port): (usize, &boundary::PortLayout)| PortInfo {
            slots,
            receive: port.receive as u32,
            transmit: port.transmit as u32,
            buffers: port.buffers as u32,
            buffers_size: port.buffers_size as u32,
            mac: u64::from_le_bytes([2, 0, 0, 0, 0, number as u8, 0, 0]),
            mtu: 1500,
        };
        let info = BootInfo {
            platform: PlatformKind::Thread,
            features: CpuFeatures::default(),
            tsc_hz: TSC_HZ,
            clock_tsc: 0,
            clock_unix_ns: NOW * 1_000_000_000,
            seeds: [1, 2, 3, 4],
            regions: Vec::new(),
            ports: layout.ports.iter().enumerate().map(info).collect(),
            pairs: pairs as u32,
        };
        info.write(&region_memory).unwrap();
        let ports =
            layout.ports.iter().map(|port| HostPort::new(&region_memory, port, ()).unwrap()).collect();
        let platform = Rc::new(SteppedPlatform::default());
        let channel = |offset| region_memory.part(offset, control::CHANNEL_SIZE).unwrap();
        // SAFETY: the memory is never freed, and this is its only box. The host's ends below touch a buffer only while
        // a ring holds it.
        let region = unsafe { BoxRegion::new(region_memory) };
        TestBox {
            engine: Engine::new(&info, region, platform.clone(), Registry::new(elements::REGISTRY)).unwrap(),
            platform,
            ports,
            region_memory,
            info,
            requests: FrameWriter::new(channel(control::REQUESTS)).unwrap(),
            replies: FrameReader::new(channel(control::REPLIES)).unwrap(),
            events: FrameReader::new(channel(control::EVENTS)).unwrap(),
            outbox: Outbox::default(),
            inbox: Inbox::new(MAX_REPLY),
            event_inbox: Inbox::new(MAX_EVENT),
            number: 0,
        }
    }

    pub(crate) fn status(&self) -> StatusPage<Mapped> {
        StatusPage(self.region_memory.part(control::STATUS, control::PAGE_SIZE).unwrap())
    }

    /// Runs rounds until the box sleeps_until_alarm.
    pub(crate) fn settle(&mut self) {
        for _ in 0..100_000 {
            if self.engine.round().unwrap() {
                return;
            }
        }
        panic!("the box does not become idle");
    }

    /// Runs rounds until this time has passed.
    pub(crate) fn pass(&mut self, milliseconds: u64) {
        let end = self.platform.cycles() + milliseconds * TSC_HZ / 1000;
        self.platform.sleeps_until_alarm.set(true);
        while self.platform.cycles() < end {
            self.engine.round().unwrap();
        }
        self.platform.sleeps_until_alarm.set(false);
    }

    /// Sends requests together; returns the replies in order.
    pub(crate) fn call_all(&mut self, requests: &[Request]) -> Vec<Result<Vec<u8>, CallError>> {
        let before = self.number;
        for request in requests {
            self.number += 1;
            self.outbox.push(request.encode(self.number));
        }
        let last = core::mem::replace(&mut self.number, before);
        (before..last)
            .map(|_| {
                self.number += 1;
                self.reply()
            })
            .collect()
    }

    /// Sends a request and runs rounds until the reply arrives.
    pub(crate) fn call(&mut self, request: &Request) -> Result<Vec<u8>, CallError> {
        self.number += 1;
        self.outbox.push(request.encode(self.number));
        self.reply()
    }

    /// Runs rounds until the reply with this number arrives.
    fn reply(&mut self) -> Result<Vec<u8>, CallError> {
        for _ in 0..100_000 {
            self.outbox.flush(&mut self.requests).unwrap();
            self.engine.round().unwrap();
            let reply = self.inbox.poll(&mut self.replies).unwrap();
            self.replies.release();
            if let Some(reply) = reply {
                assert_eq!(reply.number, self.number);
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                return match Reply::decode(&reply).unwrap() {
                    Reply::Done(value) => Ok(value.to_vec()),
                    Reply::Failed(reason) => Err(CallError::Failed(text(reason))),
                    Reply::Missing(reason) => Err(CallError::Missing(text(reason))),
                    Reply::Rejected(found) => Err(CallError::Rejected(Diagnostic::decode(found).unwrap())),
                };
            }
        }
        panic!("no reply");
    }

    /// Installs a configuration. Returns its warnings.
    pub(crate) fn install(&mut self, name: &str, configuration: &str) -> Result<Vec<Diagnostic>, CallError> {
        let reply = self.call(&Request::Install { name, configuration })?;
        Ok(Diagnostic::decode(&reply).unwrap())
    }

    pub(crate) fn read(&mut self, name: &str, handler: &str) -> Result<String, CallError> {
        let value = self.call(&Request::Read { name, handler, argument: b"" })?;
        Ok(String::from_utf8(value).unwrap())
    }

    pub(crate) fn write(&mut self, name: &str, handler: &str, value: &str) -> Result<(), CallError> {
        self.call(&Request::Write { name, handler, value: value.as_bytes() }).map(drop)
    }

    pub(crate) fn stats(&mut self) -> Stats {
        Stats::decode(&self.call(&Request::Stats).unwrap()).unwrap()
    }

    /// The lines logged since the last call, each with the name of its configuration.
    pub(crate) fn lines(&mut self) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut lines = Vec::new();
        self.each_event(|event| {
            if let Event::Console { name, line } = event {
                lines.push((text(name), text(line)));
            }
        });
        lines
    }

    /// Receives all events.
    pub(crate) fn each_event(&mut self, mut each: impl FnMut(Event)) {
        loop {
            let message = self.event_inbox.poll(&mut self.events).unwrap();
            self.events.release();
            match message {
                Some(message) => each(Event::decode(&message).unwrap()),
                None if self.engine.round().unwrap() => return,
                None => {}
            }
        }
    }

    /// Sends packets to a port, as many as fit.
    pub(crate) fn send(&mut self, port: usize, packets: &[Vec<u8>]) -> usize {
        let port = &mut self.ports[port];
        let room = port.room(packets.len() as u32).unwrap() as usize;
        let sent = packets.iter().take(room).filter(|packet| port.send(packet).unwrap()).count();
        port.publish();
        sent
    }

    /// Receives the packets sent on a port.
    pub(crate) fn receive(&mut self, port: usize) -> Vec<Vec<u8>> {
        let port = &mut self.ports[port];
        let mut packets = Vec::new();
        let mut buffer = [0; BUFFER_SIZE];
        port.available(u32::MAX).unwrap();
        while let Some(packet) = port.receive(&mut buffer).unwrap() {
            packets.push(packet.to_vec());
        }
        port.release();
        packets
    }
}

/// This many different Ethernet frames.
pub(crate) fn frames(count: usize, length: usize) -> Vec<Vec<u8>> {
    let frame = |number: usize| {
        let mut frame: Vec<u8> = (0..length).map(|byte| (byte * 31 + number) as u8).collect();
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 0]);
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 1, number as u8]);
        frame
    };
    (0..count).map(frame).collect()
}
