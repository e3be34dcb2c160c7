//! Takes snapshots of a process. A snapshot is restored by the image itself, in its first steps.

use crate::error::SystemError;
use crate::memory::PAGE;
use crate::process::process_backend::ProcessBackend;
use crate::process::program::memory_file;
use crate::snapshot::{PrivateState, Snapshot, SnapshotError};
use boundary::{BoxState, MemoryKind, MemoryRegion};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

impl ProcessBackend {
    /// The complete state of the process. It is idle, and the caller has stopped it.
    pub(super) fn copy(&self, pid: libc::pid_t) -> Result<Snapshot, SnapshotError> {
        let status = self.region.status().map_err(|_| SnapshotError::NotRunning)?;
        if status.state() != Some(BoxState::Ready) {
            return Err(SnapshotError::NotRunning);
        }
        let shared = self.region.snapshot()?;
        let own = self
            .regions
            .iter()
            .filter(|region| !matches!(region.kind, MemoryKind::SharedRegion | MemoryKind::Pool));
        let read = || -> io::Result<Vec<u8>> {
            let (memory, map) =
                (File::open(format!("/proc/{pid}/mem"))?, File::open(format!("/proc/{pid}/pagemap"))?);
            let mut bytes = vec![0; 8];
            for region in own {
                add_pages(&memory, &map, *region, &mut bytes)?;
            }
            let count = (bytes.len() - 8) / (8 + PAGE);
            bytes[..8].copy_from_slice(&(count as u64).to_le_bytes());
            Ok(bytes)
        };
        let bytes = read().map_err(|cause| SystemError { action: "read a box's memory", cause })?;
        let file = File::from(memory_file(c"box-snapshot")?);
        let kept = |cause| SystemError { action: "store a box's memory", cause };
        file.write_all_at(&bytes, 0).map_err(kept)?;
        let private = PrivateState::Process { file: file.into(), size: bytes.len() };
        Ok(Snapshot { settings: self.settings.clone(), private, shared })
    }
}

/// Appends the touched, nonzero pages of a region, each after its address.
fn add_pages(memory: &File, map: &File, region: MemoryRegion, bytes: &mut Vec<u8>) -> io::Result<()> {
    let pages = region.size as usize / PAGE;
    let mut entries = vec![0; pages * 8];
    map.read_exact_at(&mut entries, region.address / PAGE as u64 * 8)?;
    for (number, entry) in entries.chunks_exact(8).enumerate() {
        // The two highest bits: present, or in swap.
        if entry.last().is_some_and(|flags| flags >> 6 != 0) {
            let address = region.address + (number * PAGE) as u64;
            let mut page = [0; PAGE];
            memory.read_exact_at(&mut page, address)?;
            if page.iter().any(|byte| *byte != 0) {
                bytes.extend_from_slice(&address.to_le_bytes());
                bytes.extend_from_slice(&page);
            }
        }
    }
    Ok(())
}
