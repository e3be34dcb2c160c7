//! Packets through the chains of a steering switch: rate and latency, with a default chain and with the flow table.

use crate::boxes::attach;
use crate::boxes::io::gbps;
use crate::boxes::peers::PeerRate;
use crate::boxes::test_bed::{REPLY_TIMEOUT, TestBed};
use crate::boxes::workload::Workload;
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::statistics::{median, percentile, rounded};
use boundary::Slots;
use random::Random;
use sandbox::{Sandbox, Settings, Worker};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use switch::driver::{BoxPort, Received, Sent};
use switch::{
    Batch, ChainPlan, ChainsPlan, Driver, DriverError, Field, Flow, FlowOutput, InstancePlan, Match, PortId,
    PortKey, PortSettings, ServicePlan, Shards, Steering, SteeringSettings, SwitchRunner,
};

/// Slots of the rings of a function.
const RING: u32 = 2048;

/// Packets under way: few enough that no ring counts as crowded.
const WINDOW: u64 = RING as u64 * 3 / 4;

/// Frames that the source repeats: more than any cache holds.
const FRAMES: usize = 1 << 18;

/// Entries in the flow table beside the one that sends packets into the chain.
const ENTRIES: u32 = 1000;

/// Duration of the warm-up, in which flows get their records.
const WARM_UP: Duration = Duration::from_millis(300);

/// Pause before each packet whose latency is measured.
const PAUSE: Duration = Duration::from_micros(20);

const SOURCE: PortKey = PortKey(1);
const SINK: PortKey = PortKey(2);

/// How the switch decides which packets take the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Lookup {
    /// Those that no flow concerns: the chain is the default of their port.
    Default,
    /// Those that an entry of the flow table sends there.
    Flow,
}

/// The rate and the latency of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SteeringRate {
    /// Functions of the chain.
    pub chain: usize,
    /// Flows of the traffic.
    pub flows: u32,
    /// Bytes of a frame.
    pub size: u16,
    /// How packets come into the chain.
    pub by: Lookup,
    /// Threads of the switch.
    pub threads: usize,
    /// Millions of packets per second that leave the chain.
    #[serde(serialize_with = "rounded")]
    pub mpps: f64,
    /// Gigabits of frames per second that leave the chain.
    #[serde(serialize_with = "rounded")]
    pub gbps: f64,
    /// Processor time of the switch for each packet and each of its hops, in nanoseconds, with receiving and sending.
    #[serde(serialize_with = "rounded")]
    pub switch_ns_per_hop: f64,
    /// The time that one packet takes through the whole chain.
    pub latency_us: LatencyTimes,
}

/// Percentiles, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyTimes {
    /// The median.
    #[serde(serialize_with = "rounded")]
    pub p50: f64,
    /// The 99th percentile.
    #[serde(serialize_with = "rounded")]
    pub p99: f64,
}

/// All measurements of a command.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SteeringResults {
    /// One for each chain, size, number of flows and way into the chain.
    pub results: Vec<SteeringRate>,
    /// One of each peer for each chain and size, if any was measured too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<PeerRate>,
}

/// Frames of one size, one after the other: the processor fetches them before they are read.
struct Frames {
    size: usize,
    bytes: Vec<u8>,
}

/// A port that sends frames of many flows as often as it may.
struct Source {
    frames: Arc<Frames>,
    next: usize,
    /// Frames that it may still send.
    allowed: Arc<AtomicU64>,
}

impl Driver for Source {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let count = self.allowed.load(Ordering::Relaxed).min(batch.room() as u64);
        for _ in 0..count {
            let start = self.next * self.frames.size;
            let Some(frame) = self.frames.bytes.get(start..start + self.frames.size) else { break };
            batch.push(frame);
            self.next = (self.next + 1) % (self.frames.bytes.len() / self.frames.size);
        }
        self.allowed.fetch_sub(count, Ordering::Relaxed);
        Ok(Received::default())
    }

    fn send(&mut self, _: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        Ok(Sent { frames: frames.len() as u64, ..Sent::default() })
    }
}

/// A port that counts what it gets.
struct Sink(Arc<AtomicU64>);

impl Driver for Sink {
    fn receive(&mut self, _: &mut Batch) -> Result<Received, DriverError> {
        Ok(Received::default())
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        self.0.fetch_add(frames.len() as u64, Ordering::Relaxed);
        let bytes = frames.iter().filter_map(|number| batch.split_frame(*number as usize));
        Ok(Sent {
            frames: frames.len() as u64,
            bytes: bytes.map(|frame| frame.length() as u64).sum(),
            ..Sent::default()
        })
    }

    fn accepts_split(&self) -> bool {
        true
    }
}

/// UDP frames of this many flows, in random order.
fn frames(flows: u32, size: u16) -> Arc<Frames> {
    let mut random = Random::new(7);
    let mut frame = vec![0; size.into()];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    frame[16..18].copy_from_slice(&(size - 14).to_be_bytes());
    frame[30..34].copy_from_slice(&[10, 9, 9, 9]);
    frame[36..40].copy_from_slice(&[0, 53, 0, 26]);
    let mut bytes = Vec::with_capacity(FRAMES * usize::from(size));
    for _ in 0..FRAMES {
        let flow = (random.next() % u64::from(flows)) as u32;
        frame[26..30].copy_from_slice(&(0x0a00_0000 | flow >> 15).to_be_bytes());
        frame[34..36].copy_from_slice(&((1024 + (flow & 0x7fff)) as u16).to_be_bytes());
        bytes.extend_from_slice(&frame);
    }
    Arc::new(Frames { size: size.into(), bytes })
}

/// The frames of each shard's flows: those that a device with a queue for each thread would give it.
fn of_shards(frames: &Arc<Frames>, shards: &Shards<Steering>) -> Vec<Arc<Frames>> {
    if shards.count() == 1 {
        return vec![frames.clone()];
    }
    let mut parts = vec![Vec::new(); shards.count()];
    for frame in frames.bytes.chunks_exact(frames.size) {
        if let Some(part) = parts.get_mut(shards.shard_of(frame)) {
            part.extend_from_slice(frame);
        }
    }
    parts.into_iter().map(|bytes| Arc::new(Frames { size: frames.size, bytes })).collect()
}

/// The traffic of one shard.
#[derive(Clone, Default)]
struct Lane {
    /// Frames that its source may still send.
    allowed: Arc<AtomicU64>,
    /// Frames that left.
    left: Arc<AtomicU64>,
}

impl Lane {
    /// Moves packets for a time, with a limited number under way. Returns packets per second that left.
    fn forward(&self, runner: &mut SwitchRunner<Steering>, time: Duration) -> Result<f64, MeasureError> {
        let (begin, before) = (Instant::now(), self.left.load(Ordering::Relaxed));
        let mut sent = 0;
        loop {
            let left = self.left.load(Ordering::Relaxed) - before;
            let more = (left + WINDOW).saturating_sub(sent);
            self.allowed.fetch_add(more, Ordering::Relaxed);
            sent += more;
            runner.step();
            let took = begin.elapsed();
            // On a busy machine the time can be over before anything could leave. Where nothing ever does, the wait below ends.
            if took >= time && (left > 0 || took > REPLY_TIMEOUT) {
                // What is under way leaves before the next run.
                let rate = left as f64 / took.as_secs_f64();
                self.drain(runner, before + sent)?;
                return Ok(rate);
            }
        }
    }

    /// Moves packets until this many have left.
    fn drain(&self, runner: &mut SwitchRunner<Steering>, all: u64) -> Result<(), MeasureError> {
        let begin = Instant::now();
        let mut polls = 0u32;
        while self.left.load(Ordering::Relaxed) < all {
            runner.step();
            polls += 1;
            if polls.is_multiple_of(4096) && begin.elapsed() > REPLY_TIMEOUT {
                return Err(MeasureError::Late { what: "the packets of the chain" });
            }
        }
        Ok(())
    }
}

/// A switch with a chain of functions.
struct Steered {
    runner: Shards<Steering>,
    lanes: Vec<Lane>,
    // Boxes end before the worker that runs them: fields are dropped in order.
    boxes: Vec<Sandbox>,
    _worker: Option<Worker>,
}

impl Steered {
    fn new(
        bed: &TestBed,
        chain: usize,
        traffic: (&Arc<Frames>, u32),
        by: Lookup,
        (threads, polls): (usize, bool),
    ) -> Result<Self, MeasureError> {
        let (frames, flows) = traffic;
        let settings = SteeringSettings { seed: [3, 5], ..SteeringSettings::default() };
        let others = (1..threads).map(|_| Steering::new(settings)).collect();
        let mut runner = Shards::new(Steering::new(settings), others, 7).map_err(attach::system)?;
        let lanes = vec![(); threads].into_iter().map(|()| Lane::default()).collect::<Vec<_>>();
        let source = |(frames, lane): (Arc<Frames>, &Lane)| {
            Box::new(Source { frames, next: 0, allowed: lane.allowed.clone() }) as Box<dyn Driver>
        };
        let sources = of_shards(frames, &runner).into_iter().zip(&lanes).map(source).collect();
        let sinks = lanes.iter().map(|lane| Box::new(Sink(lane.left.clone())) as Box<dyn Driver>).collect();
        for (drivers, key) in [(sources, SOURCE), (sinks, SINK)] {
            let port = runner.add_port(drivers, &PortSettings::default())?;
            runner.forwards().for_each(|steering| _ = steering.set_port_key(port, key));
        }
        let slots = Slots::new(RING)?;
        let pool = bed.pool()?;
        let worker = if polls { bed.dedicated_worker()? } else { None };
        let (mut boxes, mut plan) = (Vec::new(), ChainsPlan::default());
        for number in 0..chain as u16 {
            let settings = TestBed::settings(Workload::Forward, slots, None);
            let settings = Settings { pool: pool.clone(), polls, pairs: threads, ..settings };
            let settings = if polls { Settings { quantum: 0, ..settings } } else { settings };
            let mut sandbox = bed.run_on_worker(worker.as_ref(), Workload::Forward, &settings)?;
            let pairs = (0..2 * threads).map(|pair| attach::port(&mut sandbox, pair));
            let mut pairs = pairs.collect::<Result<Vec<_>, _>>()?;
            BoxPort::note_tags(&mut pairs);
            let (mut keys, mut pairs) = ([SOURCE; 2], pairs.into_iter());
            for (key, side) in keys.iter_mut().zip(0..) {
                let drivers = pairs.by_ref().take(threads).map(|pair| Box::new(pair) as Box<dyn Driver>);
                let id = runner.add_port(drivers.collect(), &PortSettings::default())?;
                *key = PortKey(3 + 2 * number + side);
                for switch in runner.switches() {
                    switch.forward_mut().set_port_key(id, *key);
                    switch.resume_port(id);
                }
            }
            let instance = InstancePlan { slot: 0, ports: keys, is_draining: false, range: None };
            plan.services.push(ServicePlan {
                number,
                instances: vec![instance],
                destinations: Vec::new(),
                translation: None,
            });
            boxes.push(sandbox);
        }
        let from = (by == Lookup::Default).then_some(SOURCE);
        let services = (0..chain as u16).collect();
        plan.chains.push(ChainPlan { number: 0, services, from, to: SINK, both_ways: false });
        let now = runner.now();
        for steering in runner.forwards() {
            steering.set_chains(&plan);
            if by == Lookup::Flow {
                add_flows(steering, now)?;
            }
        }
        let mut steered = Self { runner, lanes, boxes, _worker: worker };
        // Each flow gets its record.
        steered.forward(WARM_UP.max(Duration::from_nanos(u64::from(flows) * 600)))?;
        // Only pages that were touched become huge ones.
        TestBed::collapse_pages(&steered.boxes);
        Ok(steered)
    }

    /// Moves packets for a time, in all threads. Returns packets per second that left.
    fn forward(&mut self, time: Duration) -> Result<f64, MeasureError> {
        let others = self.lanes.iter().enumerate().skip(1);
        let others: Vec<_> = others
            .filter_map(|(number, lane)| Some((number, lane.clone(), self.runner.take(number)?)))
            .collect();
        let (first, lane) = (self.runner.first(), self.lanes.first().cloned().unwrap_or_default());
        let (rate, others) = std::thread::scope(|scope| {
            let run = |(number, lane, mut runner): (usize, Lane, SwitchRunner<Steering>)| {
                scope.spawn(move || {
                    let rate = lane.forward(&mut runner, time);
                    (number, runner, rate)
                })
            };
            let threads: Vec<_> = others.into_iter().map(run).collect();
            let rate = lane.forward(first, time);
            // A thread that panicked has no figures.
            let ended: Vec<_> = threads.into_iter().filter_map(|thread| thread.join().ok()).collect();
            (rate, ended)
        });
        let mut sum = rate?;
        for (number, runner, rate) in others {
            self.runner.put_back(number, runner);
            sum += rate?;
        }
        Ok(sum)
    }

    /// Packets that left.
    fn left(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.left.load(Ordering::Relaxed)).sum()
    }

    /// Sends one packet through the chain, in the first thread.
    fn exchange(&mut self) -> Result<(), MeasureError> {
        let lane = self.lanes.first().cloned().unwrap_or_default();
        let all = lane.left.load(Ordering::Relaxed) + 1;
        lane.allowed.fetch_add(1, Ordering::Relaxed);
        lane.drain(self.runner.first(), all)
    }

    /// The time that the switch spent on all ports.
    fn cost(&mut self) -> Duration {
        let ports: Vec<PortId> = self.runner.first().switch().ports().collect();
        ports.iter().filter_map(|port| self.runner.cost(*port)).map(|cost| cost.time).sum()
    }
}

/// Adds entries that no packet matches, and one for all packets of the source.
fn add_flows(steering: &mut Steering, now: u64) -> Result<(), MeasureError> {
    let flow = |id: u32, matching, output| Flow {
        id: id.into(),
        matches: vec![matching],
        from: Some(SOURCE),
        priority: if id == 0 { 1 } else { 100 },
        output,
        idle_timeout: None,
        hard_timeout: None,
    };
    let all = Match::any().with(Field::EthType, 0x0800)?;
    for number in 1..=ENTRIES {
        let one = all.with(Field::Ipv4Dst, u128::from(0xc0a8_0000 + number))?;
        steering.add_flow(flow(number, one, FlowOutput::Drop), now)?;
    }
    Ok(steering.add_flow(flow(0, all, FlowOutput::Chain(0)), now)?)
}

/// Measures a chain of functions that only forward. All functions run on one core and the threads of the switch on the others;
/// a single function polls while the latency is measured.
pub fn steering_rate(
    bed: &TestBed,
    chain: usize,
    flows: u32,
    size: u16,
    by: Lookup,
    threads: usize,
    plan: SamplePlan,
) -> Result<SteeringRate, MeasureError> {
    let frames = frames(flows, size);
    let mut steered = Steered::new(bed, chain, (&frames, flows), by, (threads, false))?;
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    for _ in 0..plan.runs.max(1) {
        let (before, cost) = (steered.left(), steered.cost());
        rates.push(steered.forward(plan.time)? / 1e6);
        let (left, cost) = (steered.left() - before, steered.cost() - cost);
        costs.push(cost.as_nanos() as f64 / left.max(1) as f64 / (chain + 1) as f64);
    }
    if chain == 1 {
        drop(steered);
        steered = Steered::new(bed, chain, (&frames, flows), by, (threads, true))?;
    }
    let times = plan.sample(PAUSE, || steered.exchange())?;
    let mpps = median(rates);
    Ok(SteeringRate {
        chain,
        flows,
        size,
        by,
        threads,
        mpps,
        gbps: gbps(mpps, size),
        switch_ns_per_hop: median(costs),
        latency_us: LatencyTimes { p50: percentile(&times, 50), p99: percentile(&times, 99) },
    })
}
