//! Leaving: for a while, or for ever.

use crate::process;
use boundary::{
    BootInfo, BoxState, CrashPage, Mapped, MemoryKind, MemoryRegion, Rest, StatusPage, control, leave,
};
use core::arch::asm;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// What carries the box.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Platform {
    Machine,
    Process,
}

/// Address of the shared area; the fault entries read it too.
pub(crate) static AREA: AtomicUsize = AtomicUsize::new(0);
static IN_PROCESS: AtomicBool = AtomicBool::new(false);
/// Rate of the time stamp counter, per second.
static TSC_HZ: AtomicU64 = AtomicU64::new(1);

pub(crate) fn set_platform(platform: Platform, area: usize) {
    AREA.store(area, Relaxed);
    IN_PROCESS.store(platform == Platform::Process, Relaxed);
}

pub(crate) fn set_tsc_hz(rate: u64) {
    TSC_HZ.store(rate.max(1), Relaxed);
}

fn platform() -> Platform {
    if IN_PROCESS.load(Relaxed) { Platform::Process } else { Platform::Machine }
}

/// A part of the control area, if there is one yet.
pub(crate) fn part(offset: usize, size: usize) -> Option<Mapped> {
    let base = NonNull::new(AREA.load(Relaxed) as *mut u8)?;
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

/// The first step of a rest: take this, set the sleep flags, look for work once more, then [`idle`].
pub fn rest() -> Rest {
    Rest(status().map_or(0, |status| status.doorbell()))
}

/// Leaves until the host has work, or the time stamp counter reaches `alarm`. Returns at once when the
/// doorbell rang since `rest`.
pub fn idle(rest: Rest, alarm: Option<u64>) {
    let Some(page) = part(control::STATUS, control::PAGE_SIZE) else { return };
    match platform() {
        Platform::Process => {
            let left = alarm.map(|alarm| nanoseconds(alarm.saturating_sub(cycles())));
            if left != Some(0) {
                process::sleep(&page, rest.0, left);
            }
        }
        Platform::Machine => {
            StatusPage(page).set_alarm(alarm.map_or(0, |alarm| alarm.max(1)));
            out(leave::LEAVE_PORT, leave::IDLE);
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
    match platform() {
        Platform::Process => process::give_way(),
        Platform::Machine => out(leave::LEAVE_PORT, leave::TURN_OVER),
    }
}

/// Lets others of the processor run; whether that is possible without leaving.
pub fn linger() -> bool {
    let in_process = platform() == Platform::Process;
    if in_process {
        process::give_way();
    }
    in_process
}

/// Rings for the host, which sleeps beside what the box has published.
pub fn ring_host() {
    match platform() {
        Platform::Process => process::ring(),
        Platform::Machine => out(leave::LEAVE_PORT, leave::RING),
    }
}

/// Ends the box, as the host wished.
pub fn stop() -> ! {
    if let Some(status) = status() {
        status.set_state(BoxState::Stopped);
    }
    loop {
        match platform() {
            Platform::Process => process::exit(0),
            Platform::Machine => out(leave::LEAVE_PORT, leave::STOPPED),
        }
    }
}

/// Ends the box; the crash page says why.
pub(crate) fn crash() -> ! {
    loop {
        match platform() {
            Platform::Process => process::exit(leave::CRASHED_STATUS),
            Platform::Machine => out(leave::CRASH_PORT, 0),
        }
    }
}

fn out(port: u16, value: u8) {
    // SAFETY: the host allows these two ports; it may change shared memory meanwhile, which is why this
    // clobbers memory (no `nomem`).
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nostack, preserves_flags)) };
}
