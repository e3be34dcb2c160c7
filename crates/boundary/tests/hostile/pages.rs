//! Boot, crash and status pages, and the version note, with arbitrary bytes.

use crate::memory::{Input, InputMemory, with_mapped};
use boundary::limits::{
    MAX_CRASH_BATCH, MAX_CRASH_MESSAGE, MAX_CRASH_NAME, MAX_CRASH_PACKET, MAX_CRASH_START,
};
use boundary::{
    BootInfo, CrashPage, MAX_PUBLISHED_REASONS, MemoryKind, SharedMemory, StatusPage, VersionNote, control,
};

const KINDS: [MemoryKind; 5] =
    [MemoryKind::Data, MemoryKind::Heap, MemoryKind::Stack, MemoryKind::SharedRegion, MemoryKind::Pool];

/// A boot page with these bytes after the magic number and the protocol version, so that a fuzzer need not guess these.
pub fn boot(bytes: &[u8]) {
    with_mapped(control::PAGE_SIZE, |memory| {
        memory.write(0, b"Clickbox");
        memory.write(8, &boundary::PROTOCOL.to_le_bytes());
        memory.write(12, &bytes[..bytes.len().min(control::PAGE_SIZE - 12)]);
        for kind in KINDS {
            BootInfo::find_region(&memory, kind);
        }
        if let Ok(info) = BootInfo::read(&memory) {
            info.write(&memory).unwrap();
            assert_eq!(BootInfo::read(&memory).as_ref(), Ok(&info));
            for kind in KINDS {
                assert_eq!(BootInfo::find_region(&memory, kind), info.region(kind));
            }
        }
    });
}

/// Crash and status pages whose words change at every load.
pub fn crash(bytes: &[u8]) {
    let input = Input::new(bytes);
    let memory = InputMemory::new(control::PAGE_SIZE, &input);
    let (page, status) = (CrashPage(&memory), StatusPage(&memory));
    if let Some(report) = page.report() {
        assert!(report.element.len() <= MAX_CRASH_NAME && report.message.len() <= MAX_CRASH_MESSAGE);
        assert!(report.packet.len() <= MAX_CRASH_PACKET && report.batch.packets.len() <= MAX_CRASH_BATCH);
        assert!(report.batch.packets.iter().all(|packet| packet.start.len() <= MAX_CRASH_START));
        let _ = report.cause.to_string();
    }
    page.add_packet(bytes);
    page.set_message(bytes);
    let _ = (status.state(), status.is_clone_safe(), status.packets_held(), status.alarm());
    if let Some(account) = status.published_account() {
        assert!(account.lost.len() <= MAX_PUBLISHED_REASONS);
        status.publish_account(&account);
    }
    status.ring();
}

/// A note segment of these bytes.
pub fn note(bytes: &[u8]) {
    let _ = VersionNote::find(bytes);
}
