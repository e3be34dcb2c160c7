//! Starts a helper process.

use crate::error::SetupError;
use crate::process::isolation::{Layer, MissingLayer};
use crate::process::spawner::cgroup::Cgroup;
use crate::process::spawner::filter::HelperFilter;
use crate::process::spawner::helper::{self, HelperSetup};
use crate::process::spawner::layers::NOBODY;
use crate::process::spawner::link::Link;
use crate::process::spawner::step::Step;
use seccomp::Program;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;

/// Bits of the capabilities (`linux/capability.h`) without which a host can't enter namespaces and change the user.
const ENTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8 | 1 << 21;

/// Bits of the capabilities without which a host can't signal, examine and schedule processes of another user: KILL,
/// SYS_PTRACE, SYS_NICE.
const REACHES_OTHERS: u64 = 1 << 5 | 1 << 19 | 1 << 23;

/// A helper process. Dropping it kills it, and its boxes with it.
#[derive(Debug)]
pub(super) struct Helper {
    _process: Process,
    /// Removed after the process.
    _cgroup: Option<Cgroup>,
}

/// A child process. Dropping it kills and reaps it.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: libc::pid_t,
    pub(super) descriptor: OwnedFd,
}

impl Helper {
    /// Forks a helper, with a filter unless that is tested. The thread must live as long as the helper is needed: the kernel kills it when the thread ends.
    /// Without a filter of the helper, the filter of images stays.
    pub(super) fn start(
        image: BorrowedFd<'_>,
        filter: Option<&Program>,
        image_filter: &Program,
    ) -> Result<(Self, Link), SetupError> {
        let (host, child) = socket_pair()?;
        let capabilities = effective_capabilities();
        let is_privileged = capabilities & ENTERS == ENTERS;
        let mut missing = Vec::new();
        let own_user = if is_privileged { 0 } else { libc::CLONE_NEWUSER };
        let namespaces = libc::CLONE_NEWPID | own_user;
        let mut setup = HelperSetup {
            socket: child.as_raw_fd(),
            image: image.as_raw_fd(),
            namespaces,
            filter: HelperFilter::new(filter)?,
            image_filter: HelperFilter::new(Some(image_filter))?,
        };
        let process = match fork(&setup) {
            Ok(process) => process,
            Err(error) => {
                missing.push(refused(Layer::SpawnerNamespace, Step::EnterNamespace, &error));
                setup.namespaces = 0;
                fork(&setup).map_err(SetupError::Spawner)?
            }
        };
        drop(child);
        let pid = process.pid;
        if setup.namespaces & libc::CLONE_NEWUSER != 0 {
            // Without a mapping, the helper and its boxes have the overflow user, but boxes can't have user namespaces of
            // their own, which the helper reports.
            let _ = map_user(pid);
        }
        let changes_user = is_privileged && capabilities & REACHES_OTHERS == REACHES_OTHERS;
        // SAFETY: the call has no preconditions.
        if !changes_user && unsafe { libc::geteuid() } == 0 {
            let cause = io::Error::from_raw_os_error(libc::EPERM);
            missing.push(refused(Layer::User, Step::ReachOthers, &cause));
        }
        let mut helper = Self { _process: process, _cgroup: None };
        let link = Link::new(host, changes_user, || {
            // It takes longer than all other layers together.
            match Cgroup::create(pid) {
                Ok(cgroup) => helper._cgroup = Some(cgroup),
                Err(error) => missing.push(refused(Layer::Cgroup, Step::CreateCgroup, &error)),
            }
            missing
        })?;
        Ok((helper, link))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SAFETY: the descriptor is open, and no siginfo is passed; an all-zero siginfo is valid, and only the last call
        // writes it.
        unsafe {
            let process = self.descriptor.as_raw_fd();
            let none = std::ptr::null::<libc::siginfo_t>();
            libc::syscall(libc::SYS_pidfd_send_signal, process, libc::SIGKILL, none, 0);
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PIDFD, process as libc::id_t, &mut info, libc::WEXITED);
        }
    }
}

fn refused(layer: Layer, step: Step, error: &io::Error) -> MissingLayer {
    MissingLayer { layer, step: step.name(), errno: error.raw_os_error().unwrap_or(libc::EOPNOTSUPP) }
}

/// The capabilities of this thread, as bits.
fn effective_capabilities() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let field = text.lines().find_map(|line| line.strip_prefix("CapEff:"));
    field.and_then(|field| u64::from_str_radix(field.trim(), 16).ok()).unwrap_or(0)
}

/// Maps the user and the group of this host into the user namespace of a child.
fn map_user(child: libc::pid_t) -> io::Result<()> {
    // SAFETY: the calls have no preconditions.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    fs::write(format!("/proc/{child}/setgroups"), "deny")?;
    fs::write(format!("/proc/{child}/uid_map"), format!("{NOBODY} {user} 1"))?;
    fs::write(format!("/proc/{child}/gid_map"), format!("{NOBODY} {group} 1"))
}

pub(super) fn socket_pair() -> Result<(OwnedFd, OwnedFd), SetupError> {
    let mut pair = [-1; 2];
    // SAFETY: the kernel writes two descriptors, which are owned by the returned values alone.
    unsafe {
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        match libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) {
            0 => Ok((OwnedFd::from_raw_fd(pair[0]), OwnedFd::from_raw_fd(pair[1]))),
            _ => Err(SetupError::Spawner(io::Error::last_os_error())),
        }
    }
}

/// Forks the helper into its namespaces.
fn fork(setup: &HelperSetup) -> io::Result<Process> {
    let mut descriptor = -1;
    // SAFETY: the child is a copy of this thread, with its own memory. It runs `helper::run`, which uses nothing of the
    // host's state and never returns; all signals are blocked, so no handler of the host runs in it.
    let (pid, error) = unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let flags = libc::CLONE_PIDFD | libc::SIGCHLD | setup.namespaces;
        let null = null_mut::<libc::c_void>();
        let pid = libc::syscall(libc::SYS_clone, flags, null, &raw mut descriptor, null, null);
        if pid == 0 {
            helper::run(setup);
        }
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, null_mut());
        (pid, error)
    };
    if pid < 0 {
        return Err(error);
    }
    // SAFETY: CLONE_PIDFD has stored a new descriptor.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    Ok(Process { pid: pid as libc::pid_t, descriptor })
}
