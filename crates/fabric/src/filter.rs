//! The system calls that a fabric may make.
//!
//! Not among them, on purpose: `execve` and `fork`; `socket` and `connect`, because all sockets come from the launcher and
//! the daemon; opening files to write, except new ones without a name; `ptrace` and reading the memory of processes by other means than `/proc`; everything
//! that changes users, namespaces or mounts; and memory that can be executed.

use seccomp::{Argument, Filter, FilterError, Program};
use std::process;

/// Calls without conditions.
const CALLS: &[i64] = &[
    // Reading, writing and waiting.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_getdents64,
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fdatasync,
    libc::SYS_fsync,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    // Eventfds that a peer shares: waking it must not block.
    libc::SYS_io_setup,
    libc::SYS_io_submit,
    libc::SYS_io_getevents,
    libc::SYS_io_destroy,
    libc::SYS_eventfd2,
    libc::SYS_pipe2,
    libc::SYS_memfd_create,
    // Sockets that it was given.
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_bind,
    // The next launcher and memif clients, at the sockets that the launcher has bound.
    libc::SYS_listen,
    libc::SYS_accept4,
    libc::SYS_shutdown,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    // Memory.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    // Threads and time.
    libc::SYS_futex,
    libc::SYS_membarrier,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_rseq,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_getcpu,
    libc::SYS_getpriority,
    libc::SYS_setpriority,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_time,
    libc::SYS_timer_create,
    libc::SYS_timer_settime,
    libc::SYS_timer_delete,
    libc::SYS_getrusage,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    libc::SYS_getrandom,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // Signals.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    // Boxes in processes, by descriptors from their spawner.
    libc::SYS_pidfd_send_signal,
    libc::SYS_waitid,
];

/// Numbers of `ioctl`, the most frequent first: the rules are tried in this order. Those of KVM are in `linux/kvm.h`, in
/// the order of its documentation: system, virtual machine, processor.
const CONTROLS: &[u32] = &[
    0xae80,      // KVM_RUN
    0xae00,      // KVM_GET_API_VERSION
    0xae01,      // KVM_CREATE_VM
    0xae03,      // KVM_CHECK_EXTENSION
    0xae04,      // KVM_GET_VCPU_MMAP_SIZE
    0xc008_ae05, // KVM_GET_SUPPORTED_CPUID
    0xae41,      // KVM_CREATE_VCPU
    0x4020_ae46, // KVM_SET_USER_MEMORY_REGION
    0x8090_ae81, // KVM_GET_REGS
    0x4090_ae82, // KVM_SET_REGS
    0x8138_ae83, // KVM_GET_SREGS
    0x4138_ae84, // KVM_SET_SREGS
    0x4008_ae90, // KVM_SET_CPUID2
    0x9000_aea4, // KVM_GET_XSAVE
    0x5000_aea5, // KVM_SET_XSAVE
    0x8188_aea6, // KVM_GET_XCRS
    0x4188_aea7, // KVM_SET_XCRS
    0x4018_aee1, // KVM_SET_DEVICE_ATTR
    0xc040_ff0b, // PIDFD_GET_INFO
    0x800454d2,  // TUNGETIFF
    0x800454d7,  // TUNGETVNETHDRSZ
    0x8910,      // SIOCGIFNAME
    0x8913,      // SIOCGIFFLAGS
    0x8921,      // SIOCGIFMTU
    0x8933,      // SIOCGIFINDEX
    0x5421,      // FIONBIO
];

/// The filter.
pub(crate) fn program() -> Result<Program, FilterError> {
    let writes = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u32;
    let unnamed = (libc::O_RDWR | libc::O_TMPFILE) as u32;
    let thread = libc::CLONE_THREAD as u32;
    let mut filter = Filter::default()
        .allow(CALLS)
        // Its arguments are in memory, where a filter cannot see them. The C library then uses `clone`.
        .refuse(libc::SYS_clone3, libc::ENOSYS as u32)
        .allow_if(libc::SYS_clone, &[Argument::has(0, thread, thread)])?
        .allow_if(libc::SYS_tgkill, &[Argument::is(0, process::id())])?
        .allow_if(libc::SYS_openat, &[Argument::has(2, writes, libc::O_RDONLY as u32)])?
        .allow_if(libc::SYS_openat, &[Argument::has(2, writes | libc::O_TMPFILE as u32, unnamed)])?
        .allow_if(libc::SYS_socketpair, &[Argument::is(0, libc::AF_UNIX as u32)])?
        // The limits of this process, to read them.
        .allow_if(libc::SYS_prlimit64, &[Argument::is(0, 0), Argument::is(2, 0)])?
        // Names of threads and of memory.
        .allow_if(libc::SYS_prctl, &[Argument::is(0, libc::PR_SET_NAME as u32)])?
        .allow_if(libc::SYS_prctl, &[Argument::is(0, libc::PR_SET_VMA as u32)])?;
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        filter = filter.allow_if(call, &[Argument::has(2, libc::PROT_EXEC as u32, 0)])?;
    }
    for control in CONTROLS {
        filter = filter.allow_if(libc::SYS_ioctl, &[Argument::is(1, *control)])?;
    }
    filter.compile()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File, OpenOptions};
    use std::net::TcpStream;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    use std::thread;

    /// The environment variable that makes a test play a fabric that was taken over.
    const CASE: &str = "CLICKBOX_TEST_CALL";

    /// What such a fabric tries, and whether it may.
    const CASES: &[(&str, bool, fn())] = &[
        ("nothing", true, || ()),
        ("start a thread", true, || thread::spawn(|| ()).join().unwrap()),
        ("read a file", true, || drop(fs::read("/proc/self/status").unwrap())),
        ("make a file without a name", true, || {
            let store = crate::boxes::OutputStore::default();
            store.set_folder(File::open(std::env::temp_dir()).unwrap().into());
            store.create().unwrap();
        }),
        ("talk to itself", true, || drop(UnixStream::pair().unwrap())),
        ("execute a program", false, || drop(Command::new("/bin/true").status())),
        ("write to a file", false, || drop(OpenOptions::new().write(true).open("/dev/null"))),
        ("create a file", false, || drop(File::create("/tmp/clickbox-created-by-a-fabric"))),
        ("remove a file", false, || drop(fs::remove_file("/tmp/clickbox-not-there"))),
        ("rename a file", false, || drop(fs::rename("/tmp/clickbox-not-there", "/tmp/clickbox-neither"))),
        ("connect to a network", false, || drop(TcpStream::connect("127.0.0.1:1"))),
        ("connect to the launcher", false, || drop(UnixStream::connect("/run/clickbox/launcher.sock"))),
        ("listen", false, || drop(UnixListener::bind("/tmp/clickbox-listens"))),
        ("raise a limit", false, || {
            let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
            let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, limit);
        }),
        ("signal another process", false, || {
            let _ = rustix::process::getppid().map(rustix::process::test_kill_process);
        }),
    ];

    /// Not a test of its own: it does one of the cases, in a process of [`forbidden_calls_end_the_fabric`].
    #[test]
    fn a_fabric_that_was_taken_over() {
        let Some(name) = std::env::var_os(CASE) else { return };
        let (.., act) = CASES.iter().find(|(case, ..)| name == *case).unwrap();
        // A thread that runs already is filtered too.
        let (sender, waiting) = std::sync::mpsc::channel();
        let earlier = thread::spawn(move || {
            waiting.recv().unwrap();
            act();
        });
        program().unwrap().install().unwrap();
        sender.send(()).unwrap();
        earlier.join().unwrap();
    }

    #[test]
    fn forbidden_calls_end_the_fabric() {
        for (name, is_allowed, _) in CASES {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "filter::tests::a_fabric_that_was_taken_over", "--nocapture"]);
            let output = command.env(CASE, name).output().unwrap();
            let expected = if *is_allowed { None } else { Some(libc::SIGSYS) };
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(
                (output.status.signal(), output.status.success()),
                (expected, *is_allowed),
                "{name}: {text}"
            );
        }
    }
}
