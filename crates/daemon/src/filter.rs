//! What a daemon gives up: its capabilities, and the system calls that it does not need.
//!
//! Not among its calls, on purpose: `execve` and `fork`, because another process starts launchers; raw sockets, packet
//! sockets and sockets of the kernel's; everything that reaches into other processes (`ptrace`, `process_vm_readv`, signals);
//! `mount`, `bpf`, `perf_event_open` and `io_uring`; the controls of `/dev/kvm` and of network devices; and memory that can
//! be executed.

use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};
use seccomp::{Argument, Filter, FilterError, Program};
use std::error::Error;
use std::fmt;
use std::io;
use std::process;

/// Calls without conditions.
const CALLS: &[i64] = &[
    // Files: the store and its log, certificates, symbols, and what the kernel tells in /proc and /sys.
    libc::SYS_openat,
    libc::SYS_close,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_access,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_getdents64,
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    libc::SYS_getcwd,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fadvise64,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_fcntl,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    libc::SYS_rmdir,
    libc::SYS_truncate,
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_umask,
    libc::SYS_utimensat,
    libc::SYS_sendfile,
    libc::SYS_copy_file_range,
    libc::SYS_memfd_create,
    // Waiting.
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_pipe2,
    libc::SYS_dup,
    // The helper process, when it has ended.
    libc::SYS_wait4,
    libc::SYS_waitid,
    // Sockets. Their kinds are limited below.
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_shutdown,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
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
    libc::SYS_getppid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getcpu,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_time,
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
];

/// Numbers of `ioctl`.
const CONTROLS: &[u32] = &[
    0x5421, // FIONBIO
    0x5451, // FIOCLEX
    0x5401, // TCGETS
    0x5413, // TIOCGWINSZ
    0x541b, // FIONREAD
];

/// Why a daemon cannot be confined.
#[derive(Debug)]
pub enum ConfineError {
    /// The capabilities cannot be given up.
    Capabilities(io::Error),
    /// The system call filter was refused.
    Filter(FilterError),
}

/// Gives up all capabilities, and all system calls that a daemon does not need, for good. Call it when everything is
/// started that needs either, and before any other thread runs, because capabilities belong to threads.
pub fn confine() -> Result<(), ConfineError> {
    let give_up = || {
        set_no_new_privs(true)?;
        let none = CapabilitySet::empty();
        set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
    };
    give_up().map_err(|error| ConfineError::Capabilities(error.into()))?;
    program().and_then(|program| program.install()).map_err(ConfineError::Filter)
}

/// The filter.
fn program() -> Result<Program, FilterError> {
    let thread = libc::CLONE_THREAD as u32;
    // The flags beside the kind of a socket are not compared.
    let socket =
        |family: i32, kind: i32| [Argument::is(0, family as u32), Argument::has(1, 0xf, kind as u32)];
    let mut filter = Filter::default()
        .allow(CALLS)
        // Its arguments are in memory, where a filter cannot see them. The C library then uses `clone`.
        .refuse(libc::SYS_clone3, libc::ENOSYS as u32)
        .allow_if(libc::SYS_clone, &[Argument::has(0, thread, thread)])?
        .allow_if(libc::SYS_tgkill, &[Argument::is(0, process::id())])?
        .allow_if(libc::SYS_kill, &[Argument::is(0, process::id())])?
        .allow_if(libc::SYS_socketpair, &[Argument::is(0, libc::AF_UNIX as u32)])?
        // The limits of this process, to read them.
        .allow_if(libc::SYS_prlimit64, &[Argument::is(0, 0), Argument::is(2, 0)])?
        // Names of threads and of memory.
        .allow_if(libc::SYS_prctl, &[Argument::is(0, libc::PR_SET_NAME as u32)])?
        .allow_if(libc::SYS_prctl, &[Argument::is(0, libc::PR_SET_VMA as u32)])?;
    for kind in [libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_SEQPACKET] {
        filter = filter.allow_if(libc::SYS_socket, &socket(libc::AF_UNIX, kind))?;
    }
    for family in [libc::AF_INET, libc::AF_INET6] {
        filter = filter.allow_if(libc::SYS_socket, &socket(family, libc::SOCK_STREAM))?;
    }
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        filter = filter.allow_if(call, &[Argument::has(2, libc::PROT_EXEC as u32, 0)])?;
    }
    for control in CONTROLS {
        filter = filter.allow_if(libc::SYS_ioctl, &[Argument::is(1, *control)])?;
    }
    filter.compile()
}

impl fmt::Display for ConfineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capabilities(_) => f.write_str("can't give up capabilities"),
            Self::Filter(error) => error.fmt(f),
        }
    }
}

impl Error for ConfineError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Capabilities(error) => Some(error),
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::Filter(error) => error.source(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketType, socket};
    use std::fs;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    use std::thread;

    /// The environment variable that makes a test play a daemon that was taken over.
    const CASE: &str = "CLICKBOX_TEST_CALL";

    /// What such a daemon tries, and whether it may.
    const CASES: &[(&str, bool, fn())] = &[
        ("nothing", true, || ()),
        ("start a thread", true, || thread::spawn(|| ()).join().unwrap()),
        ("listen", true, || {
            drop(TcpListener::bind("[::1]:0").or_else(|_| TcpListener::bind("127.0.0.1:0")).unwrap());
            let path = std::env::temp_dir().join(format!("clickbox-filter-{}", process::id()));
            drop(UnixListener::bind(&path).unwrap());
            fs::remove_file(path).unwrap();
        }),
        ("have no capability", true, || {
            let status = fs::read_to_string("/proc/thread-self/status").unwrap();
            for set in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
                assert!(status.contains(&format!("{set}:\t0000000000000000")), "{status}");
            }
        }),
        ("execute a program", false, || drop(Command::new("/bin/true").status())),
        ("open a packet socket", false, || {
            let _ = socket(AddressFamily::PACKET, SocketType::RAW, None);
        }),
        ("open a raw socket", false, || {
            let _ = socket(AddressFamily::INET, SocketType::RAW, None);
        }),
        ("send datagrams", false, || {
            let _ = socket(AddressFamily::INET, SocketType::DGRAM, None);
        }),
        ("signal another process", false, || {
            let _ = rustix::process::getppid().map(rustix::process::test_kill_process);
        }),
        ("change its root folder", false, || {
            let _ = rustix::process::chroot("/");
        }),
    ];

    /// Not a test of its own: it does one of the cases, in a process of [`forbidden_calls_end_the_daemon`].
    #[test]
    fn a_daemon_that_was_taken_over() {
        let Some(name) = std::env::var_os(CASE) else { return };
        let (.., act) = CASES.iter().find(|(case, ..)| name == *case).unwrap();
        confine().unwrap();
        act();
    }

    #[test]
    fn forbidden_calls_end_the_daemon() {
        for (name, is_allowed, _) in CASES {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "filter::tests::a_daemon_that_was_taken_over", "--nocapture"]);
            let output = command.env(CASE, name).output().unwrap();
            let expected = if *is_allowed { None } else { Some(libc::SIGSYS) };
            let text = String::from_utf8_lossy(&output.stderr);
            let found = (output.status.signal(), output.status.success());
            assert_eq!(found, (expected, *is_allowed), "{name}: {text}");
        }
    }
}
