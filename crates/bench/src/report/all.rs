//! All measurements, one after the other.

use super::machine::Machine;
use crate::BoxProgram;
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::{Backend, TestBed};
use crate::{
    Boot, Chain, Density, IdleMode, Interconnect, Io, IoMode, LatencyRow, Memory, NeighbourLoad, State,
};
use serde::Serialize;

/// Slots of the rings of many boxes that send.
const LARGEST_RING: u32 = 2048;

/// Everything that was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// On what.
    pub machine: Machine,
    /// What carried the boxes.
    pub sandbox: Backend,
    /// What ran in them.
    pub inside: BoxProgram,
    /// How much was measured for each figure.
    pub effort: SamplePlan,
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
            entries: 1_000,
        }
    }
}

/// Slots of rings where they are not what is measured.
const RING: u32 = 1024;

/// Bytes of the frames of a chain, as in the paper.
const CHAIN_SIZE: u16 = 1472;

/// Measures everything on a stand. `machine` is what it is on, looked at before anything ran; `tell` is told what is
/// measured next.
pub fn report(
    bed: &TestBed,
    machine: Machine,
    scope: &ReportScope,
    effort: SamplePlan,
    mut tell: impl FnMut(&str),
) -> Result<Report, MeasureError> {
    tell("starts");
    let boot = crate::boot(bed, scope.boxes, effort)?;
    tell("packets through one box");
    let mut io = Vec::new();
    for mode in [IoMode::Send, IoMode::Receive, IoMode::Forward] {
        for &size in &scope.sizes {
            io.push(crate::io(bed, mode, size, RING, effort)?);
        }
        for &ring in scope.rings.iter().filter(|ring| **ring != RING) {
            io.push(crate::io(bed, mode, 64, ring, effort)?);
        }
    }
    tell("answers");
    let mut latency = vec![crate::latency(bed, IdleMode::Polling, 0, NeighbourLoad::Idle, effort)?];
    for &load in NeighbourLoad::all(bed.box_program()) {
        for &others in &scope.others {
            latency.push(crate::latency(bed, IdleMode::Idle, others, load, effort)?);
        }
    }
    if let Some(&others) = scope.others.last().filter(|others| **others > 0) {
        latency.push(crate::latency(bed, IdleMode::Polling, others, NeighbourLoad::Idle, effort)?);
    }
    tell("chains");
    let mut chain = Vec::new();
    for joint in Interconnect::ALL {
        for &length in &scope.lengths {
            chain.push(crate::chain(bed, length, joint, CHAIN_SIZE, RING, effort)?);
        }
    }
    tell("many boxes");
    let density = scope.senders.iter().map(|boxes| crate::density(bed, *boxes, 64, LARGEST_RING, effort));
    let density = density.collect::<Result<_, _>>()?;
    tell("handlers");
    let state = crate::state(bed, &scope.values, effort)?;
    let memory = crate::memory(bed, scope.entries)?;
    Ok(Report {
        machine,
        sandbox: bed.backend(),
        inside: bed.box_program(),
        effort,
        boot,
        memory,
        io,
        latency,
        chain,
        density,
        state,
    })
}
