//! Gives up capabilities. It runs in the helper and its children: see there for what it must not do.

use crate::process::spawner::step::{Failure, Step};

/// One more than the highest capability that a kernel may have.
const MAX_CAPABILITIES: libc::c_ulong = 64;

/// Makes all capabilities unattainable for this process and its descendants in this user namespace.
pub(super) fn drop_bounding_set() -> Result<(), Failure> {
    for capability in 0..MAX_CAPABILITIES {
        // SAFETY: the call touches no memory.
        let dropped = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        match Step::DropBoundingSet.done(dropped) {
            // The kernel has no further ones.
            Err((_, libc::EINVAL)) => break,
            result => result?,
        }
    }
    Ok(())
}

/// The header of `capset`.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    process: i32,
}

const CAPABILITY_VERSION_3: u32 = 0x2008_0522;

/// The capability to create namespaces, as a bit.
pub(super) const SYS_ADMIN: u32 = 1 << 21;

/// Gives up all capabilities that this process has, except those of the low word that are in `kept`.
pub(super) fn drop_all_but(kept: u32) -> Result<(), Failure> {
    let header = CapabilityHeader { version: CAPABILITY_VERSION_3, process: 0 };
    // Effective, permitted, inheritable: low words, then high words.
    let kept = [kept, kept, 0, 0, 0, 0];
    // SAFETY: the kernel reads live memory of the size that this version has.
    unsafe {
        // A kernel without ambient capabilities refuses it.
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        let dropped = libc::syscall(libc::SYS_capset, &raw const header, kept.as_ptr());
        Step::DropCapabilities.done(dropped)
    }
}
