//! The isolation that the helper enters once, and that boxes inherit.
//!
//! It runs in the helper: see there for what it must not do.

use crate::process::spawner::capabilities;
use crate::process::spawner::exec;
use crate::process::spawner::message::LayerResults;
use crate::process::spawner::oom_score::OomScore;
use crate::process::spawner::step::{Failure, Step};
use std::ffi::CStr;
use std::ptr::null;

/// The user and the group of boxes: `nobody`, or the only one that is mapped in the helper's user namespace.
pub(super) const NOBODY: libc::uid_t = 65_534;

/// Folders on which the empty root can be mounted before it becomes the root. One that exists is enough.
const MOUNT_POINTS: [&CStr; 3] = [c"/proc", c"/tmp", c"/dev"];

/// The folder is not readable, and there is no room for a file. It is searchable until it is the root.
const EMPTY_ROOT: &CStr = c"mode=111,size=4k,nr_inodes=1";

const ROOT_FLAGS: libc::c_ulong =
    libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_NOATIME;

/// The operation of `keyctl` that begins a new, empty keyring.
const KEYCTL_JOIN_SESSION_KEYRING: libc::c_long = 1;

/// The host name that boxes see.
const HOST_NAME: &CStr = c"box";

type Layer = Result<(), Failure>;

/// Enters all layers. `in_user_namespace`: the helper has a user namespace of its own. Returns the result of each layer,
/// and the namespaces that each box enters for itself.
pub(super) fn enter(
    changes_user: bool,
    in_user_namespace: bool,
    score: &OomScore,
    stack: &mut [u8],
) -> (LayerResults, i32) {
    let (root, network) = (empty_root(), unshare(libc::CLONE_NEWNET));
    let (ipc, host_name) = (unshare(libc::CLONE_NEWIPC), own_host_name());
    // A box enters for itself what it does not inherit. The other namespaces take longer to create.
    let missing = |layer: &Layer, namespace| if layer.is_err() { namespace } else { 0 };
    let without_user = libc::CLONE_NEWPID
        | missing(&root, libc::CLONE_NEWNS)
        | missing(&ipc, libc::CLONE_NEWIPC)
        | missing(&host_name, libc::CLONE_NEWUTS);
    let wanted = without_user | libc::CLONE_NEWUSER;
    // A helper whose user is not mapped can't create user namespaces. It keeps the capability to create the others, which
    // is worth nothing outside its own user namespace. Boxes lose it.
    let keeps_admin = in_user_namespace && exec::try_namespaces(stack, wanted).is_err();
    let bounding_set = capabilities::drop_bounding_set();
    let user = if changes_user { change_user() } else { Ok(()) };
    let kept = if keeps_admin { capabilities::SYS_ADMIN } else { 0 };
    let capabilities = capabilities::drop_all_but(kept).and(bounding_set);
    // SAFETY: plain system calls without pointers, or with null. A change of the user has withdrawn the death signal, other
    // processes of this user must not reach into the helper, and the host's keys stay in its own keyring.
    let no_new_privileges = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, null::<libc::c_char>());
        Step::NoNewPrivileges.done(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    };
    let own_user = exec::try_namespaces(stack, wanted);
    let own_pid = own_user.or_else(|_| exec::try_namespaces(stack, without_user));
    let namespaces = match (own_pid, own_user) {
        (_, Ok(())) => wanted,
        (Ok(()), _) => without_user,
        _ => 0,
    };
    let results = [
        root,
        network,
        ipc,
        host_name,
        user,
        capabilities,
        no_new_privileges,
        own_pid,
        own_user,
        score.check(),
    ];
    (results, namespaces)
}

fn unshare(namespace: i32) -> Layer {
    // SAFETY: the call touches no memory.
    Step::EnterNamespace.done(unsafe { libc::unshare(namespace) })
}

/// Replaces all mounts by an empty folder.
fn empty_root() -> Layer {
    unshare(libc::CLONE_NEWNS)?;
    let private = libc::MS_REC | libc::MS_PRIVATE;
    let (no_data, here) = (null::<libc::c_void>(), c".".as_ptr());
    // SAFETY: plain system calls, with pointers to static strings. The host's mounts stay: this namespace is a copy.
    unsafe {
        Step::SeparateMounts.done(libc::mount(c"none".as_ptr(), c"/".as_ptr(), null(), private, no_data))?;
        let mount = |point: &CStr| {
            let data = EMPTY_ROOT.as_ptr().cast();
            let flags = ROOT_FLAGS & !libc::MS_RDONLY;
            let mounted = libc::mount(c"none".as_ptr(), point.as_ptr(), c"tmpfs".as_ptr(), flags, data);
            Step::MountRoot.done(mounted)?;
            Step::MountRoot.done(libc::chdir(point.as_ptr()))
        };
        let [first, others @ ..] = MOUNT_POINTS;
        others.into_iter().fold(mount(first), |mounted, point| mounted.or_else(|_| mount(point)))?;
        Step::ChangeRoot.done(libc::syscall(libc::SYS_pivot_root, here, here))?;
        Step::DetachRoot.done(libc::umount2(here, libc::MNT_DETACH))?;
        Step::ChangeRoot.done(libc::chdir(c"/".as_ptr()))?;
        // A user who is not mapped into this namespace can't do this, and there is nothing to be found.
        libc::chmod(c"/".as_ptr(), 0);
        let flags = libc::MS_REMOUNT | libc::MS_BIND | ROOT_FLAGS;
        Step::ProtectRoot.done(libc::mount(c"none".as_ptr(), c"/".as_ptr(), null(), flags, no_data))
    }
}

fn own_host_name() -> Layer {
    unshare(libc::CLONE_NEWUTS)?;
    // SAFETY: pointers to static strings of these lengths.
    unsafe {
        Step::SetHostName.done(libc::sethostname(HOST_NAME.as_ptr(), HOST_NAME.count_bytes()))?;
        Step::SetHostName.done(libc::setdomainname(c"".as_ptr(), 0))
    }
}

/// The C library's functions would signal the threads of the host, which are not in this process.
fn change_user() -> Layer {
    let (user, group) = (NOBODY, NOBODY);
    // SAFETY: plain system calls, with pointers to live memory; no group is read.
    unsafe {
        // The number of processes of root is not limited, that of other users is. If the limit can't be removed, it
        // becomes as high as permitted.
        let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        if libc::setrlimit(libc::RLIMIT_NPROC, &limit) != 0
            && libc::getrlimit(libc::RLIMIT_NPROC, &mut limit) == 0
        {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NPROC, &limit);
        }
        Step::DropGroups.done(libc::syscall(libc::SYS_setgroups, 0, null::<libc::gid_t>()))?;
        Step::ChangeGroup.done(libc::syscall(libc::SYS_setresgid, group, group, group))?;
        Step::ChangeUser.done(libc::syscall(libc::SYS_setresuid, user, user, user))
    }
}
