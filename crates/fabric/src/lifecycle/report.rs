//! What the daemon asks about boxes and the fabric.

use super::state::Fabric;
use crate::boxes::{ManagedBox, Phase, reported_sandbox};
use crate::error::OperationError;
use crate::limits::MAX_CAPTURES;
use crate::network::CaptureStream;
use model::{BoxName, CapturePoint, PacketPlaces};
use protocol::fabric::{
    Asked, BoxInventory, BoxRuntime, BoxStats, FabricFacts, FileStatus, InventoryReply, LogPage,
    ResourceUsage,
};
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Fabric {
    /// The state of these boxes, or of all.
    pub(crate) fn runtimes(&self, names: &[BoxName], ask: Asked) -> Result<Vec<BoxRuntime>, OperationError> {
        let boxes: Vec<Arc<ManagedBox>> = match names {
            [] => self.0.all(),
            names => names.iter().filter_map(|name| self.0.managed_box(name).ok()).collect(),
        };
        let keys: Vec<(BoxName, usize)> = boxes
            .iter()
            .map(|managed| (managed.name.clone(), managed.inner().definition.ports.len()))
            .collect();
        let attachments = self.0.switches.ask(move |network| {
            keys.iter().map(|(name, count)| network.attachments(name, *count)).collect::<Vec<_>>()
        })?;
        let runtime = |(managed, attachments)| match names {
            [] => self.runtime(managed, ask, attachments),
            _ => self.runtime_with_places(managed, ask, attachments),
        };
        Ok(boxes.iter().zip(attachments).map(runtime).collect())
    }

    /// The state of a box whose ports are attached to these, with the places of its packets.
    pub(super) fn runtime_with_places(
        &self,
        managed: &Arc<ManagedBox>,
        ask: Asked,
        attachments: Vec<model::Attachment>,
    ) -> BoxRuntime {
        let runtime = self.runtime(managed, ask, attachments);
        BoxRuntime { places: managed.inner().places(), ..runtime }
    }

    fn runtime(
        &self,
        managed: &Arc<ManagedBox>,
        ask: Asked,
        attachments: Vec<model::Attachment>,
    ) -> BoxRuntime {
        let instance = managed.instance();
        let used = instance.as_ref().map(|instance| instance.usage());
        let asked = {
            let mut inner = managed.inner();
            let time = used.as_ref().map(|used| used.time);
            // A throttled box runs for its reply, beyond its limit.
            let is_held = instance.as_ref().is_some_and(|instance| instance.is_held());
            let has_run = time != inner.asked && !is_held && inner.silence.is_over(Instant::now());
            let is_asked = ask == Asked::All || ask == Asked::Active && has_run;
            if is_asked {
                inner.asked = time;
            }
            is_asked && inner.phase == Phase::Running
        };
        let stats = instance.as_ref().filter(|_| asked).and_then(|instance| instance.stats());
        let mut inner = managed.inner();
        if asked {
            inner.silence.note(stats.is_some(), Instant::now());
        }
        // The box may have a newer instance.
        let is_present = match (&inner.instance, &instance) {
            (Some(present), Some(asked)) => Arc::ptr_eq(present, asked),
            _ => false,
        };
        if let Some(used) = used.filter(|_| is_present) {
            inner.update_usage(used);
        }
        if let Some(stats) = stats.as_ref().filter(|_| is_present) {
            inner.update_account(stats);
        }
        let total = inner.usage();
        let alive = inner.instance.is_some();
        let wanted = inner.definition.sandbox;
        BoxRuntime {
            name: managed.name.clone(),
            phase: inner.phase.reported(),
            started: inner.started.map(|(time, _)| time),
            uptime: inner.started.filter(|_| alive).map(|(_, since)| since.elapsed()),
            boot: inner.boot,
            restarts: inner.restarts,
            crash: inner.crash.clone(),
            usage: ResourceUsage { time: total.time, turns: total.turns, overruns: total.overruns },
            core_times: instance.as_ref().map(|instance| instance.core_times()).unwrap_or_default(),
            drops: inner.drops(),
            account: inner.account(),
            places: PacketPlaces::default(),
            stats: stats.map(|stats| BoxStats {
                heap_used: stats.heap_used,
                heap_peak: stats.heap_peak,
                lost_events: stats.lost_events,
            }),
            process: instance.as_ref().and_then(|instance| instance.process_ids().first().copied()),
            other_processes: instance
                .as_ref()
                .map(|instance| instance.process_ids().into_iter().skip(1).collect())
                .unwrap_or_default(),
            processor: instance
                .as_ref()
                .and_then(|instance| instance.processor())
                .and_then(|number| u32::try_from(number).ok()),
            sandbox: inner.started.and_then(|_| self.0.factory.resolve(wanted).ok()).map(reported_sandbox),
            attachments,
            configurations: inner.installed.clone(),
        }
    }

    /// Everything that the fabric has.
    pub(crate) fn inventory(&self) -> Result<InventoryReply, OperationError> {
        let boxes = self.0.all().into_iter().map(|managed| {
            let inner = managed.inner();
            BoxInventory {
                definition: inner.definition.clone(),
                phase: inner.phase.reported(),
                configurations: inner
                    .configurations
                    .iter()
                    .map(|configuration| (configuration.name.clone(), configuration.version))
                    .collect(),
                last_line: managed.log.last(),
                last_write: inner.writes.last(),
            }
        });
        Ok(InventoryReply {
            boxes: boxes.collect(),
            switches: self.0.switches.ask(|network| network.inventory())?,
            last_event: self.last_event(),
            started: Some(self.0.started),
            images: self.0.factory.images(),
        })
    }

    /// What the fabric can run, and where.
    pub(crate) fn facts(&self) -> FabricFacts {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        FabricFacts {
            process: std::process::id(),
            version: env!("CARGO_PKG_VERSION").into(),
            started: self.0.started,
            sandboxes: self.0.factory.kinds().into_iter().map(reported_sandbox).collect(),
            cores: number(self.0.factory.cores()),
            workers: number(self.0.factory.workers()),
            capture_lost: self.0.capture_lost.load(Ordering::Relaxed),
            // The limit that permits all priorities; the launcher sets it.
            raises_priority: getrlimit(Resource::Nice).current.is_none_or(|limit| limit >= 40),
            isolation: self.0.factory.isolation(),
        }
    }

    /// Lines of a box's log.
    pub(crate) fn log(&self, name: &BoxName, after: u64, most: usize) -> Result<LogPage, OperationError> {
        let managed = self.0.managed_box(name)?;
        self.collect_messages(&managed);
        let page = managed.log.after(after, most);
        Ok(LogPage { lines: page.entries, lost: page.lost, last: page.last, first: page.first })
    }

    /// The files that a box has written.
    pub(crate) fn files(&self, name: &BoxName) -> Result<Vec<FileStatus>, OperationError> {
        let managed = self.0.managed_box(name)?;
        self.collect_messages(&managed);
        Ok(managed.outputs.list())
    }

    /// A file that a box writes, and its present length.
    pub(crate) fn open_file(&self, name: &BoxName, file: &str) -> Result<(File, u64), OperationError> {
        let managed = self.0.managed_box(name)?;
        self.collect_messages(&managed);
        let missing = || OperationError::NoFile(name.clone(), file.into());
        let opened = managed.outputs.open(file).ok_or_else(missing)?;
        opened.map_err(|error| OperationError::system("read a file of the box", error))
    }

    /// Captures the packets that pass a port, without delaying them. Returns the reader's end of a socket.
    pub(crate) fn capture(
        &self,
        point: CapturePoint,
        snap: Option<u32>,
        count: Option<u64>,
    ) -> Result<OwnedFd, OperationError> {
        let (stream, reader) =
            CaptureStream::new(self.0.capture_lost.clone(), self.0.captures.clone(), MAX_CAPTURES)?;
        // The queue is new, so it has room for the file header.
        let capture = switch::Capture::new(Box::new(stream), snap, count.unwrap_or(u64::MAX));
        self.0.switches.ask(move |network| network.capture(&point, capture))??;
        Ok(reader)
    }
}
