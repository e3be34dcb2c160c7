//! Chains of a steering switch.

use super::functions::Functions;
use super::traffic::{Frames, Lane};
use super::{Lookup, Subject, WARM_UP};
use crate::boxes::attach;
use crate::boxes::test_bed::TestBed;
use crate::error::MeasureError;
use std::sync::Arc;
use std::time::Duration;
use switch::driver::BoxPort;
use switch::{
    ChainPlan, ChainsPlan, Driver, Field, Flow, FlowOutput, InstancePlan, Match, PortId, PortKey,
    PortSettings, ServicePlan, Shards, Steering, SteeringSettings, SwitchRunner,
};

/// Entries in the flow table beside the one that sends packets into the chain.
const ENTRIES: u32 = 1000;

const SOURCE: PortKey = PortKey(1);
const SINK: PortKey = PortKey(2);

/// The frames of each shard's flows: those that a device with a queue for each thread would give it.
fn of_shards(frames: &Arc<Frames>, shards: &Shards<Steering>) -> Vec<Arc<Frames>> {
    if shards.count() == 1 {
        return vec![frames.clone()];
    }
    let mut parts = Vec::from_iter((0..shards.count()).map(|_| Frames::default()));
    for frame in frames.iter() {
        if let Some(part) = parts.get_mut(shards.shard_of(frame)) {
            part.push(frame);
        }
    }
    parts.into_iter().map(Arc::new).collect()
}

/// A switch with a chain of functions.
pub(super) struct Steered {
    runner: Shards<Steering>,
    lanes: Vec<Lane>,
    functions: Functions,
}

impl Steered {
    /// `functions` have a pair of rings at each of their ports for each thread of the switch.
    pub(super) fn new(
        mut functions: Functions,
        frames: &Arc<Frames>,
        flows: u32,
        by: Lookup,
        threads: usize,
    ) -> Result<Self, MeasureError> {
        let settings = SteeringSettings { seed: [3, 5], ..SteeringSettings::default() };
        let others = (1..threads).map(|_| Steering::new(settings)).collect();
        let mut runner = Shards::new(Steering::new(settings), others, 7).map_err(attach::system)?;
        let lanes = vec![(); threads].into_iter().map(|()| Lane::default()).collect::<Vec<_>>();
        let sources = of_shards(frames, &runner).into_iter().zip(&lanes);
        let sources = sources.map(|(frames, lane)| lane.source(frames)).collect();
        let sinks = lanes.iter().map(Lane::sink).collect();
        for (drivers, key) in [(sources, SOURCE), (sinks, SINK)] {
            let port = runner.add_port(drivers, &PortSettings::default())?;
            runner.forwards().for_each(|steering| _ = steering.set_port_key(port, key));
        }
        let mut plan = ChainsPlan::default();
        for (number, sandbox) in (0..).zip(&mut functions.boxes) {
            let pairs = (0..2 * threads).map(|pair| attach::port(sandbox, pair));
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
        }
        for sandbox in &mut functions.idle {
            let mut index = 0;
            while let Ok(port) = attach::port(sandbox, index) {
                runner.add_port(vec![Box::new(port)], &PortSettings::default())?;
                index += 1;
            }
        }
        let from = (by == Lookup::Default).then_some(SOURCE);
        let services = plan.services.iter().map(|service| service.number).collect();
        plan.chains.push(ChainPlan { number: 0, services, from, to: SINK, both_ways: false });
        let now = runner.now();
        for steering in runner.forwards() {
            steering.set_chains(&plan);
            if by == Lookup::Flow {
                add_flows(steering, now)?;
            }
        }
        let mut steered = Self { runner, lanes, functions };
        // Each flow gets its record.
        steered.forward(WARM_UP.max(Duration::from_nanos(u64::from(flows) * 600)))?;
        // Only pages that were touched become huge ones.
        TestBed::collapse_pages(&steered.functions.boxes);
        Ok(steered)
    }
}

impl Subject for Steered {
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
                    let rate = lane.forward(|| _ = runner.step(), time);
                    (number, runner, rate)
                })
            };
            let threads: Vec<_> = others.into_iter().map(run).collect();
            let rate = lane.forward(|| _ = first.step(), time);
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
        self.lanes.iter().map(Lane::left).sum()
    }

    /// Sends one packet through the chain, in the first thread.
    fn exchange(&mut self) -> Result<(), MeasureError> {
        let (lane, first) = (self.lanes.first().cloned().unwrap_or_default(), self.runner.first());
        lane.exchange(|| _ = first.step())
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
