//! The memory allocator of this process.

/// The largest value of an allocator's setting.
const MAX_SIZE: libc::c_int = libc::c_int::MAX;
/// Bytes from which on memory is mapped for one allocation: the most that the allocator accepts.
const MAPPED: libc::c_int = 32 << 20;

/// Has the allocator keep freed memory for later allocations, and join freed blocks at once.
///
/// Otherwise it returns memory to the kernel, and joins many small blocks, while some block is allocated or freed. Both take up
/// to a millisecond, in which a router processes no packets. Memory is then never returned. Does nothing if the C library is
/// not GNU's. Must be called before this process has other threads.
pub fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    for (setting, value) in
        [(libc::M_MXFAST, 0), (libc::M_TRIM_THRESHOLD, MAX_SIZE), (libc::M_MMAP_THRESHOLD, MAPPED)]
    {
        // SAFETY: it reads and writes no memory of this program, and the caller has no other threads. A setting that is
        // refused leaves the default.
        unsafe { libc::mallopt(setting, value) };
    }
}
