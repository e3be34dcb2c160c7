//! The functions of a chain: boxes that only forward, from each of their two ports to the other.

use super::traffic::RING;
use crate::boxes::test_bed::TestBed;
use crate::boxes::workload::Workload;
use crate::error::MeasureError;
use boundary::Slots;
use boundary::limits::MAX_PORTS;
use sandbox::{Sandbox, Settings, Worker};

/// Slots of the rings of idle ports.
const IDLE_RING: u32 = 64;

/// Where functions run, and how they wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting<'a> {
    /// All on the core for boxes. They sleep when they have no packets.
    Idle,
    /// On the core for boxes, polling.
    Polling,
    /// Each on one of these cores, polling.
    PollingOn(&'a [usize]),
}

/// The functions of a chain, in its order.
pub(super) struct Functions {
    // Boxes end before the workers that run them: fields are dropped in order.
    pub(super) boxes: Vec<Sandbox>,
    /// Boxes that don't run, whose ports are idle.
    pub(super) idle: Vec<Sandbox>,
    _workers: Vec<Worker>,
}

impl Functions {
    /// Starts `count` functions with `pairs` pairs of rings at each of their ports.
    pub(super) fn start(
        bed: &TestBed,
        count: usize,
        pairs: usize,
        waiting: Waiting<'_>,
    ) -> Result<Self, MeasureError> {
        let pool = bed.pool()?;
        let polls = waiting != Waiting::Idle;
        let mut functions = Self { boxes: Vec::new(), idle: Vec::new(), _workers: Vec::new() };
        for number in 0..count {
            let settings = TestBed::settings(Workload::Forward, Slots::new(RING)?, None);
            let quantum = if polls { 0 } else { settings.quantum };
            let settings = Settings { pool: pool.clone(), polls, pairs, quantum, ..settings };
            let core = match waiting {
                Waiting::PollingOn(cores) => cores.get(number).copied(),
                Waiting::Idle | Waiting::Polling => None,
            };
            let worker = if polls { bed.dedicated_worker(core)? } else { None };
            let sandbox = bed.run_on_worker(worker.as_ref(), Workload::Forward, &settings)?;
            sandbox.control_handle().pin(core.as_slice());
            functions.boxes.push(sandbox);
            functions._workers.extend(worker);
        }
        Ok(functions)
    }

    /// Adds boxes that don't run, with this many ports together.
    pub(super) fn with_idle_ports(mut self, bed: &TestBed, ports: usize) -> Result<Self, MeasureError> {
        for first in (0..ports).step_by(MAX_PORTS) {
            let settings = TestBed::settings(Workload::Drop, Slots::new(IDLE_RING)?, None);
            let port = settings.ports.first().copied();
            let ports = port.into_iter().cycle().take((ports - first).min(MAX_PORTS)).collect();
            self.idle.push(bed.create(&Settings { ports, ..settings })?);
        }
        Ok(self)
    }
}
