//! Packets through the chains of a steering switch: rate and latency, with a default chain and with the flow table, beside switches
//! with static tables.

mod functions;
mod own_cores;
mod static_chain;
mod steered;
mod traffic;

pub use own_cores::{OwnCores, PAPER_FUNCTIONS, own_cores};
pub use traffic::PacketSizes;

use crate::boxes::peers::PeerRate;
use crate::boxes::test_bed::{REPLY_TIMEOUT, TestBed};
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::statistics::{median, percentile, rounded};
use functions::{Functions, Waiting};
use serde::Serialize;
use static_chain::StaticChain;
use std::sync::Arc;
use std::time::Duration;
use steered::Steered;
use traffic::Frames;

/// Duration of the warm-up, in which flows get their records.
const WARM_UP: Duration = Duration::from_millis(300);

/// Pause before each packet whose latency is measured.
const PAUSE: Duration = Duration::from_micros(20);

/// How the switch decides which packets take the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Lookup {
    /// All that have the destination address: switches with static tables are before, between and after the functions. They do
    /// without chains, flows and the choice of instances.
    Static,
    /// Those that no flow concerns: the chain is the default of their port.
    Default,
    /// Those that an entry of the flow table sends there.
    Flow,
}

impl Lookup {
    /// All ways.
    pub const ALL: [Self; 3] = [Self::Static, Self::Default, Self::Flow];
}

/// The rate and the latency of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SteeringRate {
    /// Functions of the chain.
    pub chain: usize,
    /// Flows of the traffic.
    pub flows: u32,
    /// Bytes of a frame.
    pub size: PacketSizes,
    /// How packets come into the chain.
    pub by: Lookup,
    /// Threads of the switch.
    pub threads: usize,
    /// Ports of the switch that have no packets, beside those of the chain.
    pub idle_ports: usize,
    /// Millions of packets per second that leave the chain.
    #[serde(serialize_with = "rounded")]
    pub mpps: f64,
    /// Gigabits of frames per second that leave the chain.
    #[serde(serialize_with = "rounded")]
    pub gbps: f64,
    /// Processor time of the switch for each packet on its whole way, in nanoseconds: with receiving it at the first port, and
    /// sending it to the last one.
    #[serde(serialize_with = "rounded")]
    pub switch_ns: f64,
    /// What each function costs beyond those of the next shorter chain that was measured alternately: processor time of the
    /// switch for each packet, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub further_hop_ns: Option<f64>,
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
    /// The paper's longest chain.
    pub own_cores: OwnCores,
    /// One of each peer for each chain and size, if any was measured too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<PeerRate>,
}

/// A chain that is measured.
trait Subject {
    /// Moves packets for a time. Returns packets per second that left.
    fn forward(&mut self, time: Duration) -> Result<f64, MeasureError>;
    /// Packets that left.
    fn left(&self) -> u64;
    /// Sends one packet through the chain.
    fn exchange(&mut self) -> Result<(), MeasureError>;
    /// The time that the switch, or all switches, spent on all ports.
    fn cost(&mut self) -> Duration;
}

/// What is measured alternately: all combinations of chains, ways and idle ports.
#[derive(Clone, Copy, Debug)]
pub struct SteeringScope<'a> {
    /// Numbers of functions.
    pub chains: &'a [usize],
    /// How packets come into the chain.
    pub ways: &'a [Lookup],
    /// Numbers of idle ports. A switch with a static table has none, and is measured if 0 is among them.
    pub idle_ports: &'a [usize],
    /// Flows of the traffic.
    pub flows: u32,
    /// Bytes of a frame.
    pub size: PacketSizes,
    /// Threads of the switch. One with a static table has one, and is not measured with more.
    pub threads: usize,
}

impl SteeringScope<'_> {
    fn combinations(&self) -> impl Iterator<Item = (usize, Lookup, usize)> {
        let all = self.chains.iter().flat_map(|chain| self.ways.iter().map(|by| (*chain, *by)));
        let all = all.flat_map(|(chain, by)| self.idle_ports.iter().map(move |ports| (chain, by, *ports)));
        all.filter(|(_, by, ports)| *by != Lookup::Static || (self.threads, *ports) == (1, 0))
    }
}

/// The traffic of a measurement.
struct Load {
    frames: Arc<Frames>,
    flows: u32,
    threads: usize,
}

impl Load {
    fn subject(
        &self,
        bed: &TestBed,
        (chain, by, idle_ports): (usize, Lookup, usize),
        waiting: Waiting<'_>,
    ) -> Result<Box<dyn Subject>, MeasureError> {
        let functions =
            Functions::start(bed, chain, self.threads, waiting)?.with_idle_ports(bed, idle_ports)?;
        Ok(match by {
            Lookup::Static => Box::new(StaticChain::new(functions, &self.frames)?),
            by => Box::new(Steered::new(functions, &self.frames, self.flows, by, self.threads)?),
        })
    }
}

/// Measures chains whose functions only forward. All of them are there at the same time, and are measured alternately. All functions
/// run on one core and the threads of the switch on the others; a single function polls while the latency is measured.
pub fn steering_rates(
    bed: &TestBed,
    scope: &SteeringScope<'_>,
    plan: SamplePlan,
) -> Result<Vec<SteeringRate>, MeasureError> {
    let SteeringScope { flows, size, threads, .. } = *scope;
    let load = Load { frames: Arc::new(Frames::new(flows, size)), flows, threads };
    let mut subjects = Vec::new();
    for what in scope.combinations() {
        subjects.push((what, load.subject(bed, what, Waiting::Idle)?, Vec::new(), Vec::new()));
    }
    for _ in 0..plan.runs.max(1) {
        for (_, subject, rates, costs) in &mut subjects {
            let (before, cost) = (subject.left(), subject.cost());
            rates.push(subject.forward(plan.time)? / 1e6);
            let (left, cost) = (subject.left() - before, subject.cost() - cost);
            costs.push(cost.as_nanos() as f64 / left.max(1) as f64);
        }
    }
    let mut results: Vec<SteeringRate> = Vec::new();
    for (what, mut subject, rates, costs) in subjects {
        let (chain, by, idle_ports) = what;
        if chain == 1 {
            drop(subject);
            subject = load.subject(bed, what, Waiting::Polling)?;
        }
        let times = plan.sample(PAUSE, || subject.exchange())?;
        let (mpps, switch_ns) = (median(rates), median(costs));
        let shorter =
            results.iter().filter(|row| (row.by, row.idle_ports) == (by, idle_ports) && row.chain < chain);
        let shorter = shorter.max_by_key(|row| row.chain);
        let further_hop_ns = shorter.map(|row| (switch_ns - row.switch_ns) / (chain - row.chain) as f64);
        results.push(SteeringRate {
            chain,
            flows,
            size,
            by,
            threads,
            idle_ports,
            mpps,
            gbps: mpps * load.frames.mean_size() * 8.0 / 1e3,
            switch_ns,
            further_hop_ns,
            latency_us: LatencyTimes { p50: percentile(&times, 50), p99: percentile(&times, 99) },
        });
    }
    Ok(results)
}
