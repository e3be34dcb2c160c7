//! Reports the status of boxes and of the daemon.

use super::state::Supervisor;
use super::switches::drops;
use crate::boxes::{Installed, ManagedBox, Phase, sandbox_to_api, shares_packets};
use crate::error::OperationError;
use crate::fabric::{PortLocation, TrafficSnapshot};
use api::{
    Attachment, BoxDetail, BoxName, BoxStatus, ConfigurationStatus, Counts, CrashReport, PortStatus, Size,
    Time, Usage,
};
use sandbox::SandboxKind;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Facts about the daemon.
#[derive(Debug)]
pub(crate) struct DaemonFacts {
    /// The image's name.
    pub(crate) image: String,
    /// The available sandboxes.
    pub(crate) kinds: Vec<SandboxKind>,
    /// The number of processors.
    pub(crate) cores: u32,
    /// The number of workers.
    pub(crate) workers: u32,
    /// Numbers of boxes, switches, ports and stacks.
    pub(crate) counts: Counts,
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Private memory that a process has touched, in bytes.
fn resident(process: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
    let mut fields = text.split(' ').filter_map(|field| field.parse::<u64>().ok());
    let (resident, shared) = (fields.nth(1)?, fields.next()?);
    Some(resident.saturating_sub(shared) * 4096)
}

impl Supervisor {
    /// Lists the boxes, by name.
    pub fn boxes(&self) -> Result<Vec<BoxStatus>, OperationError> {
        let snapshot = self.0.fabric.ask(|network| network.traffic_snapshot())?;
        Ok(self.0.all().iter().map(|managed| self.status_of(managed, &snapshot)).collect())
    }

    /// All details of a box.
    pub fn show_box(&self, name: &BoxName) -> Result<BoxDetail, OperationError> {
        Ok(self.detail(&*self.0.managed_box(name)?))
    }

    /// The report of a box's last crash.
    pub fn crash(&self, name: &BoxName) -> Result<CrashReport, OperationError> {
        let crash = self.0.managed_box(name)?.inner().crash.clone();
        crash.ok_or_else(|| OperationError::NoCrash(name.clone()))
    }

    pub(super) fn status(&self, managed: &ManagedBox) -> BoxStatus {
        let snapshot = self.0.fabric.ask(|network| network.traffic_snapshot()).unwrap_or_default();
        self.status_of(managed, &snapshot)
    }

    fn status_of(&self, managed: &ManagedBox, snapshot: &TrafficSnapshot) -> BoxStatus {
        let instance = managed.instance();
        let running = managed.inner().phase == Phase::Running;
        let stats = instance.as_ref().filter(|_| running).and_then(|instance| instance.stats());
        let process = instance.as_ref().and_then(|instance| instance.process_id());
        let used = instance.as_ref().map(|instance| instance.usage());
        let traffic = snapshot.whole_box(&managed.name);
        let mut drops = drops(&traffic);
        let rates = self.0.meter().boxes.get(&managed.name).copied().unwrap_or_default();
        let mut inner = managed.inner();
        if let Some(used) = used {
            inner.update_usage(used);
        }
        // The box may have a newer instance.
        let is_present = match (&inner.instance, &instance) {
            (Some(present), Some(asked)) => Arc::ptr_eq(present, asked),
            _ => false,
        };
        if let Some(stats) = stats.as_ref().filter(|_| is_present) {
            inner.update_drops(stats);
        }
        for (reason, count) in inner.drops() {
            let sum = drops.entry(reason).or_insert(0);
            *sum = sum.saturating_add(count);
        }
        let total = inner.usage();
        let stats = stats.unwrap_or_default();
        let usage = Usage {
            own_ns: nanoseconds(total.time),
            switch_ns: nanoseconds(traffic.cost),
            turns: total.turns,
            overstays: total.overruns,
            memory: Size(process.and_then(resident).unwrap_or(stats.heap_used)),
            heap: Size(stats.heap_used),
            heap_peak: Size(stats.heap_peak),
            lost_events: stats.lost_events,
        };
        let definition = &inner.definition;
        let alive = inner.instance.is_some();
        let uptime = inner.started.filter(|_| alive).map(|(_, since)| since.elapsed());
        BoxStatus {
            name: managed.name.clone(),
            owner: definition.owner.clone(),
            labels: definition.labels.clone(),
            stack: inner.stack.clone(),
            state: inner.phase.state(),
            sandbox: match inner.started {
                Some(_) => {
                    self.0.factory.resolve(definition.sandbox).map_or(definition.sandbox, sandbox_to_api)
                }
                None => definition.sandbox,
            },
            pid: process.and_then(|process| u32::try_from(process).ok()),
            created: inner.created,
            started: inner.started.map(|(time, _)| time),
            uptime_ms: uptime.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            boot_ms: inner.boot.map(|time| time.as_secs_f64() * 1e3),
            restarts: inner.restarts,
            configurations: inner.installed.iter().map(|installed| installed.name.clone()).collect(),
            memory: definition.memory,
            ring: definition.ring,
            cpu_weight: definition.cpu_weight,
            cpu_limit: definition.cpu_limit,
            dedicated: definition.dedicated,
            share_packets: shares_packets(definition),
            processor: instance
                .as_ref()
                .and_then(|instance| instance.processor())
                .and_then(|number| u32::try_from(number).ok()),
            restart: definition.restart,
            usage,
            traffic: traffic.box_traffic(),
            rates,
            drops,
        }
    }

    pub(super) fn detail(&self, managed: &ManagedBox) -> BoxDetail {
        let name = managed.name.clone();
        let count = managed.inner().definition.ports.len();
        let asked = self.0.fabric.ask(move |network| {
            let locations: Vec<Option<PortLocation>> =
                (0..count).map(|number| network.attachment(&name, number as u8)).collect();
            (network.traffic_snapshot(), locations)
        });
        let (snapshot, locations) = asked.unwrap_or_default();
        let status = self.status_of(managed, &snapshot);
        let stats: BTreeMap<u8, _> = snapshot.ports(&managed.name).collect();
        let inner = managed.inner();
        let port = |(number, (port, location)): (u8, (&api::PortRequest, Option<PortLocation>))| {
            let stats = stats.get(&number).copied().cloned().unwrap_or_default();
            PortStatus {
                number,
                attach: match location {
                    Some(PortLocation::Switch(switch, _)) => Attachment::Switch(switch),
                    Some(PortLocation::Pipe(pipe)) => Attachment::Pipe(pipe),
                    Some(PortLocation::Nothing) => Attachment::Nothing,
                    None => port.attach.clone(),
                },
                mac: port.mac.unwrap_or_default(),
                traffic: stats.box_traffic(),
                drops: drops(&stats),
            }
        };
        let locations = locations.into_iter().chain(std::iter::repeat(None));
        let installed = |installed: &Installed| ConfigurationStatus {
            name: installed.name.clone(),
            installed: installed.installed,
            swaps: installed.swaps,
            diagnostics: installed.diagnostics.clone(),
        };
        BoxDetail {
            status,
            ports: (0u8..).zip(inner.definition.ports.iter().zip(locations)).map(port).collect(),
            installed: inner.installed.iter().map(installed).collect(),
            crash: inner.crash.clone(),
        }
    }

    /// Facts about the daemon.
    pub(crate) fn facts(&self) -> Result<DaemonFacts, OperationError> {
        let states: Vec<_> = self.0.all().iter().map(|managed| managed.inner().phase.state()).collect();
        let snapshot = self.0.fabric.ask(|network| network.traffic_snapshot())?;
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let counts = Counts {
            switches: number(snapshot.switches.len()),
            ports: number(snapshot.switches.values().map(BTreeMap::len).sum()),
            stacks: number(self.0.store().stacks()?.len()),
            ..Self::count(&states)
        };
        Ok(DaemonFacts {
            image: self.0.image.clone(),
            kinds: self.0.factory.kinds(),
            cores: number(self.0.factory.cores()),
            workers: number(self.0.factory.workers()),
            counts,
        })
    }

    /// When the daemon started.
    pub(crate) fn started(&self) -> Time {
        self.0.started
    }
}
