//! Leaving: for a while, or for ever.

use boundary::{BoxState, CrashPage, Mapped, StatusPage, control, leave};
use core::arch::asm;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::process;

/// What carries the box.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Platform {
    Machine,
    Process,
}

/// Address of the shared area; the fault entries read it too.
pub(crate) static AREA: AtomicUsize = AtomicUsize::new(0);
static IN_PROCESS: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn set_platform(platform: Platform, area: usize) {
    AREA.store(area, Relaxed);
    IN_PROCESS.store(usize::from(platform == Platform::Process), Relaxed);
}

fn platform() -> Platform {
    if IN_PROCESS.load(Relaxed) == 0 { Platform::Machine } else { Platform::Process }
}

/// A part of the control area, if there is one yet.
pub(crate) fn part(offset: usize, size: usize) -> Option<Mapped> {
    let base = NonNull::new(AREA.load(Relaxed) as *mut u8)?;
    // SAFETY: the platform maps at least the control area there, for ever; no reference to it is ever made.
    unsafe { Mapped::new(base, control::SIZE) }.part(offset, size)
}

fn status() -> Option<StatusPage<Mapped>> {
    part(control::STATUS, control::PAGE_SIZE).map(StatusPage)
}

pub(crate) fn crash_page() -> Option<CrashPage<Mapped>> {
    part(control::CRASH, control::PAGE_SIZE).map(CrashPage)
}

/// What the doorbell said before the box looked for work the last time.
#[derive(Clone, Copy, Debug)]
pub struct Rest(u32);

/// The first step of a rest: take this, set the sleep flags, look for work once more, then [`idle`].
pub fn rest() -> Rest {
    Rest(status().map_or(0, |status| status.doorbell()))
}

/// Leaves until the host has work. Returns at once when the doorbell rang since `rest`.
pub fn idle(rest: Rest) {
    match (platform(), part(control::STATUS, control::PAGE_SIZE)) {
        (Platform::Process, Some(status)) => process::sleep(&status, rest.0),
        _ => out(leave::LEAVE_PORT, leave::IDLE),
    }
}

/// Gives the turn back with work left.
pub fn end_turn() {
    match platform() {
        Platform::Process => process::give_way(),
        Platform::Machine => out(leave::LEAVE_PORT, leave::TURN_OVER),
    }
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
