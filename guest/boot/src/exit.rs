//! Exits: sleep, end of a turn, stop, crash.

use crate::process;
use boundary::{
    BootInfo, BoxState, CrashPage, DoorbellCount, Mapped, MemoryKind, MemoryRegion, StatusPage, control, exit,
};
use core::arch::asm;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// How the box leaves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitMethod {
    /// A virtual machine writes to an I/O port.
    PortWrite,
    /// A process makes a system call.
    SystemCall,
}

/// Address of the shared region; the fault entries read it too.
pub(crate) static REGION: AtomicUsize = AtomicUsize::new(0);
static IN_PROCESS: AtomicBool = AtomicBool::new(false);
/// Rate of the time stamp counter, per second.
static TSC_HZ: AtomicU64 = AtomicU64::new(1);

pub(crate) fn set_exit_method(platform: ExitMethod, region: usize) {
    REGION.store(region, Relaxed);
    IN_PROCESS.store(platform == ExitMethod::SystemCall, Relaxed);
}

pub(crate) fn set_tsc_hz(rate: u64) {
    TSC_HZ.store(rate.max(1), Relaxed);
}

fn exit_method() -> ExitMethod {
    if IN_PROCESS.load(Relaxed) { ExitMethod::SystemCall } else { ExitMethod::PortWrite }
}

/// A part of the control area, if there is one yet.
pub(crate) fn part(offset: usize, size: usize) -> Option<Mapped> {
    let base = NonNull::new(REGION.load(Relaxed) as *mut u8)?;
    // SAFETY: the platform maps at least the control area there, for ever; no reference to it is ever made.
    unsafe { Mapped::new(base, control::SIZE) }.part(offset, size)
}

/// A region of the box's memory. It takes no memory, and may be asked after a fault.
pub fn region(kind: MemoryKind) -> Option<MemoryRegion> {
    BootInfo::find_region(&part(0, control::SIZE)?, kind)
}

fn status() -> Option<StatusPage<Mapped>> {
    part(control::STATUS, control::PAGE_SIZE).map(StatusPage)
}

pub(crate) fn crash_page() -> Option<CrashPage<Mapped>> {
    part(control::CRASH, control::PAGE_SIZE).map(CrashPage)
}

/// The first step of going to sleep: take this, set the sleep flags, look for work once more, then [`idle`].
pub fn prepare_idle() -> DoorbellCount {
    DoorbellCount(status().map_or(0, |status| status.doorbell()))
}

/// Leaves until the host has work, or the time stamp counter reaches `alarm`. Returns at once when the
/// doorbell rang since `seen`.
pub fn idle(seen: DoorbellCount, alarm: Option<u64>) {
    let Some(page) = part(control::STATUS, control::PAGE_SIZE) else { return };
    match exit_method() {
        ExitMethod::SystemCall => {
            let left = alarm.map(|alarm| nanoseconds(alarm.saturating_sub(cycles())));
            if left != Some(0) {
                process::sleep(&page, seen.0, left);
            }
        }
        ExitMethod::PortWrite => {
            StatusPage(page).set_alarm(alarm.map_or(0, |alarm| alarm.max(1)));
            out(exit::EXIT_PORT, exit::IDLE);
        }
    }
}

fn nanoseconds(cycles: u64) -> u64 {
    let rate = u128::from(TSC_HZ.load(Relaxed));
    u64::try_from(u128::from(cycles) * 1_000_000_000 / rate).unwrap_or(u64::MAX)
}

/// The time stamp counter.
pub fn cycles() -> u64 {
    // SAFETY: every x86-64 processor has a time stamp counter, and nothing forbids reading it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Gives the turn back with work left.
pub fn end_turn() {
    match exit_method() {
        ExitMethod::SystemCall => process::yield_processor(),
        ExitMethod::PortWrite => out(exit::EXIT_PORT, exit::TURN_OVER),
    }
}

/// Lets others of the processor run; whether that is possible without leaving.
pub fn yield_before_idle() -> bool {
    let in_process = exit_method() == ExitMethod::SystemCall;
    if in_process {
        process::yield_processor();
    }
    in_process
}

/// Wakes the host of the ports, which sleeps although the box has published packets or room.
pub fn ring_host() {
    match exit_method() {
        ExitMethod::SystemCall => process::ring_host(),
        ExitMethod::PortWrite => out(exit::EXIT_PORT, exit::RING),
    }
}

/// Wakes the caller at the mailbox, which sleeps although there is a reply, or room for its request.
pub fn ring_mailbox() {
    match exit_method() {
        ExitMethod::SystemCall => process::ring_mailbox(),
        ExitMethod::PortWrite => out(exit::EXIT_PORT, exit::RING_MAILBOX),
    }
}

/// Ends the box, as the host wished.
pub fn stop() -> ! {
    if let Some(status) = status() {
        status.set_state(BoxState::Stopped);
    }
    loop {
        match exit_method() {
            ExitMethod::SystemCall => process::exit(0),
            ExitMethod::PortWrite => out(exit::EXIT_PORT, exit::STOPPED),
        }
    }
}

/// Ends the box; the crash page says why.
pub(crate) fn crash() -> ! {
    loop {
        match exit_method() {
            ExitMethod::SystemCall => process::exit(exit::CRASHED_STATUS),
            ExitMethod::PortWrite => out(exit::CRASH_PORT, 0),
        }
    }
}

fn out(port: u16, value: u8) {
    // SAFETY: the host allows these two ports; it may change shared memory meanwhile, which is why this
    // clobbers memory (no `nomem`).
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nostack, preserves_flags)) };
}
