//! Reports the status of boxes and of the daemon.

use super::lifecycle::with_source;
use super::managed_box::ManagedBox;
use super::state::Supervisor;
use crate::error::OperationError;
use api::{
    Attachment, BoxDetail, BoxName, BoxState, BoxStatus, ConfigurationStatus, Counts, CrashReport, Owner,
    PortDriver, PortStatus, RecordedWrite, Sandbox, Size, StopReply, SwitchName, Time, Usage,
};
use protocol::fabric::{
    Asked, BoxRuntime, FabricError, FabricFacts, Phase, ResourceUsage, SandboxKind, TrafficSnapshot,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a question about an object waits for a fabric that is being rebuilt, and the pause between two attempts.
const REBUILD_TIMEOUT: Duration = Duration::from_secs(5);
const REBUILD_PAUSE: Duration = Duration::from_millis(1);

/// Facts about the daemon.
#[derive(Debug)]
pub(crate) struct DaemonFacts {
    /// The image's name.
    pub(crate) image: String,
    /// What the fabrics can run: that of the default owner first.
    pub(crate) fabrics: Vec<(Option<Owner>, FabricFacts)>,
    /// Numbers of boxes, switches, ports and stacks.
    pub(crate) counts: Counts,
}

/// A sandbox as the API names it.
pub(crate) fn sandbox_to_api(kind: SandboxKind) -> Sandbox {
    match kind {
        SandboxKind::Vm => Sandbox::Vm,
        SandboxKind::Process => Sandbox::Process,
    }
}

/// A phase as the API names it.
pub(super) fn state_to_api(phase: Phase) -> BoxState {
    match phase {
        Phase::Created => BoxState::Created,
        Phase::Booting | Phase::Running => BoxState::Running,
        Phase::Suspended => BoxState::Suspended,
        Phase::Stopped => BoxState::Stopped,
        Phase::Crashed => BoxState::Crashed,
        Phase::Waiting => BoxState::Waiting,
    }
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
        let snapshot = self.0.fabrics.traffic()?;
        let runtimes = self.0.fabrics.runtimes(Asked::All)?;
        let runtimes: BTreeMap<BoxName, BoxRuntime> =
            sorting::collect(runtimes.into_iter().map(|runtime| (runtime.name.clone(), runtime)));
        let mut all = self.0.all();
        all.retain(|managed| self.sees(&managed.inner().definition.owner));
        let status = |managed: &Arc<ManagedBox>| {
            // A box that is just being created or removed has no state yet, or no more.
            runtimes.get(&managed.name).map(|runtime| self.status_of(managed, runtime, &snapshot))
        };
        Ok(all.iter().filter_map(status).collect())
    }

    /// All details of a box.
    pub fn show_box(&self, name: &BoxName) -> Result<BoxDetail, OperationError> {
        self.detail(&*self.0.managed_box(name)?)
    }

    /// The report of a box's last crash.
    pub fn crash(&self, name: &BoxName) -> Result<CrashReport, OperationError> {
        self.0.managed_box(name)?;
        let crash = self.crash_of(&self.runtime(name, Asked::None)?);
        crash.ok_or_else(|| OperationError::NoCrash(name.clone()))
    }

    /// The report of a crash, with the name of the function that ran.
    fn crash_of(&self, runtime: &BoxRuntime) -> Option<CrashReport> {
        let mut report = runtime.crash.clone()?;
        let address = report.registers.iter().find(|register| register.name == "rip");
        let address = address.and_then(|register| register.value.strip_prefix("0x"));
        let address = address.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        // The symbols are those of the built-in image.
        let managed = self.0.managed_box(&runtime.name);
        let is_own = managed.is_ok_and(|managed| managed.inner().definition.image.is_none());
        if let (Some(symbols), Some(address), true) = (&self.0.symbols, address, is_own) {
            report.function = symbols.function(address);
        }
        Some(report)
    }

    /// The state of a box.
    pub(super) fn runtime(&self, name: &BoxName, ask: Asked) -> Result<BoxRuntime, OperationError> {
        self.until_rebuilt(|| {
            self.0.fabrics.runtime(name, ask)?.ok_or_else(|| OperationError::NoBox(name.clone()))
        })
    }

    /// Asks the fabric about an object. While it is being rebuilt, waits until it has the object again: the answer to a
    /// change that is committed must not be that there is no such object.
    pub(super) fn until_rebuilt<T>(
        &self,
        ask: impl Fn() -> Result<T, OperationError>,
    ) -> Result<T, OperationError> {
        self.until_rebuilt_within(REBUILD_TIMEOUT, ask)
    }

    fn until_rebuilt_within<T>(
        &self,
        timeout: Duration,
        ask: impl Fn() -> Result<T, OperationError>,
    ) -> Result<T, OperationError> {
        let start = Instant::now();
        loop {
            let before = self.0.rebuilds.watch();
            let result = ask();
            let is_rebuilt = self.0.rebuilds.was_any(before);
            let is_missing = matches!(
                &result,
                Err(OperationError::NoBox(_) | OperationError::NoSwitch(_) | OperationError::NoPort(..))
            );
            let has_ended = matches!(&result, Err(OperationError::Fabric(FabricError::Disconnected)));
            let may_return = has_ended || is_missing && is_rebuilt;
            if !may_return || self.0.is_ending() {
                return result;
            }
            if start.elapsed() > timeout {
                // A rebuild of many boxes takes longer on a loaded machine.
                return if is_missing { Err(FabricError::Disconnected.into()) } else { result };
            }
            std::thread::sleep(REBUILD_PAUSE);
        }
    }

    pub(super) fn status(&self, managed: &ManagedBox) -> Result<BoxStatus, OperationError> {
        let runtime = self.runtime(&managed.name, Asked::All)?;
        let snapshot = self.0.fabrics.traffic()?;
        Ok(self.status_of(managed, &runtime, &snapshot))
    }

    fn status_of(&self, managed: &ManagedBox, runtime: &BoxRuntime, snapshot: &TrafficSnapshot) -> BoxStatus {
        let traffic = snapshot.whole_box(&managed.name);
        let mut drops = traffic.counters.drops.clone();
        for (reason, count) in &runtime.drops {
            let sum = drops.entry(reason.clone()).or_insert(0);
            *sum = sum.saturating_add(*count);
        }
        let (rates, core_rates) = {
            let meter = self.0.meter();
            let cores =
                meter.cores.get(&managed.name).filter(|rates| rates.len() == runtime.core_times.len());
            (meter.boxes.get(&managed.name).copied().unwrap_or_default(), cores.cloned())
        };
        let ResourceUsage { time, turns, overruns } = runtime.usage;
        let stats = runtime.stats.unwrap_or_default();
        let usage = Usage {
            own_ns: nanoseconds(time),
            switch_ns: nanoseconds(traffic.cost),
            turns,
            overstays: overruns,
            memory: Size(match runtime.process.and_then(resident) {
                Some(first) => {
                    let others = runtime.other_processes.iter().copied().filter_map(resident);
                    others.fold(first, u64::saturating_add)
                }
                None => stats.heap_used,
            }),
            heap: Size(stats.heap_used),
            heap_peak: Size(stats.heap_peak),
            lost_events: stats.lost_events,
        };
        let inner = managed.inner();
        let definition = &inner.definition;
        let piped = definition.ports.iter().any(|port| matches!(port.attach, Attachment::Pipe(_)));
        BoxStatus {
            name: managed.name.clone(),
            owner: definition.owner.clone(),
            labels: definition.labels.clone(),
            stack: inner.stack.clone(),
            service: inner.service.as_ref().map(|of| of.service.clone()),
            state: state_to_api(runtime.phase),
            sandbox: runtime.sandbox.map_or(definition.sandbox, sandbox_to_api),
            pid: runtime.process.and_then(|process| u32::try_from(process).ok()),
            created: inner.created,
            started: runtime.started,
            uptime_ms: runtime.uptime.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            boot_ms: runtime.boot.map(|time| time.as_secs_f64() * 1e3),
            restarts: runtime.restarts,
            configurations: runtime
                .configurations
                .iter()
                .map(|configuration| configuration.name.clone())
                .collect(),
            memory: definition.memory,
            ring: definition.ring,
            cores: definition.cores,
            core_ns: runtime.core_times.iter().copied().map(nanoseconds).collect(),
            core_rates: core_rates.unwrap_or_else(|| vec![0.0; runtime.core_times.len()]),
            cpu_weight: definition.cpu_weight,
            cpu_limit: definition.cpu_limit,
            dedicated: definition.dedicated,
            share_packets: definition.share_packets || piped,
            processor: runtime.processor,
            restart: definition.restart,
            usage,
            traffic: traffic.box_traffic(),
            rates,
            drops,
            account: runtime.account,
        }
    }

    pub(super) fn detail(&self, managed: &ManagedBox) -> Result<BoxDetail, OperationError> {
        let runtime = self.runtime(&managed.name, Asked::All)?;
        let traffic = self.0.fabrics.traffic()?;
        // The fabric may have ended since it answered.
        let writes = self.until_rebuilt(|| self.present_writes(&managed.name))?;
        Ok(self.detail_of(managed, &runtime, &traffic, writes))
    }

    /// All details of a box, from these answers of the fabric.
    pub(super) fn detail_of(
        &self,
        managed: &ManagedBox,
        runtime: &BoxRuntime,
        snapshot: &TrafficSnapshot,
        (writes, omitted_writes): (Vec<RecordedWrite>, u64),
    ) -> BoxDetail {
        let status = self.status_of(managed, runtime, snapshot);
        let stats: BTreeMap<u8, _> = sorting::collect(snapshot.ports(&managed.name));
        let definition = managed.inner().definition.clone();
        // The definition of a port that was attached later is that of its switch.
        let attached = |number: u8| {
            let driver = PortDriver::Box { name: managed.name.clone(), port: number };
            let switches = self.0.switches();
            let mut ports = switches.values().flat_map(|stored| &stored.definition.ports);
            ports.find(|port| port.driver == driver).map(|port| port.limits.clone())
        };
        let port = |(number, (port, attachment)): (u8, (&api::PortRequest, Option<Attachment>))| {
            let stats = stats.get(&number).copied().cloned().unwrap_or_default();
            PortStatus {
                number,
                attach: attachment.unwrap_or_else(|| port.attach.clone()),
                mac: port.mac.unwrap_or_default(),
                limits: attached(number).unwrap_or_else(|| port.limits.clone()),
                traffic: stats.box_traffic(),
                drops: stats.counters.drops,
            }
        };
        let attachments = runtime.attachments.iter().cloned().map(Some).chain(std::iter::repeat(None));
        let source = definition.source.as_deref();
        let installed = runtime.configurations.iter().map(|installed| ConfigurationStatus {
            name: installed.name.clone(),
            installed: installed.version.installed,
            swaps: installed.version.swaps,
            diagnostics: with_source(installed.diagnostics.clone(), source),
        });
        BoxDetail {
            status,
            ports: (0u8..).zip(definition.ports.iter().zip(attachments)).map(port).collect(),
            installed: installed.collect(),
            places: runtime.places.clone(),
            crash: self.crash_of(runtime),
            image: definition.image_digest().copied(),
            keep_writes: definition.keep_writes,
            writes,
            omitted_writes,
        }
    }

    /// Facts about the daemon.
    pub(crate) fn facts(&self) -> Result<DaemonFacts, OperationError> {
        let runtimes = self.0.fabrics.runtimes(Asked::None)?;
        let mut names: BTreeSet<BoxName> = BTreeSet::new();
        let own = |managed: &Arc<ManagedBox>| self.sees(&managed.inner().definition.owner);
        names.extend(self.0.all().iter().filter(|managed| own(managed)).map(|managed| managed.name.clone()));
        let seen = runtimes.iter().filter(|runtime| names.contains(&runtime.name));
        let states: Vec<_> = seen.map(|runtime| state_to_api(runtime.phase)).collect();
        let snapshot = self.0.fabrics.traffic()?;
        let own = |name: &SwitchName| {
            let switches = self.0.switches();
            switches.get(name).is_some_and(|stored| self.sees(&stored.definition.owner))
        };
        let switches: Vec<_> = snapshot.switches.iter().filter(|(name, _)| own(name)).collect();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let counts = Counts {
            switches: number(switches.len()),
            ports: number(switches.iter().map(|(_, ports)| ports.len()).sum()),
            stacks: number(self.stacks()?.len()),
            ..Self::count(&states)
        };
        Ok(DaemonFacts { image: self.0.image.clone(), fabrics: self.0.fabrics.facts()?, counts })
    }

    /// What a daemon that is told to end leaves.
    pub(crate) fn stop_reply(&self, all: bool) -> StopReply {
        // The fabric may be the reason for the request, so it is not asked.
        let running = self.0.all().iter().filter(|managed| managed.inner().running).count();
        StopReply {
            pid: std::process::id(),
            running: u32::try_from(running).unwrap_or(u32::MAX),
            ends_boxes: all || self.0.ends_fabric,
        }
    }

    /// When the daemon started.
    pub(crate) fn started(&self) -> Time {
        self.0.started
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_bed::TestBed;
    use super::*;

    /// Otherwise a client would take a box for removed that is about to run again.
    #[test]
    fn nothing_is_said_to_be_missing_while_its_fabric_is_rebuilt() {
        let bed = TestBed::with_probe();
        let ask = || -> Result<(), OperationError> { Err(OperationError::NoBox("fw".parse().unwrap())) };
        let answer = || bed.until_rebuilt_within(Duration::ZERO, ask).unwrap_err();
        assert!(matches!(answer(), OperationError::NoBox(_)));
        let rebuild = bed.0.rebuilds.begin();
        assert!(matches!(answer(), OperationError::Fabric(FabricError::Disconnected)));
        drop(rebuild);
        assert!(matches!(answer(), OperationError::NoBox(_)));
    }
}
