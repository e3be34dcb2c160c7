//! The checks, one function each. They have no side effects.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use bench::PlatformKind;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{Resource, getrlimit};

use super::boxes;
use super::capability::Capability;
use super::check_result::{CheckResult, Grade};
use crate::number_format::{count, grouped};

/// The names of the trials.
const VM_TRIAL: &str = "box in a VM";
const PROCESS_TRIAL: &str = "box in a process";

/// Features of the processor that box images are compiled for: the flags in `/proc/cpuinfo`, and their names.
const BOX_FEATURES: [(&str, &str); 8] = [
    ("avx2", "AVX2"),
    ("bmi1", "BMI1"),
    ("bmi2", "BMI2"),
    ("fma", "FMA"),
    ("movbe", "MOVBE"),
    ("abm", "LZCNT"),
    ("aes", "AES"),
    ("pclmulqdq", "PCLMULQDQ"),
];

/// The locations of the kernel's files.
struct KernelFiles {
    root: PathBuf,
}

/// Runs all checks.
pub(crate) fn run() -> Vec<CheckResult> {
    let kernel_files = KernelFiles { root: "/".into() };
    vec![
        kernel_files.kernel(),
        kernel_files.cpus(),
        kernel_files.memory(),
        kvm(Path::new("/dev/kvm")),
        kernel_files.namespaces(),
        kernel_files.seccomp(),
        kernel_files.cgroups(),
        tap(&kernel_files.status()),
        packet_sockets(),
        kernel_files.huge_pages(),
        open_files(),
        locked_memory(&kernel_files.status()),
        memory_files(),
        boxes::check(VM_TRIAL, PlatformKind::Vm),
        boxes::check(PROCESS_TRIAL, PlatformKind::Process),
    ]
}

/// Whether boxes can run at all: at least one kind has run.
pub(crate) fn can_run(results: &[CheckResult]) -> bool {
    let has_run = |result: &CheckResult| [VM_TRIAL, PROCESS_TRIAL].contains(&result.name);
    results.iter().any(|result| has_run(result) && result.grade != Grade::Missing)
}

impl KernelFiles {
    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok().map(|text| text.trim().to_string())
    }

    fn status(&self) -> String {
        self.read("proc/self/status").unwrap_or_default()
    }

    /// A number from `/proc/meminfo`.
    fn meminfo(&self, name: &str) -> Option<u64> {
        let text = self.read("proc/meminfo")?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse().ok()
    }

    fn kernel(&self) -> CheckResult {
        let release = self.read("proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".into());
        let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
        match (numbers.next(), numbers.next()) {
            // 5.13 is the first version with all features that the process sandbox needs.
            (Some(major), Some(minor)) if (major, minor) < (5, 13) => CheckResult::limited(
                "kernel",
                format!("Linux {release}"),
                "5.13 or later is recommended; older kernels are not tested",
            ),
            _ => CheckResult::good("kernel", format!("Linux {release}")),
        }
    }

    fn cpus(&self) -> CheckResult {
        let cpus = available_parallelism().map_or(1, usize::from);
        let text = self.read("proc/cpuinfo").unwrap_or_default();
        let has = |flag: &str| {
            text.lines().any(|line| line.starts_with("flags") && line.split(' ').any(|known| known == flag))
        };
        let found = format!("{}{}", count(cpus as u64, "CPU"), if has("avx2") { ", AVX2" } else { "" });
        if let Some((_, feature)) = BOX_FEATURES.iter().find(|(flag, _)| !has(flag)) {
            let advice = format!("the processor lacks {feature}, so boxes can't run; `clickbox run` can");
            return CheckResult::missing("cpu", found, advice);
        }
        if !has("constant_tsc") {
            let advice =
                "the kernel does not report a constant time stamp counter: clocks of boxes may drift";
            return CheckResult::limited("cpu", found, advice);
        }
        if cpus == 1 {
            return CheckResult::limited(
                "cpu",
                found,
                "boxes and switches share it; a second one doubles the packet rate",
            );
        }
        CheckResult::good("cpu", found)
    }

    fn memory(&self) -> CheckResult {
        let (all, free) = (self.meminfo("MemTotal").unwrap_or(0), self.meminfo("MemAvailable").unwrap_or(0));
        let found = format!("{} MB, {} MB available", grouped(all >> 10), grouped(free >> 10));
        // The approximate size of a box with one port of 256 slots, including kernel memory.
        let boxes = (free << 10) / (3 << 20);
        match boxes {
            0..200 => CheckResult::limited(
                "memory",
                found,
                format!("enough for about {boxes} boxes with one port each"),
            ),
            _ => CheckResult::good("memory", found),
        }
    }

    fn namespaces(&self) -> CheckResult {
        const NAME: &str = "user namespaces";
        let number = |path: &str| self.read(path).and_then(|text| text.parse::<u64>().ok());
        if !self.root.join("proc/self/ns/user").exists()
            || number("proc/sys/user/max_user_namespaces") == Some(0)
        {
            return CheckResult::limited(
                NAME,
                "disabled",
                "boxes in processes are less isolated; to enable them: sysctl user.max_user_namespaces=10000",
            );
        }
        if number("proc/sys/kernel/unprivileged_userns_clone") == Some(0) {
            return CheckResult::limited(NAME, "root only", "sysctl kernel.unprivileged_userns_clone=1");
        }
        if number("proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
            return CheckResult::limited(
                NAME,
                "restricted by AppArmor",
                "run the daemon as root, or: sysctl kernel.apparmor_restrict_unprivileged_userns=0",
            );
        }
        CheckResult::good(NAME, "allowed")
    }

    fn seccomp(&self) -> CheckResult {
        let actions = self.read("proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
        match actions.split_whitespace().any(|action| action == "kill_process") {
            true => CheckResult::good("seccomp", "filters are available"),
            false => CheckResult::missing(
                "seccomp",
                "the kernel has no system call filters",
                "boxes run only in virtual machines; to run them in processes, use a kernel with CONFIG_SECCOMP_FILTER",
            ),
        }
    }

    /// The daemon limits boxes itself, so nothing can be missing.
    fn cgroups(&self) -> CheckResult {
        let controllers = self.read("sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
        let has = |name: &str| controllers.split_whitespace().any(|known| known == name);
        let found = if has("cpu") && has("memory") {
            "version 2"
        } else if self.root.join("sys/fs/cgroup/cpu").is_dir() {
            "version 1"
        } else {
            "none"
        };
        CheckResult::good("cgroups", format!("{found}; not required, because the daemon limits boxes itself"))
    }

    fn huge_pages(&self) -> CheckResult {
        const NAME: &str = "huge pages";
        let free = self.meminfo("HugePages_Free").unwrap_or(0);
        let transparent = self.read("sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
        if free > 0 {
            return CheckResult::good(
                NAME,
                format!("{} free, {} kB each", grouped(free), self.meminfo("Hugepagesize").unwrap_or(0)),
            );
        }
        match transparent.contains("[always]") || transparent.contains("[madvise]") {
            true => CheckResult::good(NAME, "transparent; none reserved, none required"),
            false => CheckResult::limited(
                NAME,
                "none",
                "boxes start slightly slower; to enable them: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
            ),
        }
    }
}

fn kvm(device: &Path) -> CheckResult {
    const NAME: &str = "kvm";
    match OpenOptions::new().read(true).write(true).open(device) {
        Ok(_) => CheckResult::good(NAME, format!("{} can be opened", device.display())),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => CheckResult::limited(
            NAME,
            format!("no permission to open {}", device.display()),
            "boxes run in processes; for virtual machines: sudo usermod -aG kvm $USER, and log in again",
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => CheckResult::missing(
            NAME,
            format!("{} does not exist", device.display()),
            "boxes run in processes; for virtual machines: enable VMX or SVM in the firmware, or nested \
             virtualization on the host, and load kvm_intel or kvm_amd",
        ),
        Err(error) => {
            CheckResult::missing(NAME, format!("{}: {error}", device.display()), "boxes run in processes")
        }
    }
}

fn tap(status: &str) -> CheckResult {
    const NAME: &str = "tap devices";
    let device = "/dev/net/tun";
    if File::options().read(true).write(true).open(device).is_err() {
        return CheckResult::missing(
            NAME,
            format!("{device} can't be opened"),
            "modprobe tun, and chmod 0666 /dev/net/tun",
        );
    }
    match Capability::NetAdmin.is_in(status) {
        true => CheckResult::good(NAME, "can be created"),
        false => CheckResult::limited(
            NAME,
            "only those created for this user",
            "to create others: run the daemon as root or with CAP_NET_ADMIN, or: sudo ip tuntap add tap0 mode tap user $USER",
        ),
    }
}

fn packet_sockets() -> CheckResult {
    const NAME: &str = "packet sockets";
    match socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None) {
        Ok(_) => CheckResult::good(NAME, "network interfaces can be ports of a switch"),
        Err(error) => CheckResult::missing(
            NAME,
            format!("not permitted: {error}"),
            "run the daemon as root, or: sudo setcap cap_net_raw,cap_net_admin+ep $(command -v clickbox)",
        ),
    }
}

fn memory_files() -> CheckResult {
    const NAME: &str = "memory files";
    match memfd_create("clickbox", MemfdFlags::CLOEXEC) {
        Ok(_) => CheckResult::good(NAME, "can be created"),
        Err(error) => CheckResult::missing(
            NAME,
            format!("not permitted: {error}"),
            "boxes in processes need them: allow memfd_create for the daemon, and set sysctl vm.memfd_noexec=0",
        ),
    }
}

fn open_files() -> CheckResult {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or("unlimited".into(), grouped);
    let found = format!("{} (hard limit {most})", limit.current.map_or("unlimited".into(), grouped));
    // The daemon raises its limit to the hard limit.
    match limit.maximum {
        Some(most) if most < 4096 => CheckResult::limited(
            "open files",
            found,
            "each box needs several: set LimitNOFILE=65536, or ulimit -Hn 65536",
        ),
        _ => CheckResult::good("open files", found),
    }
}

fn locked_memory(status: &str) -> CheckResult {
    let limit = getrlimit(Resource::Memlock);
    match limit.current {
        Some(bytes) if !Capability::IpcLock.is_in(status) && bytes < 8 << 20 => CheckResult::limited(
            "locked memory",
            format!("{} kB", grouped(bytes >> 10)),
            "rings of fast drivers may exceed it: set LimitMEMLOCK=infinity, or ulimit -l unlimited",
        ),
        Some(bytes) => CheckResult::good("locked memory", format!("{} kB", grouped(bytes >> 10))),
        None => CheckResult::good("locked memory", "unlimited"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a check on a system with these files.
    fn with(files: &[(&str, &str)], check: impl Fn(&KernelFiles) -> CheckResult) -> CheckResult {
        let name = format!("clickbox-host-{}-{:?}", std::process::id(), std::thread::current().id());
        let kernel_files = KernelFiles { root: std::env::temp_dir().join(name) };
        for (path, text) in files {
            let path = kernel_files.root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let result = check(&kernel_files);
        let _ = fs::remove_dir_all(&kernel_files.root);
        result
    }

    #[test]
    fn results_other_than_good_have_advice() {
        let user = ("proc/self/ns/user", "");
        type Case<'a> = (&'a [(&'a str, &'a str)], fn(&KernelFiles) -> CheckResult, Grade);
        let cases: [Case; 11] = [
            (&[("proc/sys/kernel/osrelease", "6.18.0-cloud")], KernelFiles::kernel, Grade::Good),
            (&[("proc/sys/kernel/osrelease", "5.4.0")], KernelFiles::kernel, Grade::Limited),
            (&[user, ("proc/sys/user/max_user_namespaces", "0")], KernelFiles::namespaces, Grade::Limited),
            (&[user, ("proc/sys/user/max_user_namespaces", "9")], KernelFiles::namespaces, Grade::Good),
            (
                &[("proc/sys/kernel/seccomp/actions_avail", "kill_process allow")],
                KernelFiles::seccomp,
                Grade::Good,
            ),
            (&[], KernelFiles::seccomp, Grade::Missing),
            (&[("proc/cpuinfo", "flags\t\t: fpu sse2 avx2 bmi1")], KernelFiles::cpus, Grade::Missing),
            (&[("sys/fs/cgroup/cgroup.controllers", "pids")], KernelFiles::cgroups, Grade::Good),
            (
                &[("sys/kernel/mm/transparent_hugepage/enabled", "always [never]")],
                KernelFiles::huge_pages,
                Grade::Limited,
            ),
            (
                &[("proc/meminfo", "HugePages_Free:  8\nHugepagesize: 2048 kB")],
                KernelFiles::huge_pages,
                Grade::Good,
            ),
            (
                &[("proc/meminfo", "MemTotal: 200000 kB\nMemAvailable: 100000 kB")],
                KernelFiles::memory,
                Grade::Limited,
            ),
        ];
        for (files, check, grade) in cases {
            let result = with(files, check);
            assert_eq!(result.grade, grade, "{result:?}");
            assert_eq!(result.advice.is_empty(), grade == Grade::Good, "{result:?}");
        }
        assert_eq!(kvm(Path::new("/nowhere/kvm")).grade, Grade::Missing);
    }

    #[test]
    fn boxes_need_a_vm_or_a_process() {
        let none = [CheckResult::missing(VM_TRIAL, "", ""), CheckResult::missing(PROCESS_TRIAL, "", "")];
        assert!(!can_run(&none));
        assert!(can_run(&[
            CheckResult::missing(VM_TRIAL, "", ""),
            CheckResult::limited(PROCESS_TRIAL, "", "")
        ]));
    }
}
