//! Puts the language, the router, every element and the engine into a library that has no standard library: a second
//! panic handler would be an error, so checking this proves that none of them brings one in.
#![no_std]

extern crate alloc;

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};

use boundary::{BootInfo, BoxRegion, DoorbellCount, Mapped, Platform};
use core::ptr::NonNull;
use element::{Descriptor, Environment};
use engine::Engine;
use packet::Timestamp;
use router::{Options, Registry, Router};

/// Gives out no memory: nothing here is run.
struct Nothing;

// SAFETY: null means that there is no memory, which is always a permitted answer; nothing is ever freed.
unsafe impl GlobalAlloc for Nothing {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Nothing = Nothing;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

struct Void;

impl Environment for Void {
    fn now(&self) -> Timestamp {
        Timestamp::ZERO
    }
    fn steady(&self) -> Timestamp {
        Timestamp::ZERO
    }
    fn seed(&self) -> u64 {
        0
    }
    fn console(&self, _: &str) {}
    fn wait(&self, _: &[(Descriptor, bool, bool)], _: Option<Timestamp>) -> Vec<Descriptor> {
        Vec::new()
    }
}

/// A box that is asked nothing.
struct Nowhere;

impl Platform for Nowhere {
    fn cycles(&self) -> u64 {
        0
    }
    fn prepare_idle(&self) -> DoorbellCount {
        DoorbellCount(0)
    }
    fn idle(&self, _: DoorbellCount, _: Option<u64>) {}
    fn end_turn(&self) {}
    fn ring_host(&self) {}
    fn ring_mailbox(&self) {}
}

/// What the image of a box does.
///
/// # Safety
/// `size` bytes are mapped at `region` until the program ends, and used by nothing else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn serve(region: NonNull<u8>, size: usize) -> bool {
    // SAFETY: the caller's promise is the same.
    let memory = unsafe { Mapped::new(region, size) };
    let Ok(info) = BootInfo::read(&memory) else { return false };
    // SAFETY: as above.
    let region = unsafe { BoxRegion::new(memory) };
    Engine::new(&info, region, Rc::new(Nowhere), Registry::new(elements::REGISTRY))
        .is_ok_and(|mut engine| engine.run().is_ok())
}

/// What a plain process does: compiles a configuration and runs it.
#[unsafe(no_mangle)]
pub extern "C" fn run() -> bool {
    let registry = Registry::new(elements::REGISTRY);
    let is_class = |name: &str| registry.contains(name);
    let compiled = click_lang::compile("Idle -> Discard;", &click_lang::Options::new("box", &is_class));
    match Router::new(compiled.graph, registry, Rc::new(Void), Options::default()) {
        Ok(mut router) => router.run(None) == router::RunEnd::Idle,
        Err(_) => false,
    }
}
