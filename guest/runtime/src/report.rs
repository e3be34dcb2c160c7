//! What the box adds to a crash report: the element that ran, and the packets that it was handed.
//!
//! Which packet of the batch was being processed is not recorded, as that would cost time for each packet. It can't be
//! found afterwards either: registers and stack could point to an earlier packet just as easily.

use boundary::{CrashPage, Mapped, MemoryKind, MemoryRegion};
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
    // nothing else uses it; it may be in the middle of a change, which `crash_context` only reads around.
    let Some(crash_context) = unsafe { engine.as_ref() }.and_then(Engine::crash_context) else { return };
    page.set_element(crash_context.name());
    page.set_batch(crash_context.batch.count());
    // The memory that may contain packets.
    let regions = [MemoryKind::Heap, MemoryKind::SharedRegion].map(boot::region);
    let is_mapped = |address: usize, size: usize| {
        let (start, end) = (address as u64, (address as u64).checked_add(size as u64));
        let holds = |region: &MemoryRegion| {
            start >= region.address && end.is_some_and(|end| end - region.address <= region.size)
        };
        regions.iter().flatten().any(holds)
    };
    for index in 0..crash_context.batch.count() {
        // SAFETY: nothing else runs any more, and heap and shared region stay mapped.
        let packet = unsafe { crash_context.batch.packet(index, is_mapped) }.unwrap_or_default();
        if index == 0 {
            page.set_packet(packet);
        }
        if page.add_packet(packet) {
            return;
        }
    }
}
