//! Attacks from inside a box in a process whose filter permits all system calls: what isolates it then is the rest.

use crate::{CallError, EventFd, ExitStatus, Host, Isolation, Layer, Sandbox, Settings, State, Target};
use boundary::Request;
use boundary::exit::{REGION_DESCRIPTOR, WAKE_EVENT_DESCRIPTOR};
use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use test_support::{Capability, require, skip};

/// Bounds every wait, also on a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_secs(40);

/// The host of all tests here.
fn host() -> &'static Host {
    static HOST: OnceLock<Host> = OnceLock::new();
    HOST.get_or_init(|| Host::without_filter(image::PROBE).unwrap())
}

/// A box without a filter.
struct Attacker(Sandbox);

impl Attacker {
    fn new() -> Self {
        let sandbox = host().create(Target::Process, &Settings::new(1 << 20)).unwrap();
        sandbox.control_handle().start().unwrap();
        Self(sandbox)
    }

    /// The result of a system call: its number, and arguments in the probe's notation.
    fn call(&mut self, number: libc::c_long, arguments: &str) -> i64 {
        let text = format!("{number} {arguments}");
        let write = Request::Write { name: "", handler: "call", value: text.as_bytes() };
        self.0.call(&write, WAIT_TIMEOUT).unwrap();
        let read = Request::Read { name: "", handler: "value", argument: b"" };
        let value = String::from_utf8(self.0.call(&read, WAIT_TIMEOUT).unwrap()).unwrap();
        value.parse().unwrap()
    }

    /// Asserts that a system call is refused with one of these error numbers.
    fn refused(&mut self, number: libc::c_long, arguments: &str, errors: &[i32]) {
        let result = self.call(number, arguments);
        let error = errors.iter().any(|error| result == -i64::from(*error));
        assert!(error, "system call {number} {arguments}: {result}, not one of {errors:?}");
    }

    /// The descriptor that a system call returns.
    fn opened(&mut self, number: libc::c_long, arguments: &str) -> i64 {
        let result = self.call(number, arguments);
        assert!(result >= 0, "system call {number} {arguments}: {result}");
        result
    }
}

/// Whether boxes have all layers.
fn is_isolated() -> bool {
    let isolation = host().isolation().unwrap();
    isolation.missing().iter().for_each(|missing| skip(Capability::Root, missing));
    isolation.missing().is_empty()
}

/// Bytes in the probe's notation, as a pointer.
fn pointer(bytes: &[u8]) -> String {
    bytes.iter().fold("%".to_string(), |text, byte| format!("{text}{byte:02x}"))
}

/// A C string, as a pointer.
fn path(text: &str) -> String {
    pointer(&[text.as_bytes(), &[0]].concat())
}

#[test]
fn all_layers_hold_for_root() {
    let isolation = host().isolation().unwrap();
    // Root of a user namespace has capabilities, but may not be able to change its user.
    let is_initial = fs::read_to_string("/proc/self/uid_map").unwrap().contains("4294967295");
    if require(Capability::Root) && is_initial {
        assert_eq!(isolation, Isolation::default());
        assert!(Layer::ALL.iter().all(|layer| isolation.holds(*layer)));
    }
}

#[test]
fn the_root_folder_is_closed() {
    if !is_isolated() {
        return;
    }
    let mut attacker = Attacker::new();
    let folder = libc::O_DIRECTORY;
    for name in ["/", ".", "..", "/proc", "/proc/self/status", "/etc/passwd", "/dev/kvm", "/sys"] {
        let arguments = format!("{} {} {}", libc::AT_FDCWD, path(name), libc::O_RDONLY);
        attacker.refused(libc::SYS_openat, &arguments, &[libc::EACCES]);
        let arguments = format!("{} {} {folder}", libc::AT_FDCWD, path(name));
        attacker.refused(libc::SYS_openat, &arguments, &[libc::EACCES]);
    }
    attacker.refused(libc::SYS_mkdir, &format!("{} 448", path("/new")), &[libc::EACCES, libc::EROFS]);
    attacker.refused(libc::SYS_chroot, &path("/"), &[libc::EACCES, libc::EPERM]);
    let tmpfs = format!("{} {} {} 0 0", path("none"), path("/"), path("tmpfs"));
    attacker.refused(libc::SYS_mount, &tmpfs, &[libc::EACCES, libc::EPERM]);
    attacker.refused(libc::SYS_umount2, &format!("{} 2", path("/")), &[libc::EACCES, libc::EPERM]);
    // The host sees that there is nothing.
    let root = format!("/proc/{}/root", attacker.0.process_id().unwrap());
    assert_eq!(fs::read_dir(root).unwrap().count(), 0);
}

#[test]
fn there_is_no_network() {
    if !is_isolated() {
        return;
    }
    let mut attacker = Attacker::new();
    let socket = attacker.opened(libc::SYS_socket, &format!("{} {} 0", libc::AF_INET, libc::SOCK_STREAM));
    // Only the loopback interface exists, and it is down.
    for index in 2i32..100 {
        let request = [&[0; 16][..], &index.to_ne_bytes(), &[0; 20]].concat();
        let arguments = format!("{socket} {} {}", libc::SIOCGIFNAME, pointer(&request));
        attacker.refused(libc::SYS_ioctl, &arguments, &[libc::ENODEV]);
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_be_bytes();
    let address = [&(libc::AF_INET as u16).to_ne_bytes()[..], &port, &[127, 0, 0, 1], &[0; 8]].concat();
    let arguments = format!("{socket} {} {}", pointer(&address), address.len());
    attacker.refused(libc::SYS_connect, &arguments, &[libc::ENETUNREACH]);
    let raw = format!("{} {} 0", libc::AF_PACKET, libc::SOCK_RAW);
    attacker.refused(libc::SYS_socket, &raw, &[libc::EPERM, libc::EAFNOSUPPORT]);
}

#[test]
fn abstract_sockets_of_the_host_are_out_of_reach() {
    if !is_isolated() {
        return;
    }
    let mut attacker = Attacker::new();
    let name = format!("clickbox-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    assert!(UnixStream::connect_addr(&address).is_ok());
    let bytes = [&(libc::AF_UNIX as u16).to_ne_bytes()[..], &[0], name.as_bytes()].concat();
    let socket = attacker.opened(libc::SYS_socket, &format!("{} {} 0", libc::AF_UNIX, libc::SOCK_STREAM));
    let arguments = format!("{socket} {} {}", pointer(&bytes), bytes.len());
    attacker.refused(libc::SYS_connect, &arguments, &[libc::ECONNREFUSED]);
}

#[test]
fn other_processes_are_out_of_reach() {
    if !is_isolated() {
        return;
    }
    let (mut attacker, neighbour) = (Attacker::new(), Attacker::new());
    let host = std::process::id() as i32;
    let own = attacker.0.process_id().unwrap();
    for process in [host, own, neighbour.0.process_id().unwrap(), 2, 3] {
        attacker.refused(libc::SYS_kill, &format!("{process} {}", libc::SIGKILL), &[libc::ESRCH]);
        attacker.refused(libc::SYS_pidfd_open, &format!("{process} 0"), &[libc::ESRCH, libc::EINVAL]);
        let attach = format!("{} {process} 0 0", libc::PTRACE_ATTACH);
        attacker.refused(libc::SYS_ptrace, &attach, &[libc::ESRCH]);
        // Eight bytes of the attacker's variables, in both.
        let words = pointer(&[0x4000_0000u64, 8].map(u64::to_ne_bytes).concat());
        let read = format!("{process} {words} 1 {words} 1 0");
        attacker.refused(libc::SYS_process_vm_readv, &read, &[libc::ESRCH]);
    }
    // All that it sees, except itself.
    attacker.refused(libc::SYS_kill, &format!("-1 {}", libc::SIGKILL), &[libc::ESRCH]);
    assert_eq!((attacker.call(libc::SYS_getpid, ""), attacker.call(libc::SYS_getppid, "")), (1, 0));
    assert_eq!(neighbour.0.state(), crate::State::Running);
}

#[test]
fn the_user_has_no_rights() {
    if !is_isolated() {
        return;
    }
    let mut attacker = Attacker::new();
    for user in [0, 1, 1000] {
        attacker.refused(libc::SYS_setuid, &user.to_string(), &[libc::EINVAL, libc::EPERM]);
        attacker.refused(libc::SYS_setgid, &user.to_string(), &[libc::EINVAL, libc::EPERM]);
    }
    attacker.refused(libc::SYS_setgroups, "0 0", &[libc::EPERM]);
    for namespace in [libc::CLONE_NEWUSER, libc::CLONE_NEWNS, libc::CLONE_NEWNET, libc::CLONE_NEWPID] {
        attacker.refused(libc::SYS_unshare, &namespace.to_string(), &[libc::EPERM]);
    }
    attacker.refused(libc::SYS_sethostname, &format!("{} 1", path("x")), &[libc::EPERM]);
    attacker.refused(libc::SYS_setpriority, "0 0 -5", &[libc::EACCES, libc::EPERM]);
    let pid = attacker.0.process_id().unwrap();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
    for name in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(u64::from_str_radix(field(name), 16), Ok(0), "{name}");
    }
    for name in ["Uid:", "Gid:"] {
        assert_eq!(field(name).split('\t').collect::<Vec<_>>(), ["65534"; 4], "{name}");
    }
    assert_eq!((field("Groups:"), field("NoNewPrivs:")), ("", "1"));
}

/// The memory of a box is fixed when it is created.
#[test]
fn memory_does_not_grow() {
    let mut attacker = Attacker::new();
    let mut map = |size: u64| {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        attacker.call(libc::SYS_mmap, &format!("0 {size} {protection} {flags} -1 0"))
    };
    // What is left of the margin is all that it gets, in pieces of any size.
    let mut gained = 0;
    for size in [1 << 30, 16 << 20, 1 << 20, 256 << 10, 64 << 10, 16 << 10, 4 << 10] {
        loop {
            match map(size) {
                refused @ ..0 => break assert_eq!(refused, -i64::from(libc::ENOMEM)),
                _ => gained += size,
            }
            assert!(gained < 1 << 20, "{gained} bytes beyond its definition");
        }
    }
    let end = attacker.call(libc::SYS_brk, "0");
    assert_eq!(attacker.call(libc::SYS_brk, &(end + (1 << 20)).to_string()), end);
    if is_isolated() {
        // Without a PID namespace of its own, a signal ends it instead.
        let file = attacker.opened(libc::SYS_memfd_create, &format!("{} 0", path("memory")));
        attacker.refused(libc::SYS_ftruncate, &format!("{file} 1048576"), &[libc::EFBIG]);
        attacker.refused(libc::SYS_write, &format!("{file} {} 8", pointer(&[1; 8])), &[libc::EFBIG]);
        attacker.refused(libc::SYS_fallocate, &format!("{file} 0 0 1048576"), &[libc::EFBIG]);
        attacker.refused(libc::SYS_fork, "", &[libc::EAGAIN]);
    }
    attacker.refused(libc::SYS_mlockall, "1", &[libc::EPERM, libc::ENOMEM]);
    let pid = attacker.0.process_id().unwrap();
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max address space")).unwrap();
    let size: u64 = line.split_ascii_whitespace().nth(3).unwrap().parse().unwrap();
    let image = image::PROBE.len() as u64;
    assert!(size < image + (3 << 20), "{size} bytes for 1 MB of memory, an image of {image}, and no ports");
}

/// Segments of System V shared memory belong to the IPC namespace.
#[test]
fn shared_memory_of_the_host_is_out_of_reach() {
    if !is_isolated() {
        return;
    }
    let mut attacker = Attacker::new();
    let key = 0x5b0c_0000 | (std::process::id() & 0xffff);
    // SAFETY: the segment is never attached, and is removed below.
    let segment = unsafe { libc::shmget(key.cast_signed(), 4096, libc::IPC_CREAT | 0o666) };
    assert!(segment >= 0);
    let result = attacker.call(libc::SYS_shmget, &format!("{key} 4096 0"));
    // SAFETY: removes the segment from above.
    unsafe { libc::shmctl(segment, libc::IPC_RMID, std::ptr::null_mut()) };
    assert_eq!(result, -i64::from(libc::ENOENT));
}

/// What boxes share, and what each has for itself, as the host sees it.
#[test]
fn boxes_share_the_namespaces_of_their_spawner() {
    if !is_isolated() {
        return;
    }
    let boxes = [Attacker::new(), Attacker::new()];
    let pids = boxes.each_ref().map(|attacker| attacker.0.process_id().unwrap().to_string());
    let link = |process: &str, name: &str| fs::read_link(format!("/proc/{process}/ns/{name}")).unwrap();
    for name in ["mnt", "net", "ipc", "uts", "pid", "user"] {
        let [first, second, own] = [&pids[0], &pids[1], "self"].map(|process| link(process, name));
        assert_ne!(first, own, "{name}");
        assert_eq!(first == second, !matches!(name, "pid" | "user"), "{name}");
    }
    for pid in &pids {
        let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
        assert_eq!(read("oom_score_adj").trim(), "500");
        // Their spawner is the last to go, as the host is.
        let status = read("status");
        let spawner = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim();
        let score = |process| fs::read_to_string(format!("/proc/{process}/oom_score_adj")).unwrap();
        assert_eq!(score(spawner), score("self"));
        assert!(read("cgroup").lines().any(|line| line.contains("/clickbox-boxes-")), "{}", read("cgroup"));
    }
}

/// An image of a user that does not confine itself has no more system calls than one that does, and those of its first
/// steps. It gets neither files, sockets nor processes, and reads none of the events that it shares with other boxes.
#[test]
fn the_image_of_a_user_is_confined_before_its_first_step() {
    let image = host().load(image::PROBE).unwrap();
    let event = Arc::new(EventFd::new().unwrap());
    let settings = Settings { image: Some(image), wake_event: Some(event), ..Settings::new(1 << 20) };
    let attacker = || {
        let sandbox = host().create(Target::Process, &settings).unwrap();
        sandbox.control_handle().start().unwrap();
        Attacker(sandbox)
    };
    let mut peaceful = attacker();
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    for (call, arguments, expected) in [
        (libc::SYS_mmap, format!("0 1073741824 3 {anonymous} -1 0"), -i64::from(libc::ENOMEM)),
        (libc::SYS_prctl, format!("{} 9 0 0 0", libc::PR_SET_PDEATHSIG), 0),
        (libc::SYS_write, format!("{WAKE_EVENT_DESCRIPTOR} {} 8", pointer(&1u64.to_ne_bytes())), 8),
        (libc::SYS_sched_yield, String::new(), 0),
    ] {
        assert_eq!(peaceful.call(call, &arguments), expected, "system call {call} {arguments}");
    }
    for (call, arguments) in [
        (libc::SYS_socket, "1 1 0".to_string()),
        (libc::SYS_openat, format!("{} {} 0", libc::AT_FDCWD, path("/"))),
        (libc::SYS_clone, format!("{} 0 0 0 0", libc::SIGCHLD)),
        (libc::SYS_fork, String::new()),
        (libc::SYS_kill, "1 9".into()),
        (libc::SYS_recvmsg, "4 0 0".into()),
        (libc::SYS_read, format!("{WAKE_EVENT_DESCRIPTOR} {} 8", pointer(&[0; 8]))),
        (libc::SYS_pread64, format!("{REGION_DESCRIPTOR} {} 8 0", pointer(&[0; 8]))),
        (libc::SYS_write, format!("{REGION_DESCRIPTOR} {} 8", pointer(&[0; 8]))),
        (libc::SYS_mmap, format!("0 4096 5 {anonymous} -1 0")),
        (libc::SYS_mprotect, "1073741824 4096 5".into()),
        (libc::SYS_munmap, "1073741824 4096".into()),
        (libc::SYS_brk, "0".into()),
        (libc::SYS_prctl, format!("{} 0 0 0 0", libc::PR_SET_PDEATHSIG)),
        (libc::SYS_prctl, format!("{} {} 0 0 0", libc::PR_SET_NAME, path("other"))),
        (libc::SYS_prlimit64, "0 9 0 0".into()),
        (libc::SYS_execveat, format!("{REGION_DESCRIPTOR} {} 0 0 0", path("/"))),
        (libc::SYS_futex, format!("{} 1 1 0 0 0", pointer(&[0; 4]))),
        (libc::SYS_memfd_create, format!("{} 0", path("memory"))),
    ] {
        let mut attacker = attacker();
        let text = format!("{call} {arguments}");
        let write = Request::Write { name: "", handler: "call", value: text.as_bytes() };
        let ended = attacker.0.call(&write, WAIT_TIMEOUT);
        assert!(matches!(ended, Err(CallError::Ended)), "system call {text}: {ended:?}");
        let end = ExitStatus::Vanished { status: -libc::SIGSYS };
        assert_eq!(attacker.0.state(), State::Ended(end), "system call {text}");
    }
}
