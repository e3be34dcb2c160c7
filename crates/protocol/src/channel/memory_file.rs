//! Memory files that are sealed against changes: the bytes of a long message, or what comes with one.

use super::error::{ChannelError, MemoryFileFault};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

/// With these seals neither the length nor the bytes change, and no seal can be added.
const SEALS: SealFlags =
    SealFlags::SEAL.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::WRITE);

/// How often the kernel is asked to seal a file. While another part of it looks at a page, such as one that moves pages, it
/// answers, after some 0.1 s, that the file is in use.
const SEAL_ATTEMPTS: usize = 20;

/// A sealed memory file with these bytes. It can't be executed.
pub fn create(bytes: &[u8]) -> Result<OwnedFd, ChannelError> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 do not know NOEXEC_SEAL, and some hosts require it.
    let descriptor = match memfd_create(c"message", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(c"message", flags)?,
        other => other?,
    };
    let file = File::from(descriptor);
    file.write_all_at(bytes, 0)?;
    for _ in 1..SEAL_ATTEMPTS {
        match fcntl_add_seals(&file, SEALS) {
            Err(Errno::BUSY) => {}
            other => return Ok(other.map(|()| file.into())?),
        }
    }
    fcntl_add_seals(&file, SEALS)?;
    Ok(file.into())
}

/// The bytes of a memory file that has `length` of them, at most `most`. They are copied, never mapped.
pub fn read(file: OwnedFd, length: u64, most: usize) -> Result<Vec<u8>, ChannelError> {
    let bytes = usize::try_from(length).ok().filter(|bytes| *bytes <= most);
    let bytes = bytes.ok_or(ChannelError::TooLong { length, most })?;
    // Only memory files have seals. Reading another file could block.
    if !fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SEALS)) {
        return Err(MemoryFileFault::NotSealed.into());
    }
    let file = File::from(file);
    if file.metadata()?.len() != length {
        return Err(MemoryFileFault::WrongLength.into());
    }
    let mut buffer = vec![0; bytes];
    file.read_exact_at(&mut buffer, 0)?;
    Ok(buffer)
}
