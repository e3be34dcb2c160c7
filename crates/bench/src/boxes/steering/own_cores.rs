//! A chain whose functions and switch have a processor each.

use super::functions::{Functions, Waiting};
use super::steered::Steered;
use super::traffic::{Frames, PacketSizes};
use super::{Lookup, Subject};
use crate::boxes::test_bed::TestBed;
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::statistics::{median, rounded};
use serde::Serialize;
use std::sync::Arc;

/// Functions of the longest chain of the OpenNetVM paper's figure 2, where each has a processor.
pub const PAPER_FUNCTIONS: usize = 6;

/// Bytes of the frames of that figure.
const SIZE: PacketSizes = PacketSizes::Bytes(64);

/// Flows of the traffic.
const FLOWS: u32 = 60_000;

/// How much a longer chain lowers the rate, if each function has a processor.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum OwnCores {
    /// There are enough processors.
    Measured {
        /// Functions of the chain.
        functions: usize,
        /// The rate of a chain of one function, in millions of packets per second.
        #[serde(serialize_with = "rounded")]
        mpps_of_one: f64,
        /// The rate of the whole chain, measured alternately.
        #[serde(serialize_with = "rounded")]
        mpps: f64,
        /// The difference, in percent of the rate of one function.
        #[serde(serialize_with = "rounded")]
        loss_percent: f64,
    },
    /// There are not.
    NotMeasured {
        /// Functions of the chain.
        functions: usize,
        /// What is missing.
        not_measured: String,
    },
}

/// Measures a chain of `functions` functions, each with a processor of its own on which it polls, beside a chain of one. The
/// switch has another processor.
pub fn own_cores(bed: &TestBed, functions: usize, plan: SamplePlan) -> Result<OwnCores, MeasureError> {
    let cores = bed.all_cores();
    let needed = functions + 1;
    let Some(others) = cores.get(1..).filter(|_| cores.len() >= needed) else {
        let there = cores.len();
        let not_measured = format!("needs {needed} processors, this machine has {there}");
        return Ok(OwnCores::NotMeasured { functions, not_measured });
    };
    let frames = Arc::new(Frames::new(FLOWS, SIZE));
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..plan.runs.max(1) {
        // A function that polls without packets would take the processor of the other chain's.
        for (count, rates) in [1, functions].into_iter().zip(&mut rates) {
            let functions = Functions::start(bed, count, 1, Waiting::PollingOn(others))?;
            let mut chain = Steered::new(functions, &frames, FLOWS, Lookup::Default, 1)?;
            rates.push(chain.forward(plan.time)? / 1e6);
        }
    }
    let [mpps_of_one, mpps] = rates.map(median);
    let loss_percent = (1.0 - mpps / mpps_of_one) * 100.0;
    Ok(OwnCores::Measured { functions, mpps_of_one, mpps, loss_percent })
}
