//! All measurements in sequence.

use super::machine::Machine;
use super::papers::DENSITY_LINE_RATE_SIZE;
use crate::BoxProgram;
use crate::TestBed;
use crate::engine::{ClickProgram, Comparison, EXAMPLES, Example, FrameSize, Load, Row, Traffic, Workbench};
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::temporary_folder::TemporaryFolder;
use crate::{
    Boot, Chain, Density, IdleMode, Interconnect, Io, IoMode, LatencyRow, Lookup, Memory, NeighbourLoad,
    OwnCores, PAPER_FUNCTIONS, PacketSizes, State, SteeringRate, SteeringScope,
};
use boundary::PlatformKind;
use serde::{Serialize, Serializer};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Slots of the rings in the density measurement.
const LARGEST_RING: u32 = 2048;

/// Time limit of one run of the engine.
const ENGINE_TIMEOUT: Duration = Duration::from_secs(120);

/// The results of all measurements.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The machine.
    pub machine: Machine,
    /// What the boxes run in.
    #[serde(serialize_with = "platform_name")]
    pub sandbox: PlatformKind,
    /// The program in the boxes.
    pub inside: BoxProgram,
    /// The number and duration of runs for each figure.
    pub plan: SamplePlan,
    /// Size of the image that boxes run, in kilobytes.
    pub image_kb: usize,
    /// Number of element classes in the image, if counted.
    pub classes: Option<usize>,
    /// Speed of the engine without a box: the examples.
    pub engine: Vec<Row>,
    /// Start-up of boxes.
    pub boot: Boot,
    /// Components of a box's memory.
    pub memory: Memory,
    /// Packet rate of one box, by frame size and by ring size.
    pub io: Vec<Io>,
    /// Response time of a box.
    pub latency: Vec<LatencyRow>,
    /// Throughput of chains, with switches and with pipes.
    pub chain: Vec<Chain>,
    /// Chains of functions at a steering switch.
    pub steering: Vec<SteeringRate>,
    /// A chain whose functions have a processor each.
    pub own_cores: OwnCores,
    /// Send rate of many boxes.
    pub density: Vec<Density>,
    /// Handler access times.
    pub state: State,
}

/// A platform's name in the report.
fn platform_name<S: Serializer>(platform: &PlatformKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match platform {
        PlatformKind::Vm => "vm",
        PlatformKind::Process => "process",
        PlatformKind::Thread => "thread",
    })
}

/// The extent of the measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportScope {
    /// Number of boxes to start.
    pub boxes: usize,
    /// Frame sizes in bytes.
    pub sizes: Vec<u16>,
    /// Ring sizes in slots.
    pub rings: Vec<u32>,
    /// Numbers of boxes beside the one that responds.
    pub others: Vec<usize>,
    /// Chain lengths in boxes.
    pub lengths: Vec<usize>,
    /// Numbers of functions in the chains of a steering switch.
    pub steered: Vec<usize>,
    /// Numbers of boxes that send at once.
    pub senders: Vec<usize>,
    /// Lengths of handler values in bytes.
    pub values: Vec<usize>,
    /// The `clickbox` program, to measure the engine and a daemon; without it they are omitted.
    pub program: Option<PathBuf>,
    /// Number of packets per run of the engine.
    pub packets: u64,
    /// Number of element classes in the image.
    pub classes: Option<usize>,
    /// Number of table entries for the memory measurement.
    pub entries: u32,
}

impl Default for ReportScope {
    /// The extent of the papers' measurements.
    fn default() -> Self {
        Self {
            boxes: 400,
            sizes: vec![64, 128, 256, 512, 1024, 1500],
            rings: vec![64, 128, 256, 512, 1024, 2048],
            others: vec![0, 1, 3, 5, 7, 9, 11],
            lengths: (2..=9).collect(),
            steered: vec![1, 5, 6],
            senders: vec![1, 10, 25, 50, 75, 100],
            values: vec![1, 16, 64, 256, 1024, 4096, 16_384, 65_536],
            program: None,
            packets: 2_000_000,
            classes: None,
            entries: 1_000,
        }
    }
}

/// Ring size where it is not the measured parameter.
const RING: u32 = 1024;

/// Frame size for chains in bytes, as in the paper.
const CHAIN_SIZE: u16 = 1472;

/// Flows of the traffic through steered chains.
const STEERED_FLOWS: u32 = 60_000;

/// Runs all measurements on a test bed. `machine` describes the machine before the start. `progress` is called with the
/// name of each part before it is measured.
pub fn report(
    bed: &TestBed,
    machine: Machine,
    scope: &ReportScope,
    plan: SamplePlan,
    mut progress: impl FnMut(&str),
) -> Result<Report, MeasureError> {
    progress("starts");
    let boot = crate::boot(bed, scope.boxes, plan, scope.program.as_deref())?;
    progress("the engine");
    let engine = match &scope.program {
        Some(program) => bed.on_all_cores(|| engine(program, scope.packets, plan.runs))?,
        None => Vec::new(),
    };
    progress("packets through one box");
    let mut io = Vec::new();
    for mode in [IoMode::Send, IoMode::Receive, IoMode::Forward] {
        for &size in &scope.sizes {
            io.push(crate::io(bed, mode, size, RING, plan)?);
        }
        for &ring in scope.rings.iter().filter(|ring| **ring != RING) {
            io.push(crate::io(bed, mode, 64, ring, plan)?);
        }
    }
    progress("answers");
    let mut latency = vec![crate::latency(bed, IdleMode::Polling, 0, NeighbourLoad::Idle, plan)?];
    for &load in NeighbourLoad::all(bed.box_program()) {
        for &others in &scope.others {
            latency.push(crate::latency(bed, IdleMode::Idle, others, load, plan)?);
        }
    }
    if let Some(&others) = scope.others.last().filter(|others| **others > 0) {
        latency.push(crate::latency(bed, IdleMode::Polling, others, NeighbourLoad::Idle, plan)?);
    }
    progress("chains");
    let mut chain = Vec::new();
    for interconnect in Interconnect::ALL {
        for &length in &scope.lengths {
            chain.push(crate::chain(bed, length, interconnect, CHAIN_SIZE, RING, plan)?);
        }
    }
    progress("steered chains");
    let mut steering = Vec::new();
    for size in [PacketSizes::Bytes(64), PacketSizes::Bytes(CHAIN_SIZE), PacketSizes::Mix] {
        let scope = SteeringScope {
            chains: &scope.steered,
            ways: &Lookup::ALL,
            idle_ports: &[0],
            flows: STEERED_FLOWS,
            size,
            threads: 1,
        };
        steering.extend(crate::steering_rates(bed, &scope, plan)?);
    }
    let own_cores = crate::own_cores(bed, PAPER_FUNCTIONS, plan)?;
    progress("many boxes");
    let smallest = scope.senders.iter().map(|&boxes| (boxes, 64));
    let larger = scope.senders.last().map(|&boxes| (boxes, DENSITY_LINE_RATE_SIZE));
    let density =
        smallest.chain(larger).map(|(boxes, size)| crate::density(bed, boxes, size, LARGEST_RING, plan));
    let density = density.collect::<Result<_, _>>()?;
    progress("handlers");
    let state = crate::state(bed, &scope.values, plan)?;
    let memory = crate::memory(bed, scope.entries)?;
    Ok(Report {
        machine,
        sandbox: bed.platform(),
        inside: bed.box_program(),
        plan,
        image_kb: bed.image_size() / 1024,
        classes: scope.classes,
        engine,
        boot,
        memory,
        io,
        latency,
        chain,
        steering,
        own_cores,
        density,
        state,
    })
}

/// The examples with mixed traffic; address translation of a single flow, and the two middleboxes with larger frames, as
/// in the paper.
fn engine(program: &Path, packets: u64, runs: u32) -> Result<Vec<Row>, MeasureError> {
    let folder = TemporaryFolder::new().map_err(MeasureError::Folder)?;
    let own = ClickProgram::clickbox(program, ENGINE_TIMEOUT);
    let mut workbench = Workbench::new(own, None, folder.path());
    let named = |names: &'static [&str]| EXAMPLES.iter().filter(|example| names.contains(&example.name));
    let mixed = EXAMPLES.iter().map(|example| (example, Traffic::Mixed, 64));
    let constant = named(&["nat"]).map(|nat| (nat, Traffic::Constant, 64));
    let larger = named(&["nat", "bras"]).map(|example| (example, Traffic::Mixed, 512));
    let mut measure = |(example, traffic, size): (&Example, Traffic, u16)| {
        workbench.measure(&Comparison {
            config: example.name.into(),
            text: example.text.into(),
            traffic,
            size: FrameSize::Bytes(size),
            flows: 60_000,
            load: Load::default(),
            packets,
            runs,
            seed: 1,
            floor: false,
            of_class: false,
        })
    };
    let rows = mixed.chain(constant).chain(larger).map(&mut measure).collect::<Result<_, _>>();
    rows.map_err(|error| MeasureError::Engine(Box::new(error)))
}
