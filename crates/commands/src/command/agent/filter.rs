//! The system calls that an agent may make.
//!
//! Not among them, on purpose: everything that opens or changes a file; sockets other than TCP's; `execve`, `fork` and
//! threads; signals and other processes; and memory that can be executed.

use seccomp::{Argument, Filter, FilterError, Program};

/// Calls without conditions.
const CALLS: &[i64] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_fcntl,
    libc::SYS_poll,
    libc::SYS_ppoll,
    // Sockets: that of the fabric, and those to controllers. Their kinds are limited below.
    libc::SYS_connect,
    // For controllers that connect to the switch.
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept4,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_shutdown,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    // Messages of the fabric that are too long for its socket.
    libc::SYS_fstat,
    libc::SYS_lseek,
    libc::SYS_pread64,
    libc::SYS_statx,
    // Memory, time, and the end.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_getrandom,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// The filter.
pub(super) fn program() -> Result<Program, FilterError> {
    let kind = |number: i32| Argument::has(1, 0xf, number as u32);
    let mut filter = Filter::default().allow(CALLS);
    for family in [libc::AF_INET, libc::AF_INET6] {
        let family = Argument::is(0, family as u32);
        filter = filter.allow_if(libc::SYS_socket, &[family, kind(libc::SOCK_STREAM)])?;
    }
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        filter = filter.allow_if(call, &[Argument::has(2, libc::PROT_EXEC as u32, 0)])?;
    }
    filter.compile()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    use std::thread;

    /// The environment variable that makes a test play an agent that was taken over.
    const CASE: &str = "CLICKBOX_TEST_CALL";

    /// What such an agent tries, and whether it may.
    const CASES: &[(&str, bool, fn())] = &[
        ("nothing", true, || ()),
        ("connect to a controller", true, || drop(TcpStream::connect("127.0.0.1:1"))),
        ("listen for controllers", true, || drop(TcpListener::bind("127.0.0.1:0"))),
        ("listen for other programs", false, || drop(UnixListener::bind("/tmp/clickbox-bound-by-an-agent"))),
        ("send datagrams", false, || drop(UdpSocket::bind("127.0.0.1:0"))),
        ("connect to the launcher", false, || drop(UnixStream::connect("/run/clickbox/launcher.sock"))),
        ("read a file", false, || drop(fs::read("/proc/self/status"))),
        ("create a file", false, || drop(File::create("/tmp/clickbox-created-by-an-agent"))),
        ("execute a program", false, || drop(Command::new("/bin/true").status())),
        ("start a thread", false, || drop(thread::spawn(|| ()).join())),
    ];

    /// Tests nothing by itself: it does one of the cases, in a process of [`forbidden_calls_end_the_agent`].
    #[test]
    fn an_agent_that_was_taken_over() {
        let Some(name) = std::env::var_os(CASE) else { return };
        let (.., act) = CASES.iter().find(|(case, ..)| name == *case).unwrap();
        program().unwrap().install().unwrap();
        act();
        std::process::exit(0);
    }

    #[test]
    fn forbidden_calls_end_the_agent() {
        for (name, is_allowed, _) in CASES {
            let mut command = Command::new(std::env::current_exe().unwrap());
            let test = "command::agent::filter::tests::an_agent_that_was_taken_over";
            command.args(["--exact", test, "--nocapture"]);
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
