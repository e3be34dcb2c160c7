//! A box in a process.

use crate::cpu;
use crate::error::{CreateError, SystemError};
use crate::event_fd::EventFd;
use crate::image::REGION_ADDRESS;
use crate::lifecycle::{Backend, ExitStatus, Usage};
use crate::lock::lock;
use crate::poll;
use crate::pool::Membership;
use crate::process::filter;
use crate::process::program::Program;
use crate::process::spawn::SpawnRequest;
use crate::settings::Settings;
use crate::shared_region::SharedRegion;
use crate::snapshot::{PrivateState, Snapshot, SnapshotError};
use boundary::exit::CRASHED_STATUS;
use boundary::{Mapped, MemoryRegion, PlatformKind, StatusPage, control};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// A box in a process.
pub(crate) struct ProcessBackend {
    program: Arc<Program>,
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
    Running {
        pid: libc::pid_t,
        process: Arc<OwnedFd>,
    },
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
        region: &Arc<SharedRegion>,
        file: OwnedFd,
        settings: &Settings,
    ) -> Result<Self, CreateError> {
        let own = program.image.private_regions(settings.memory);
        let regions: Vec<_> = own.into_iter().chain(region.plan.regions(REGION_ADDRESS)).collect();
        region.write_boot_info(settings, PlatformKind::Process, &regions)?;
        filter::write(&program.filter, &region.memory())?;
        Ok(Self {
            program: program.clone(),
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
        region: &Arc<SharedRegion>,
        file: OwnedFd,
        settings: &Settings,
        snapshot: &Snapshot,
    ) -> Result<Self, CreateError> {
        let PrivateState::Process { file: memory, .. } = &snapshot.private else {
            return Err(CreateError::SnapshotTarget);
        };
        region.restore(&snapshot.shared);
        let mut child = Self::new(program, region, file, settings)?;
        region.status()?.set_generation(snapshot.shared.generation.wrapping_add(1));
        child.snapshot = Some(copied(memory)?);
        Ok(child)
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

/// Sends a signal to a process by its pidfd, so that it cannot reach another process.
fn send(process: &OwnedFd, signal: i32) {
    // SAFETY: the descriptor is open; no siginfo is passed.
    unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            process.as_raw_fd(),
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
}

/// Waits until a process has stopped or ended.
fn stopped(process: &OwnedFd) {
    // SAFETY: an all-zero siginfo is valid, and only this call writes it. The status remains available to later waits.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT;
        libc::waitid(libc::P_PIDFD, process.as_raw_fd() as libc::id_t, &mut info, options);
    }
}

/// The status of a process that has ended: its exit status, or the negated number of the signal that ended it.
fn wait(process: &OwnedFd, options: i32) -> Option<i32> {
    // SAFETY: an all-zero siginfo is valid, and only this call writes it.
    let (result, info) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let result = libc::waitid(
            libc::P_PIDFD,
            process.as_raw_fd() as libc::id_t,
            &mut info,
            libc::WEXITED | options,
        );
        (result, info)
    };
    // SAFETY: waitid has filled these fields in, or they are zero.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    match (result, info.si_code) {
        (0, _) if pid == 0 => None,
        (0, libc::CLD_EXITED) => Some(status),
        (0, _) => Some(-status),
        // Another thread has reaped it: it is gone, and its status is unknown.
        _ => Some(0),
    }
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
        let order = SpawnRequest {
            image: copied(&self.program.file)?,
            region: copied(file)?,
            pool: self.region.membership().and_then(Membership::file).map(copied).transpose()?,
            snapshot: self.snapshot.as_ref().map(copied).transpose()?,
            wake_event: self.settings.wake_event.as_ref().map(copied).transpose()?,
            mailbox_event: copied(&self.mailbox_event)?,
        };
        let (pid, process) = self.program.spawner.spawn(order)?;
        *life = Life::Running { pid, process: Arc::new(process) };
        // A caller that waits already then also waits for the end of the process.
        self.mailbox_event.ring();
        Ok(())
    }

    fn pin(&self, processors: &[usize]) {
        // While it counts as running it has not been reaped, so its id belongs to no other process.
        if let Life::Running { pid, .. } = &*self.life() {
            cpu::pin(*pid, processors);
        }
    }

    fn collapse_pages(&self) {
        self.region.collapse();
    }

    fn suspend(&self) {
        if let Life::Running { process, .. } = &*self.life() {
            send(process, libc::SIGSTOP);
            stopped(process);
        }
    }

    fn resume(&self) {
        if let Life::Running { process, .. } = &*self.life() {
            send(process, libc::SIGCONT);
        }
    }

    fn kill(&self) {
        let mut life = self.life();
        if let Life::Running { process, .. } = &*life {
            send(process, libc::SIGKILL);
            wait(process, 0);
        }
        if !matches!(*life, Life::Ended(_)) {
            *life = Life::Ended(ExitStatus::Killed);
        }
        // A caller may wait for a box that was never started, whose end no process announces.
        self.mailbox_event.ring();
    }

    fn end(&self) -> Option<ExitStatus> {
        let mut life = self.life();
        if let Life::Running { process, .. } = &*life {
            let end = match wait(process, libc::WNOHANG)? {
                0 => ExitStatus::Stopped,
                CRASHED_STATUS => ExitStatus::crashed(&self.region, 0),
                status => ExitStatus::Vanished { status },
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
            Life::Running { process, .. } => process.clone(),
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
            Life::Running { process, .. } => Some(process.clone()),
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
            Life::Running { process, .. } => process.as_fd().try_clone_to_owned().ok(),
            _ => None,
        }
    }

    fn private_memory(&self) -> std::io::Result<usize> {
        let Some(pid) = self.process_id() else { return Ok(0) };
        // The shared region and the image are file mappings; anonymous memory is the box's own.
        Ok(kilobytes(pid, "smaps_rollup", "Anonymous:")? + kilobytes(pid, "status", "VmPTE:")?)
    }

    fn process_id(&self) -> Option<i32> {
        match *self.life() {
            Life::Running { pid, .. } => Some(pid),
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
