//! The same functions between switches with static tables, which look up nothing but the destination address.

use super::functions::Functions;
use super::traffic::{Frames, Lane};
use super::{Subject, WARM_UP};
use crate::boxes::attach;
use crate::boxes::test_bed::TestBed;
use crate::error::MeasureError;
use std::sync::Arc;
use std::time::Duration;
use switch::{PortId, PortSettings, StaticTable, SwitchRunner};

/// A chain of functions. A static table sends an address to one port, so there is a switch before each function and one after the
/// last. One thread runs all of them.
pub(super) struct StaticChain {
    switches: Vec<SwitchRunner<StaticTable>>,
    lane: Lane,
    functions: Functions,
}

impl StaticChain {
    /// `functions` have one pair of rings at each of their ports.
    pub(super) fn new(mut functions: Functions, frames: &Arc<Frames>) -> Result<Self, MeasureError> {
        let lane = Lane::default();
        let mut switches = Vec::new();
        let mut from = lane.source(frames.clone());
        for sandbox in &mut functions.boxes {
            switches.push(between(from, Box::new(attach::port(sandbox, 0)?))?);
            from = Box::new(attach::port(sandbox, 1)?);
        }
        switches.push(between(from, lane.sink())?);
        let mut chain = Self { switches, lane, functions };
        chain.forward(WARM_UP)?;
        // Only pages that were touched become huge ones.
        TestBed::collapse_pages(&chain.functions.boxes);
        Ok(chain)
    }
}

/// A switch that sends what comes from one port to the other one.
fn between(
    from: Box<dyn switch::Driver>,
    to: Box<dyn switch::Driver>,
) -> Result<SwitchRunner<StaticTable>, MeasureError> {
    let mut table = StaticTable::new();
    table.set_default(Some(PortId(1)));
    let mut switch = SwitchRunner::new(table).map_err(attach::system)?;
    switch.add_port(from, PortSettings::default())?;
    switch.add_port(to, PortSettings::default())?;
    Ok(switch)
}

impl Subject for StaticChain {
    fn forward(&mut self, time: Duration) -> Result<f64, MeasureError> {
        let Self { switches, lane, .. } = self;
        lane.forward(|| switches.iter_mut().for_each(|switch| _ = switch.step()), time)
    }

    fn left(&self) -> u64 {
        self.lane.left()
    }

    fn exchange(&mut self) -> Result<(), MeasureError> {
        let Self { switches, lane, .. } = self;
        lane.exchange(|| switches.iter_mut().for_each(|switch| _ = switch.step()))
    }

    fn cost(&mut self) -> Duration {
        let costs = self.switches.iter().flat_map(|switch| [0, 1].map(|port| switch.cost(PortId(port))));
        costs.flatten().map(|cost| cost.time).sum()
    }
}
