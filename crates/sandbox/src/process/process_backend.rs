//! A box in a process.

use crate::cpu;
use crate::error::{CreateError, SystemError};
use crate::event_fd::EventFd;
use crate::image::REGION_ADDRESS;
use crate::lifecycle::{Backend, ExitStatus, Usage};
use crate::loaded_image::LoadedImage;
use crate::lock::lock;
use crate::poll;
use crate::process::filter;
use crate::process::program::Program;
use crate::process::spawner::{BoxProcess, Reaped, SpawnRequest};
use crate::settings::Settings;
use crate::shared_region::SharedRegion;
use crate::snapshot::{PrivateState, Snapshot, SnapshotError};
use boundary::exit::CRASHED_STATUS;
use boundary::{Mapped, MemoryRegion, PlatformKind, StatusPage, control};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Bytes of mappings of a process besides what defines it: the kernel's stack and its pages, a stack for signals, and the
/// first mapping of the control area.
const ADDRESS_SPACE_MARGIN: usize = 1 << 20;

/// A box in a process.
pub(crate) struct ProcessBackend {
    program: Arc<Program>,
    image: Arc<LoadedImage>,
    pub(super) region: Arc<SharedRegion>,
    pub(super) settings: Settings,
    /// The image's own memory regions.
    pub(super) regions: Vec<MemoryRegion>,
    /// The memory of the box that this one is a copy of.
    snapshot: Option<OwnedFd>,
    /// Signalled by the box for the caller at its mailbox.
    mailbox_event: EventFd,
    life: Mutex<Life>,
}

enum Life {
    /// Not started. Holds the shared region's file, which is passed to the process.
    Made(OwnedFd),
    Running(Arc<BoxProcess>),
    Ended(ExitStatus),
}

impl std::fmt::Debug for ProcessBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessBackend").finish_non_exhaustive()
    }
}

impl ProcessBackend {
    pub(crate) fn new(
        program: &Arc<Program>,
        image: &Arc<LoadedImage>,
        region: &Arc<SharedRegion>,
        file: OwnedFd,
        settings: &Settings,
    ) -> Result<Self, CreateError> {
        let own = image.parsed.private_regions(settings.memory);
        let regions: Vec<_> = own.into_iter().chain(region.plan.regions(REGION_ADDRESS)).collect();
        region.write_boot_info(settings, PlatformKind::Process, &regions)?;
        filter::write(&program.filter, &region.memory())?;
        Ok(Self {
            program: program.clone(),
            image: image.clone(),
            region: region.clone(),
            settings: settings.clone(),
            regions,
            snapshot: None,
            mailbox_event: EventFd::new()?,
            life: Mutex::new(Life::Made(file)),
        })
    }

    /// A box that continues from a snapshot of a process.
    pub(crate) fn restored(
        program: &Arc<Program>,
        image: &Arc<LoadedImage>,
        region: &Arc<SharedRegion>,
        file: OwnedFd,
        settings: &Settings,
        snapshot: &Snapshot,
    ) -> Result<Self, CreateError> {
        let PrivateState::Process { file: memory, .. } = &snapshot.private else {
            return Err(CreateError::SnapshotTarget);
        };
        region.restore(&snapshot.shared);
        let mut child = Self::new(program, image, region, file, settings)?;
        region.status()?.set_generation(snapshot.shared.generation.wrapping_add(1));
        child.snapshot = Some(copied(memory)?);
        Ok(child)
    }

    /// Maximum bytes of the process's mappings: the image, its private memory, the shared region with a pool, and a margin.
    fn address_space(&self) -> u64 {
        let image = self.image.parsed.shared.iter().map(|segment| segment.end() - segment.address);
        let own = self.image.parsed.private_regions(self.settings.memory).map(|region| region.size);
        let shared = self.region.plan.layout.extent + ADDRESS_SPACE_MARGIN;
        image.chain(own).sum::<u64>() + shared as u64
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        lock(&self.life)
    }
}

/// Duplicates a descriptor, to be passed on.
fn copied(file: &impl AsFd) -> Result<OwnedFd, SystemError> {
    let failed = |cause| SystemError { action: "pass a descriptor", cause };
    file.as_fd().try_clone_to_owned().map_err(failed)
}

/// A value of a process that the kernel reports in kilobytes, in bytes.
fn kilobytes(pid: libc::pid_t, file: &str, name: &str) -> std::io::Result<usize> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/{file}"))?;
    let figure = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    let number = figure.split_ascii_whitespace().next().and_then(|number| number.parse::<usize>().ok());
    number.map(|number| number * 1024).ok_or_else(|| std::io::ErrorKind::InvalidData.into())
}

impl Backend for ProcessBackend {
    fn ring(&self) {
        let Ok(status) = self.region.status() else { return };
        status.ring();
        let word = self.region.memory().pointer(control::STATUS + StatusPage::<Mapped>::doorbell_offset(), 4);
        if let Some(word) = word {
            // SAFETY: the word lies in the shared region, which is mapped.
            unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1, 0, 0, 0) };
        }
    }

    fn start(&self) -> Result<(), CreateError> {
        let mut life = self.life();
        let Life::Made(file) = &*life else { return Ok(()) };
        let request = SpawnRequest {
            image: self.image.is_foreign.then(|| self.image.file.as_fd()),
            region: file.as_fd(),
            mailbox_event: self.mailbox_event.as_fd(),
            wake_event: self.settings.wake_event.as_ref().map(|event| event.as_fd()),
            snapshot: self.snapshot.as_ref().map(AsFd::as_fd),
            pool: self.region.membership().map(|membership| membership.file().as_fd()),
            address_space: self.address_space(),
        };
        let process = self.program.spawner.spawn(&request)?;
        *life = Life::Running(Arc::new(process));
        // A caller that waits already then also waits for the end of the process.
        self.mailbox_event.ring();
        Ok(())
    }

    fn pin(&self, processors: &[usize]) {
        // While it counts as running it has not been reaped, so its id belongs to no other process.
        if let Life::Running(process) = &*self.life() {
            cpu::pin(process.pid(), processors);
        }
    }

    fn collapse_pages(&self) {
        self.region.collapse();
    }

    fn suspend(&self) {
        // The lock is not kept: the box can be killed meanwhile.
        let process = match &*self.life() {
            Life::Running(process) => process.clone(),
            _ => return,
        };
        process.stop();
    }

    fn resume(&self) {
        if let Life::Running(process) = &*self.life() {
            process.signal(libc::SIGCONT);
        }
    }

    fn kill(&self) {
        let mut life = self.life();
        if let Life::Running(process) = &*life {
            process.signal(libc::SIGKILL);
            process.reap();
        }
        if !matches!(*life, Life::Ended(_)) {
            *life = Life::Ended(ExitStatus::Killed);
        }
        // A caller may wait for a box that was never started, whose end no process announces.
        self.mailbox_event.ring();
    }

    fn end(&self) -> Option<ExitStatus> {
        let mut life = self.life();
        if let Life::Running(process) = &*life {
            if !process.has_ended() {
                return None;
            }
            let end = match process.reap() {
                Reaped::Exited(0) => ExitStatus::Stopped,
                Reaped::Exited(CRASHED_STATUS) => ExitStatus::crashed(&self.region, 0),
                Reaped::Exited(status) => ExitStatus::Vanished { status },
                Reaped::Signalled(signal) => ExitStatus::Vanished { status: -signal },
            };
            *life = Life::Ended(end);
        }
        match &*life {
            Life::Ended(end) => Some(end.clone()),
            _ => None,
        }
    }

    fn wait_for_end(&self, timeout: Duration) {
        // The descriptor is kept open, and the lock is not: the box can be killed meanwhile.
        let process = match &*self.life() {
            Life::Running(process) => process.clone(),
            _ => return,
        };
        poll::readable(&[process.as_fd()], timeout);
    }

    fn clear_mailbox_ring(&self) {
        self.mailbox_event.rang();
    }

    fn wait_for_mailbox_ring(&self, timeout: Duration) {
        let event = self.mailbox_event.as_fd();
        // The lock is not kept, as above.
        let process = match &*self.life() {
            Life::Made(_) => None,
            Life::Running(process) => Some(process.clone()),
            Life::Ended(_) => return,
        };
        match &process {
            Some(process) => poll::readable(&[event, process.as_fd()], timeout),
            None => poll::readable(&[event], timeout),
        };
    }

    fn is_idle(&self) -> bool {
        self.region.status().is_ok_and(|status| status.is_idle())
    }

    fn watch_idle(&self, watched: bool) {
        if let Ok(status) = self.region.status() {
            status.set_idle_watched(watched);
        }
    }

    fn snapshot(&self) -> Result<Snapshot, SnapshotError> {
        self.copy(self.process_id().ok_or(SnapshotError::NotRunning)?)
    }

    fn end_descriptor(&self) -> Option<OwnedFd> {
        match &*self.life() {
            Life::Running(process) => process.as_fd().try_clone_to_owned().ok(),
            _ => None,
        }
    }

    fn private_memory(&self) -> std::io::Result<usize> {
        let Some(pid) = self.process_id() else { return Ok(0) };
        // The shared region and the image are file mappings; anonymous memory is the box's own.
        Ok(kilobytes(pid, "smaps_rollup", "Anonymous:")? + kilobytes(pid, "status", "VmPTE:")?)
    }

    fn process_id(&self) -> Option<i32> {
        match &*self.life() {
            Life::Running(process) => Some(process.pid()),
            _ => None,
        }
    }

    fn usage(&self) -> Usage {
        let Some(pid) = self.process_id() else { return Usage::default() };
        let mut clock = 0;
        // SAFETY: the kernel writes the clock to a live variable; for a process that has ended it reports an error.
        let found = unsafe { libc::clock_getcpuclockid(pid, &mut clock) };
        let time = if found == 0 { cpu::clock_time(clock) } else { Duration::ZERO };
        Usage { time, ..Usage::default() }
    }
}
