//! All measurements, one after the other.

use super::machine::Machine;
use crate::BoxProgram;
use crate::engine::{ClickProgram, Comparison, EXAMPLES, Example, FrameSize, Load, Row, Traffic, Workbench};
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::{Backend, TestBed};
use crate::{
    Boot, Chain, Density, IdleMode, Interconnect, Io, IoMode, LatencyRow, Memory, NeighbourLoad, State,
};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Slots of the rings of many boxes that send.
const LARGEST_RING: u32 = 2048;

/// How long one run of the engine may take.
const ENGINE_TIMEOUT: Duration = Duration::from_secs(120);

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// On what.
    pub machine: Machine,
    /// What carried the boxes.
    pub sandbox: Backend,
    /// What ran in them.
    pub inside: BoxProgram,
    /// How much was measured for each figure.
    pub plan: SamplePlan,
    /// Bytes of the image that boxes run, in kilobytes.
    pub image_kb: usize,
    /// Element classes in it, if they were counted.
    pub classes: Option<usize>,
    /// How fast the engine is without a box around it: the examples.
    pub engine: Vec<Row>,
    /// How boxes start.
    pub boot: Boot,
    /// What their memory is made of.
    pub memory: Memory,
    /// How one box moves packets: over sizes of frames, and over sizes of rings.
    pub io: Vec<Io>,
    /// How long a box takes to answer.
    pub latency: Vec<LatencyRow>,
    /// How fast chains are, by switches and by pipes.
    pub chain: Vec<Chain>,
    /// How fast many boxes send.
    pub density: Vec<Density>,
    /// How long handlers take.
    pub state: State,
}

/// How much of everything is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportScope {
    /// Boxes that are started.
    pub boxes: usize,
    /// Sizes of frames.
    pub sizes: Vec<u16>,
    /// Slots of rings.
    pub rings: Vec<u32>,
    /// Boxes beside the one that answers.
    pub others: Vec<usize>,
    /// Boxes of a chain.
    pub lengths: Vec<usize>,
    /// Boxes that send at once.
    pub senders: Vec<usize>,
    /// Bytes of handlers' values.
    pub values: Vec<usize>,
    /// The `clickbox` program, to measure the engine and a daemon with; without it they are left out.
    pub program: Option<PathBuf>,
    /// Packets of a run of the engine.
    pub packets: u64,
    /// Element classes in the image.
    pub classes: Option<usize>,
    /// Entries of the tables of which the memory is measured.
    pub entries: u32,
}

impl Default for ReportScope {
    /// What the papers measured.
    fn default() -> Self {
        Self {
            boxes: 400,
            sizes: vec![64, 128, 256, 512, 1024, 1500],
            rings: vec![64, 128, 256, 512, 1024, 2048],
            others: vec![0, 1, 3, 5, 7, 9, 11],
            lengths: (2..=9).collect(),
            senders: vec![1, 10, 25, 50, 75, 100],
            values: vec![1, 16, 64, 256, 1024, 4096, 16_384, 65_536],
            program: None,
            packets: 2_000_000,
            classes: None,
            entries: 1_000,
        }
    }
}

/// Slots of rings where they are not what is measured.
const RING: u32 = 1024;

/// Bytes of the frames of a chain, as in the paper.
const CHAIN_SIZE: u16 = 1472;

/// Measures everything on a test bed. `machine` is the machine as it was before anything ran. `tell` is called with the
/// name of each part before it is measured.
pub fn report(
    bed: &TestBed,
    machine: Machine,
    scope: &ReportScope,
    plan: SamplePlan,
    mut tell: impl FnMut(&str),
) -> Result<Report, MeasureError> {
    tell("starts");
    let boot = crate::boot(bed, scope.boxes, plan, scope.program.as_deref())?;
    tell("the engine");
    let engine = match &scope.program {
        Some(program) => bed.on_all_cores(|| engine(program, scope.packets, plan.runs))?,
        None => Vec::new(),
    };
    tell("packets through one box");
    let mut io = Vec::new();
    for mode in [IoMode::Send, IoMode::Receive, IoMode::Forward] {
        for &size in &scope.sizes {
            io.push(crate::io(bed, mode, size, RING, plan)?);
        }
        for &ring in scope.rings.iter().filter(|ring| **ring != RING) {
            io.push(crate::io(bed, mode, 64, ring, plan)?);
        }
    }
    tell("answers");
    let mut latency = vec![crate::latency(bed, IdleMode::Polling, 0, NeighbourLoad::Idle, plan)?];
    for &load in NeighbourLoad::all(bed.box_program()) {
        for &others in &scope.others {
            latency.push(crate::latency(bed, IdleMode::Idle, others, load, plan)?);
        }
    }
    if let Some(&others) = scope.others.last().filter(|others| **others > 0) {
        latency.push(crate::latency(bed, IdleMode::Polling, others, NeighbourLoad::Idle, plan)?);
    }
    tell("chains");
    let mut chain = Vec::new();
    for joint in Interconnect::ALL {
        for &length in &scope.lengths {
            chain.push(crate::chain(bed, length, joint, CHAIN_SIZE, RING, plan)?);
        }
    }
    tell("many boxes");
    let density = scope.senders.iter().map(|boxes| crate::density(bed, *boxes, 64, LARGEST_RING, plan));
    let density = density.collect::<Result<_, _>>()?;
    tell("handlers");
    let state = crate::state(bed, &scope.values, plan)?;
    let memory = crate::memory(bed, scope.entries)?;
    Ok(Report {
        machine,
        sandbox: bed.backend(),
        inside: bed.box_program(),
        plan,
        image_kb: bed.box_program().image().len() / 1024,
        classes: scope.classes,
        engine,
        boot,
        memory,
        io,
        latency,
        chain,
        density,
        state,
    })
}

/// The examples with mixed traffic, and address translation of a single flow, which is what the paper measures.
fn engine(program: &Path, packets: u64, runs: u32) -> Result<Vec<Row>, MeasureError> {
    let folder = std::env::temp_dir().join(format!("clickbox-report-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(MeasureError::Folder)?;
    let own = ClickProgram::clickbox(program, ENGINE_TIMEOUT);
    let mut workbench = Workbench::new(own, None, &folder);
    let mixed = EXAMPLES.iter().map(|example| (example, Traffic::Mixed));
    let constant =
        EXAMPLES.iter().filter(|example| example.name == "nat").map(|nat| (nat, Traffic::Constant));
    let mut measure = |(example, traffic): (&Example, Traffic)| {
        workbench.measure(&Comparison {
            config: example.name.into(),
            text: example.text.into(),
            traffic,
            size: FrameSize::Bytes(64),
            flows: 60_000,
            load: Load::default(),
            packets,
            runs,
            seed: 1,
        })
    };
    let rows = mixed.chain(constant).map(&mut measure).collect::<Result<_, _>>();
    // What can't be removed stays in the system's folder of temporary files.
    let _ = std::fs::remove_dir_all(&folder);
    rows.map_err(|error| MeasureError::Engine(Box::new(error)))
}
