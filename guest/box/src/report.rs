//! What the box adds to a crash report: the element that ran, and the packet that it was handed.

use boundary::{CrashPage, Mapped};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use engine::Engine;

/// The engine, as long as the box lives.
static ENGINE: AtomicPtr<Engine> = AtomicPtr::new(null_mut());

/// Adds what `engine` does to crash reports from now on.
pub(crate) fn watch(engine: &mut Engine) {
    ENGINE.store(engine, Relaxed);
    boot::on_crash(add);
}

fn add(page: &CrashPage<Mapped>) {
    let engine = ENGINE.load(Relaxed);
    // SAFETY: null, or the engine that `watch` was given, which is never dropped. What ran has ended for ever, so
    // nobody else uses it; it may be in the middle of a change, which `scene` only reads around.
    let scene = unsafe { engine.as_ref() }.and_then(Engine::scene);
    if let Some(scene) = scene {
        page.set_element(scene.name());
        // SAFETY: nothing else runs any more, and the heap never gives memory back to the host.
        if let Some(packet) = unsafe { scene.packet.bytes() } {
            page.set_packet(packet);
        }
    }
}
