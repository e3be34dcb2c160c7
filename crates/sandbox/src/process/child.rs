//! A box in a process.

use crate::area::Area;
use crate::error::{CreateError, SystemError};
use crate::image::AREA_ADDRESS;
use crate::memory::PAGE;
use crate::process::filter;
use crate::process::program::Program;
use crate::process::spawn::Order;
use crate::sandbox::{Bell, Carrier, End, Usage};
use crate::settings::Settings;
use crate::snapshot::{Snapshot, SnapshotError};
use boundary::leave::CRASHED_STATUS;
use boundary::{Mapped, MemoryKind, MemoryRegion, Platform, StatusPage, control};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of private memory that are not heap: stack and what the kernel adds.
const STACK_SIZE: u64 = 128 << 10;

/// A box in a process.
pub(crate) struct Child {
    program: Arc<Program>,
    area: Arc<Area>,
    bell: Option<Arc<Bell>>,
    life: Mutex<Life>,
}

enum Life {
    /// Not started; the area's file is to be passed on.
    Made(OwnedFd),
    Running {
        pid: libc::pid_t,
        process: OwnedFd,
    },
    Ended(End),
}

impl std::fmt::Debug for Child {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Child").finish_non_exhaustive()
    }
}

impl Child {
    pub(crate) fn new(
        program: &Arc<Program>,
        area: &Arc<Area>,
        file: OwnedFd,
        settings: &Settings,
    ) -> Result<Self, CreateError> {
        let data = &program.image.data;
        let heap = data.end();
        let data_size = heap - data.address;
        let heap_size =
            (settings.memory as u64).saturating_sub(STACK_SIZE + data_size).next_multiple_of(PAGE as u64);
        let regions = [
            MemoryRegion { kind: MemoryKind::Data, address: data.address, size: data_size },
            MemoryRegion { kind: MemoryKind::Heap, address: heap, size: heap_size },
            MemoryRegion { kind: MemoryKind::Area, address: AREA_ADDRESS, size: area.layout.size as u64 },
        ];
        area.write_boot_info(settings, Platform::Process, &regions)?;
        filter::write(&program.filter, &area.memory())?;
        Ok(Self {
            program: program.clone(),
            area: area.clone(),
            bell: settings.bell.clone(),
            life: Mutex::new(Life::Made(file)),
        })
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&self, signal: i32) {
        if let Life::Running { process, .. } = &*self.life() {
            send(process, signal);
        }
    }
}

/// Sends a signal to a process by its descriptor, which can't mean another process.
fn send(process: &OwnedFd, signal: i32) {
    // SAFETY: the descriptor is open; no information is passed along.
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

/// The status of a process that has ended: its exit status, or minus the signal that ended it.
fn wait(process: &OwnedFd, options: i32) -> Option<i32> {
    // SAFETY: an all-zero siginfo is valid, and is written only by this call.
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
        // Somebody else has waited for it: it is gone, and nobody knows how.
        _ => Some(0),
    }
}

impl Carrier for Child {
    fn ring(&self) {
        let Ok(status) = self.area.status() else { return };
        status.ring();
        let word = self.area.memory().pointer(control::STATUS + StatusPage::<Mapped>::doorbell_offset(), 4);
        if let Some(word) = word {
            // SAFETY: the word lies in the area, which is mapped.
            unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1, 0, 0, 0) };
        }
    }

    fn start(&self) -> Result<(), CreateError> {
        let mut life = self.life();
        let Life::Made(file) = &*life else { return Ok(()) };
        let copy = |cause| SystemError { action: "pass a descriptor on", cause };
        let order = Order {
            image: self.program.file.try_clone().map_err(copy)?,
            area: file.try_clone().map_err(copy)?,
            bell: match &self.bell {
                Some(bell) => Some(bell.as_fd().try_clone_to_owned().map_err(copy)?),
                None => None,
            },
        };
        let (pid, process) = self.program.spawner.spawn(order)?;
        *life = Life::Running { pid, process };
        Ok(())
    }

    fn suspend(&self) {
        self.signal(libc::SIGSTOP);
    }

    fn resume(&self) {
        self.signal(libc::SIGCONT);
    }

    fn kill(&self) {
        let mut life = self.life();
        if let Life::Running { process, .. } = &*life {
            send(process, libc::SIGKILL);
            wait(process, 0);
        }
        if !matches!(*life, Life::Ended(_)) {
            *life = Life::Ended(End::Killed);
        }
    }

    fn end(&self) -> Option<End> {
        let mut life = self.life();
        if let Life::Running { process, .. } = &*life {
            let end = match wait(process, libc::WNOHANG)? {
                0 => End::Stopped,
                CRASHED_STATUS => End::crashed(&self.area, 0),
                status => End::Vanished { status },
            };
            *life = Life::Ended(end);
        }
        match &*life {
            Life::Ended(end) => Some(end.clone()),
            _ => None,
        }
    }

    fn snapshot(&self) -> Result<Snapshot, SnapshotError> {
        Err(SnapshotError::Process)
    }

    fn end_descriptor(&self) -> Option<OwnedFd> {
        match &*self.life() {
            Life::Running { process, .. } => process.try_clone().ok(),
            _ => None,
        }
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
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: both calls write to live variables; a process that has ended has no clock.
        unsafe {
            if libc::clock_getcpuclockid(pid, &mut clock) == 0 {
                libc::clock_gettime(clock, &mut time);
            }
        }
        let time = Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32);
        Usage { time, ..Usage::default() }
    }
}
