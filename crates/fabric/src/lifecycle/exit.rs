//! Handles the end of a box.

use super::attaching::Attaching;
use super::state::Fabric;
use crate::boxes::{ExitStatus, FinalStatus, Instance, ManagedBox, Phase, Remains, report, summary};
use crate::limits::{CRASH_COUNT_RESET, MAX_CONSECUTIVE_CRASHES, MAX_RESTART_DELAY, MIN_RESTART_DELAY};
use crate::network::{Disconnected, Network};
use model::{EventKind, Restart, with_causes};
use sandbox::Usage;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the stop of a box waits for another thread that records its end.
const RECORD_TIMEOUT: Duration = Duration::from_secs(1);

/// The delay before a box restarts after this many consecutive crashes.
fn restart_delay(crashes: u32) -> Duration {
    match crashes {
        0 | 1 => Duration::ZERO,
        more => MIN_RESTART_DELAY
            .saturating_mul(1u32.checked_shl(more - 2).unwrap_or(u32::MAX))
            .min(MAX_RESTART_DELAY),
    }
}

/// A box that has ended and is no longer connected.
pub(super) struct EndedBox {
    managed: Arc<ManagedBox>,
    instance: Arc<Instance>,
    status: FinalStatus,
    usage: Usage,
    lost: Disconnected,
}

/// What was lost with a box, as the end of a sentence.
fn lost(Disconnected { waiting, flows }: Disconnected, held: u64) -> String {
    let packets = match (waiting, held) {
        (0, 0) => String::new(),
        (waiting, 0) => format!("; packets lost in its rings: {waiting}"),
        (0, held) => format!("; packets lost inside the box: {held}"),
        (waiting, held) => format!("; packets lost in its rings: {waiting}, inside the box: {held}"),
    };
    match flows {
        0 => packets,
        flows => format!("{packets}; flows that go on without its state: {flows}"),
    }
}

impl Fabric {
    /// Handles boxes that ended on their own, each once. If one is being started or stopped by another thread, that thread
    /// handles its end.
    pub(super) fn ended(&self, found: Vec<(Arc<ManagedBox>, Arc<Instance>)>) {
        self.disconnect_ended(found).into_iter().for_each(|ended| self.conclude(ended));
    }

    /// The part of [`ended`](Self::ended) that traffic waits for: waits for no disk, and for no box that has not ended.
    pub(super) fn disconnect_ended(&self, found: Vec<(Arc<ManagedBox>, Arc<Instance>)>) -> Vec<EndedBox> {
        let is_ours = |(managed, instance): &(Arc<ManagedBox>, Arc<Instance>)| {
            let inner = managed.inner();
            let ours = inner.instance.as_ref().is_some_and(|ours| Arc::ptr_eq(ours, instance));
            ours && !matches!(inner.phase, Phase::Booting) && !instance.is_stopping()
        };
        self.disconnect(found.into_iter().filter(is_ours).collect())
    }

    /// The rest: what the box left, and its restart. May wait for the disk.
    pub(super) fn conclude(&self, ended: EndedBox) {
        let managed = ended.managed.clone();
        if let Some(end) = self.record_end(ended) {
            self.apply_restart_policy(&managed, &end);
        }
    }

    /// Ends a box if it still runs, disconnects it from the network, and records how it ended. Returns `None` if this
    /// was already done.
    pub(super) fn reap(&self, managed: &Arc<ManagedBox>, instance: &Arc<Instance>) -> Option<ExitStatus> {
        let ended = self.disconnect(vec![(managed.clone(), instance.clone())]).pop();
        ended.and_then(|ended| self.record_end(ended))
    }

    /// Waits until the end of a box is recorded that another thread has noticed, so that all that it left is counted: for a while,
    /// because the disk may be slow.
    pub(super) fn wait_until_recorded(&self, managed: &ManagedBox, instance: &Arc<Instance>) {
        let begin = Instant::now();
        let is_there = || managed.instance().is_some_and(|there| Arc::ptr_eq(&there, instance));
        while is_there() && begin.elapsed() < RECORD_TIMEOUT {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends boxes if they still run, and disconnects them from the network, so that their flows go on elsewhere. Everything else
    /// can wait. Leaves out those for which this was already done.
    fn disconnect(&self, found: Vec<(Arc<ManagedBox>, Arc<Instance>)>) -> Vec<EndedBox> {
        let end = |(managed, instance): (Arc<ManagedBox>, Arc<Instance>)| {
            // Nobody knows it any more when the process is gone.
            let usage = instance.usage();
            let status = instance.take_final_status()?;
            Some(EndedBox { managed, instance, status, usage, lost: Disconnected::default() })
        };
        let mut ended: Vec<EndedBox> = found.into_iter().filter_map(end).collect();
        if ended.is_empty() {
            return ended;
        }
        let names: Vec<_> = ended.iter().map(|ended| ended.managed.name.clone()).collect();
        let disconnect = move |network: &mut Network| {
            names.iter().map(|name| network.disconnect(name)).collect::<Vec<_>>()
        };
        // If the fabric has ended, nothing is connected.
        let lost = self.network(disconnect).unwrap_or_default();
        ended.iter_mut().zip(lost).for_each(|(ended, lost)| ended.lost = lost);
        ended
    }

    /// Records how a box ended, and what was lost with it. `None`: another thread has closed it, and may have started the next one.
    fn record_end(&self, ended: EndedBox) -> Option<ExitStatus> {
        let EndedBox { managed, instance, status: FinalStatus { end, core, crashed }, usage, lost: gone } =
            ended;
        self.store_messages(&managed, &instance);
        let Remains { held, account } = instance.remains();
        let mut inner = managed.inner();
        if !inner.instance.as_ref().is_some_and(|ours| Arc::ptr_eq(ours, &instance)) {
            return None;
        }
        inner.update_usage(usage);
        // A box that never ran a configuration has published nothing.
        if let Some(account) = &account {
            inner.complete_account(account);
        }
        inner.count_held(held);
        inner.close();
        if crashed {
            let report = report(&end);
            let message = match end {
                ExitStatus::Killed => format!("box {} was killed on request", managed.name),
                _ => match core {
                    Some(core) => {
                        format!("core {core} of box {} crashed: {}", managed.name, summary(&report))
                    }
                    None => format!("box {} crashed: {}", managed.name, summary(&report)),
                },
            };
            let message = message + &lost(gone, held);
            inner.crash = Some(report);
            // A box that was to start when it was created does not exist then: who created it is told why.
            let is_first = inner.started.is_none() && inner.crashes == 0;
            let is_reported = inner.phase == Phase::Booting && inner.definition.start && is_first;
            drop(inner);
            managed.note(&message);
            if !is_reported {
                self.0.note(EventKind::BoxCrashed, &managed.name, message);
            }
        } else if end == ExitStatus::Stopped {
            drop(inner);
            managed.note("the box stopped");
        }
        Some(end)
    }

    /// Applies a box's restart policy after its end.
    fn apply_restart_policy(&self, managed: &Arc<ManagedBox>, end: &ExitStatus) {
        let mut inner = managed.inner();
        let again = match (inner.definition.restart, end) {
            _ if inner.removed || inner.unwanted || self.0.is_ending() => false,
            (Restart::Always, _) => true,
            (Restart::OnFailure, ExitStatus::Stopped) | (Restart::Never, _) => false,
            (Restart::OnFailure, _) => true,
        };
        if !again {
            let stopped = *end == ExitStatus::Stopped;
            inner.phase = if stopped { Phase::Stopped } else { Phase::Crashed };
            drop(inner);
            if stopped {
                let message = format!("box {} stopped on its own", managed.name);
                self.0.note(EventKind::BoxStopped, &managed.name, message);
            }
            return;
        }
        if inner.started.is_some_and(|(_, since)| since.elapsed() >= CRASH_COUNT_RESET) {
            inner.crashes = 0;
        }
        drop(inner);
        self.schedule_restart(managed);
    }

    /// A box that ran before the daemon's restart cannot be started: its restart policy decides whether it is retried.
    pub(super) fn failed_to_start(&self, managed: &Arc<ManagedBox>) {
        let again = {
            let mut inner = managed.inner();
            let again = inner.definition.restart != Restart::Never;
            if !again && !inner.unwanted {
                inner.phase = Phase::Crashed;
            }
            again
        };
        if again {
            self.schedule_restart(managed);
        }
    }

    /// Schedules a restart after a delay that depends on the number of crashes, or gives up. A box that was stopped
    /// meanwhile stays so.
    fn schedule_restart(&self, managed: &Arc<ManagedBox>) {
        let mut inner = managed.inner();
        if inner.unwanted {
            return;
        }
        inner.crashes += 1;
        if inner.crashes > MAX_CONSECUTIVE_CRASHES {
            inner.phase = Phase::Crashed;
            let message =
                format!("box {} crashed {} times in a row and will not restart", managed.name, inner.crashes);
            drop(inner);
            managed.note(&message);
            self.0.note(EventKind::BoxGivenUp, &managed.name, message);
            return;
        }
        let delay = restart_delay(inner.crashes);
        inner.phase = Phase::Waiting(Instant::now() + delay);
        drop(inner);
        if delay.is_zero() {
            self.start_restart(managed);
        } else {
            self.0.wake_monitor();
        }
    }

    /// Restarts a box. This may take long, so it runs in its own thread.
    pub(super) fn start_restart(&self, managed: &Arc<ManagedBox>) {
        {
            let mut inner = managed.inner();
            if inner.unwanted || !matches!(inner.phase, Phase::Waiting(_)) {
                return;
            }
            // Postpones the due time, so that the monitor does not start a second thread.
            inner.phase = Phase::Waiting(Instant::now() + MAX_RESTART_DELAY);
        }
        let (fabric, own) = (self.clone(), managed.clone());
        let run = move || fabric.restart_after_crash(&own);
        if std::thread::Builder::new().name("restart".into()).spawn(run).is_err() {
            // No thread could be created: retry later.
            managed.inner().phase = Phase::Waiting(Instant::now() + MIN_RESTART_DELAY);
        }
    }

    fn restart_after_crash(&self, managed: &Arc<ManagedBox>) {
        let change = managed.change.lock();
        let wanted = {
            let inner = managed.inner();
            matches!(inner.phase, Phase::Waiting(_)) && !inner.removed && !inner.unwanted
        };
        if !wanted || self.0.is_ending() {
            return;
        }
        let booted = self.boot(managed, &Attaching::default());
        drop(change);
        match booted {
            Ok(_) => {
                managed.inner().restarts += 1;
                self.make_spare(&managed.name);
            }
            Err(failure) => {
                if managed.inner().unwanted {
                    return;
                }
                managed.note(format!("the box could not be restarted: {}", with_causes(&failure)));
                self.schedule_restart(managed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::StartSettings;
    use model::{
        Attachment, BoxName, ConfigurationName, CreateBox, CreateSwitch, Limits, MacAddr, PortRequest,
        Sandbox, SwitchMode, SwitchName, Time,
    };
    use protocol::fabric::{
        Configuration, ConfigurationVersion, InstanceDefinition, ServiceDefinition, SteeringDefinition,
    };
    use sandbox::{HostSettings, KvmDevice};

    #[test]
    fn restart_delays_double_up_to_a_limit() {
        let milliseconds: Vec<u128> = (0..14).map(|crashes| restart_delay(crashes).as_millis()).collect();
        assert_eq!(
            milliseconds,
            [0, 0, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000, 30_000]
        );
        assert_eq!(restart_delay(u32::MAX), MAX_RESTART_DELAY);
    }

    fn fabric() -> Fabric {
        let settings =
            crate::Settings { image: image::PROBE, workers: 1, shares_processors: false, switch_threads: 1 };
        let host = HostSettings { kvm: KvmDevice::Given(None), ..HostSettings::default() };
        Fabric::start(&settings, host, [7; 16]).unwrap()
    }

    #[test]
    fn a_box_that_ends_is_disconnected_while_another_ones_files_are_written() {
        let (fabric, lan): (_, SwitchName) = (fabric(), "lan".parse().unwrap());
        let switch = CreateSwitch { mode: SwitchMode::Steering, ..CreateSwitch::new(lan.clone()) };
        fabric.add_switch(switch).unwrap();
        let names: [BoxName; 2] = ["ids-1", "ids-2"].map(|name| name.parse().unwrap());
        for (number, name) in (1..).zip(&names) {
            let port = PortRequest {
                attach: Attachment::Switch(lan.clone()),
                mac: Some(MacAddr::new([2, 0, 0, 0, 0, number])),
                limits: Limits { transparent: true, ..Limits::default() },
            };
            let (sandbox, restart) = (Sandbox::Process, Restart::Never);
            let definition =
                CreateBox { sandbox, restart, ports: vec![port], ..CreateBox::new(name.clone(), "") };
            fabric.define_box(definition, false).unwrap();
            let configuration = Configuration {
                name: ConfigurationName::main(),
                version: ConfigurationVersion { installed: Time::now(), swaps: 0 },
                text: "drop".into(),
                files: Vec::new(),
                destinations: Vec::new(),
                parameters: Vec::new(),
            };
            let how = StartSettings { restore: false, replay: false, has_equals: false };
            fabric.start_box(name, vec![configuration], Vec::new(), how).unwrap();
        }
        let instance =
            |name: &BoxName| InstanceDefinition { name: name.clone(), draining: false, range: None };
        let service = ServiceDefinition {
            name: "ids".parse().unwrap(),
            faces: "in=0".parse().unwrap(),
            destinations: Vec::new(),
            instances: names.iter().map(instance).collect(),
            dead_after_ms: None,
            places: None,
            pool: None,
            translation: None,
        };
        let steering = SteeringDefinition { services: vec![service], chains: Vec::new() };
        fabric.set_steering(lan.clone(), steering).unwrap();
        let are_up = || -> Vec<bool> {
            let reply = fabric.steering(lan.clone()).unwrap();
            reply.services[0].1.iter().map(|instance| instance.up).collect()
        };
        let wait = |what: &str, done: &dyn Fn() -> bool| {
            let begin = Instant::now();
            while !done() {
                assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        wait("both take packets", &|| are_up() == [true, true]);
        let boxes = names.each_ref().map(|name| fabric.0.managed_box(name).unwrap());
        let kill = |managed: &ManagedBox| managed.instance().unwrap().kill();
        // As while a slow disk writes what the box left.
        let writing = boxes[0].storing();
        kill(&boxes[0]);
        wait("the first one is disconnected", &|| are_up() == [false, true]);
        kill(&boxes[1]);
        wait("the second one is disconnected", &|| are_up() == [false, false]);
        assert!(boxes.iter().all(|managed| managed.inner().phase == Phase::Running));
        drop(writing);
        wait("both ends are recorded", &|| {
            boxes.iter().all(|managed| managed.inner().phase == Phase::Crashed)
        });
        fabric.end();
    }

    /// A stop interrupts a start. The thread that starts the box finds out after the stop has ended.
    #[test]
    fn a_box_that_was_stopped_while_it_started_is_not_restarted() {
        let fabric = fabric();
        for restart in [Restart::OnFailure, Restart::Never] {
            let name: BoxName = format!("{restart:?}").to_lowercase().parse().unwrap();
            let definition = CreateBox { restart, ..CreateBox::new(name.clone(), "") };
            fabric.define_box(definition, true).unwrap();
            let managed = fabric.0.managed_box(&name).unwrap();
            managed.inner().unwanted = true;
            fabric.failed_to_start(&managed);
            assert_eq!(managed.inner().phase, Phase::Stopped);
            fabric.start_restart(&managed);
            assert_eq!(managed.inner().phase, Phase::Stopped);
        }
        fabric.end();
    }
}
