//! Boxes as threads of this process, for tests and benchmarks only: nothing confines them.
//!
//! [`create`] needs the box's program as a function, so only a program that links the engine can use it. The daemon
//! does not link the engine, and its API has no name for such boxes.
//!
//! A thread box can do whatever this process can. It suspends and ends only where it calls `pause_point` or checks the
//! stop flag, between two rounds. A box that never finishes a round cannot be suspended; if it is killed, its thread
//! and memory stay until the process ends. A panic is caught and reported; a fault ends the process.

use crate::cpu;
use crate::error::{CreateError, SystemError};
use crate::event_fd::EventFd;
use crate::lifecycle::{Backend, ExitStatus, Usage};
use crate::lock::lock;
use crate::mailbox::Mailbox;
use crate::memory::{Arena, ArenaKind, PAGE};
use crate::ring_signal::RingSignal;
use crate::sandbox::Sandbox;
use crate::settings::Settings;
use crate::shared_region::{Backing, RegionPlan, SharedRegion};
use crate::snapshot::{Snapshot, SnapshotError};
use boundary::{
    BootInfo, BoxRegion, CrashCause, DoorbellCount, Mapped, MemoryKind, MemoryRegion, Platform, PlatformKind,
    StatusPage,
};
use std::any::Any;
use std::os::unix::thread::JoinHandleExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Reserved address space for the regions of all thread boxes. They are never unmapped, so that pointers that a program
/// keeps into its region stay valid.
const SPACE: usize = 16 << 30;

/// How long a box in a thread has to finish its round.
const ROUND_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes of stack.
const STACK_SIZE: usize = 2 << 20;

/// The program of a box in a thread. It runs until the host asks it to stop.
pub type Entry = fn(Start);

/// The inputs of a program in a thread.
#[derive(Debug)]
pub struct Start {
    /// The boot info from the host.
    pub info: BootInfo,
    /// The region that it shares with the host.
    pub region: BoxRegion,
    /// Its platform.
    pub platform: ThreadPlatform,
}

/// The platform of a box in a thread.
#[derive(Clone, Debug)]
pub struct ThreadPlatform(Arc<ThreadShared>);

#[derive(Debug)]
struct ThreadShared {
    region: Arc<SharedRegion>,
    status: StatusPage<Mapped>,
    wake_event: Option<Arc<EventFd>>,
    exit_event: Option<Arc<EventFd>>,
    state: Mutex<ThreadState>,
    changed: Condvar,
    mailbox_ring: RingSignal,
}

#[derive(Debug, Default)]
struct ThreadState {
    /// It must suspend.
    held: bool,
    /// It is suspended.
    stands: bool,
    /// It must end, and its end counts as killed.
    killed: bool,
    end: Option<ExitStatus>,
    /// Processor time, set when it has ended.
    time: Duration,
}

/// A box in a thread.
struct ThreadBackend {
    shared: Arc<ThreadShared>,
    entry: Entry,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for ThreadBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ThreadBackend").finish_non_exhaustive()
    }
}

/// Creates a box that runs `entry` in a thread of this process. [`Sandbox::start`] starts the thread. The box has its
/// own packet buffers, even if the settings name a pool.
pub fn create(entry: Entry, settings: &Settings) -> Result<Sandbox, CreateError> {
    settings.check()?;
    let region = shared_region(RegionPlan::new(settings, false)?)?;
    let (mailbox, ports) = (Mailbox::new(region.clone())?, region.ports()?);
    let backend = ThreadBackend::new(entry, &region, settings)?;
    Ok(Sandbox::new(Arc::new(backend), region, mailbox, ports))
}

/// A zeroed shared region for a thread box.
fn shared_region(plan: RegionPlan) -> Result<Arc<SharedRegion>, CreateError> {
    static ARENA: OnceLock<Option<Arc<Arena>>> = OnceLock::new();
    let arena = ARENA.get_or_init(|| Arena::new(SPACE, ArenaKind::Dense).ok());
    let part = arena.as_ref().ok_or(CreateError::NoMemory)?.take(plan.layout.size, PAGE)?;
    Ok(SharedRegion::new(part.mapped(), plan, Backing::Part(part)))
}

impl ThreadBackend {
    fn new(entry: Entry, region: &Arc<SharedRegion>, settings: &Settings) -> Result<Self, CreateError> {
        let memory = region.memory();
        let address =
            memory.pointer(0, region.plan.layout.size).ok_or(CreateError::NoMemory)?.as_ptr() as u64;
        let size = region.plan.layout.size as u64;
        let whole = MemoryRegion { kind: MemoryKind::SharedRegion, address, size };
        region.write_boot_info(settings, PlatformKind::Thread, &[whole])?;
        let shared = ThreadShared {
            region: region.clone(),
            status: region.status()?,
            wake_event: settings.wake_event.clone(),
            exit_event: settings.exit_event.clone(),
            state: Mutex::default(),
            changed: Condvar::new(),
            mailbox_ring: RingSignal::default(),
        };
        Ok(Self { shared: Arc::new(shared), entry, thread: Mutex::new(None) })
    }
}

impl ThreadShared {
    fn state(&self) -> MutexGuard<'_, ThreadState> {
        lock(&self.state)
    }

    /// Waits until `done`, at most for `timeout`.
    fn wait_for(&self, timeout: Duration, done: impl Fn(&ThreadState) -> bool) {
        let waiting = |state: &mut ThreadState| !done(state);
        let waited = self.changed.wait_timeout_while(self.state(), timeout, waiting);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Runs the program to its end.
    fn run(self: &Arc<Self>, entry: Entry) {
        let memory = self.region.memory();
        // Leased buffers may outlive the program, in a variable of the process, so the region is never reused.
        std::mem::forget(self.region.clone());
        // SAFETY: the region is mapped until the process ends, since neither its arena nor its part of that is ever
        // given back; this runs once for it. The host's ends touch a buffer only while a ring holds it.
        let region = unsafe { BoxRegion::new(memory) };
        let start = BootInfo::read(&memory).map(|info| Start {
            info,
            region,
            platform: ThreadPlatform(self.clone()),
        });
        let end = match start.map(|start| catch_unwind(AssertUnwindSafe(|| entry(start)))) {
            Ok(Ok(())) => ExitStatus::Stopped,
            Ok(Err(panic)) => self.crashed(panic.as_ref()),
            Err(_) => ExitStatus::Vanished { status: 0 },
        };
        let mut state = self.state();
        state.time = cpu::thread_time();
        let end = if state.killed { ExitStatus::Killed } else { end };
        state.end.get_or_insert(end);
        drop(state);
        self.changed.notify_all();
        self.mailbox_ring.notify();
        self.wake_event.iter().chain(&self.exit_event).for_each(|event| event.ring());
    }

    fn crashed(&self, panic: &(dyn Any + Send)) -> ExitStatus {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text =
            text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message");
        if let Ok(page) = self.region.crash()
            && page.begin(CrashCause::Panic)
        {
            page.set_message(text.as_bytes());
        }
        ExitStatus::crashed(&self.region, 0)
    }
}

impl Platform for ThreadPlatform {
    fn cycles(&self) -> u64 {
        cpu::cycles()
    }

    fn prepare_idle(&self) -> DoorbellCount {
        DoorbellCount(self.0.status.doorbell())
    }

    fn idle(&self, seen: DoorbellCount, alarm: Option<u64>) {
        let mut state = self.0.state();
        while self.0.status.doorbell() == seen.0 {
            let left = alarm.map(|alarm| cpu::time(alarm.saturating_sub(cpu::cycles())));
            state = match left {
                None => self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return,
                Some(left) => {
                    self.0.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn end_turn(&self) {
        std::thread::yield_now();
    }

    fn ring_host(&self) {
        self.0.wake_event.iter().for_each(|event| event.ring());
    }

    fn ring_mailbox(&self) {
        self.0.mailbox_ring.notify();
    }

    fn pause_point(&self) {
        let mut state = self.0.state();
        if state.held {
            state.stands = true;
            self.0.changed.notify_all();
            while state.held {
                state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.stands = false;
        }
    }
}

impl Backend for ThreadBackend {
    fn ring(&self) {
        self.shared.status.ring();
        // A thread about to sleep has either seen the doorbell's count, or holds this lock until it sleeps.
        drop(self.shared.state());
        self.shared.changed.notify_all();
    }

    fn start(&self) -> Result<(), CreateError> {
        let mut thread = lock(&self.thread);
        if thread.is_none() {
            let (shared, entry) = (self.shared.clone(), self.entry);
            let builder = std::thread::Builder::new().name("box".into()).stack_size(STACK_SIZE);
            let failed = |cause| SystemError { action: "start a thread for a box", cause };
            *thread = Some(builder.spawn(move || shared.run(entry)).map_err(failed)?);
        }
        Ok(())
    }

    fn suspend(&self) {
        self.shared.state().held = true;
        self.ring();
        self.shared.wait_for(ROUND_TIMEOUT, |state| state.stands || state.end.is_some());
    }

    fn resume(&self) {
        self.shared.state().held = false;
        self.ring();
    }

    fn kill(&self) {
        let started = lock(&self.thread).take();
        self.shared.state().killed = true;
        self.shared.status.set_stop(true);
        self.resume();
        let Some(thread) = started else { return };
        self.shared.wait_for(ROUND_TIMEOUT, |state| state.end.is_some());
        let mut state = self.shared.state();
        if state.end.replace(ExitStatus::Killed).is_some() {
            drop(state);
            // The thread has reported its end. An error is a panic that was already reported.
            let _ = thread.join();
        }
    }

    fn end(&self) -> Option<ExitStatus> {
        self.shared.state().end.clone()
    }

    fn wait_for_end(&self, timeout: Duration) {
        self.shared.wait_for(timeout, |state| state.end.is_some());
    }

    fn clear_mailbox_ring(&self) {
        self.shared.mailbox_ring.clear();
    }

    fn wait_for_mailbox_ring(&self, timeout: Duration) {
        self.shared.mailbox_ring.wait(timeout);
    }

    fn usage(&self) -> Usage {
        let thread = lock(&self.thread);
        let state = self.shared.state();
        let time = match &*thread {
            Some(thread) if state.end.is_none() => thread_time(thread),
            _ => state.time,
        };
        Usage { time, ..Usage::default() }
    }

    fn snapshot(&self) -> Result<Snapshot, SnapshotError> {
        Err(SnapshotError::Thread)
    }

    /// A thread uses this process's memory and has none of its own.
    fn private_memory(&self) -> std::io::Result<usize> {
        Ok(0)
    }
}

/// Processor time that a thread has used, before it is joined.
fn thread_time(thread: &JoinHandle<()>) -> Duration {
    let mut clock = 0;
    // SAFETY: the thread's handle is held, so its id is valid; the clock is written to a live variable.
    match unsafe { libc::pthread_getcpuclockid(thread.as_pthread_t(), &mut clock) } {
        0 => cpu::clock_time(clock),
        _ => Duration::ZERO,
    }
}
