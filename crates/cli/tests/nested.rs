//! Boxes on a substitute for real hardware: Debian's kernel and its `kvm_amd` on a CPU with SVM that QEMU emulates.
//!
//! A KVM implemented in software tolerates faults that real hardware does not: read-only page tables, descriptors
//! without their required bits, registers lost at a fault. This test runs the sandbox's tests, and boxes with Click,
//! under AMD's rules. It needs neither `/dev/kvm` nor root, but Debian's archive and some minutes. It runs only if
//! `CLICKBOX_REQUIRE` names `nested` or `CLICKBOX_NESTED` is set. It uses nested paging unless that is `shadow`, where
//! tests that compare times fail.

#[path = "nested/archive.rs"]
mod archive;
#[path = "nested/emulator.rs"]
mod emulator;
#[path = "nested/packages.rs"]
mod packages;
#[path = "nested/programs.rs"]
mod programs;

use archive::Archive;
use packages::Packages;
use programs::Programs;
use std::fs;
use std::path::Path;
use test_support::{Capability, is_required, skip};

/// The commands that the machine runs, in this order, in addition to the test programs.
const COMMANDS: &[(&str, &str)] = &[
    ("start", "clickbox bench boot --count 5 --runs 1 --sandbox vm --json"),
    ("handlers", "clickbox bench state --runs 1 --sandbox vm"),
    ("demonstration", "clickbox demo"),
];

/// A box that exists from the beginning to the end. The kernel patches its scheduler at the first box and reverts the
/// patch at the last one, and QEMU 7.2 may hang forever on the breakpoint used for that (about one in forty times).
const KEPT: &str = "echo 'FromDevice(0) -> Discard;' > /tmp/kept.click\n\
     export CLICKBOX_SOCKET=/tmp/kept\n\
     clickbox daemon --no-store > /tmp/kept.log 2>&1 &\n\
     until clickbox create kept /tmp/kept.click --attach - --sandbox vm; do sleep 1; done\n";

/// Time limit in seconds for each program in the machine.
const LONGEST: u32 = 300;

#[test]
fn boxes_run_by_the_rules_of_hardware() {
    let wish = std::env::var("CLICKBOX_NESTED").ok();
    if wish.is_none() && !is_required(Capability::Nested) {
        skip(Capability::Nested, "set CLICKBOX_NESTED=1 to emulate a processor with SVM");
        return;
    }
    let nested_paging = u32::from(wish.as_deref() != Some("shadow"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nested");
    fs::create_dir_all(&folder).expect("a folder");
    let packages = Packages::fetch(&folder);
    let programs = Programs::build();
    let memory = folder.join("initramfs");
    fs::write(&memory, files(&packages, &programs)).expect("the machine's files");
    let log = emulator::run(&packages, &memory, &format!("npt={nested_paging}"));
    println!("nested paging {nested_paging}:\n{log}");
    check(&log, &programs, nested_paging);
}

/// All files of the machine.
fn files(packages: &Packages, programs: &Programs) -> Vec<u8> {
    let mut archive = Archive::new();
    for folder in ["bin", "dev", "lib", "lib64", "modules", "proc", "sys", "tmp"] {
        archive.folder(folder);
    }
    archive.file("init", script(programs).as_bytes());
    archive.file("bin/busybox", &packages.busybox());
    for (name, bytes) in packages.modules() {
        archive.file(&format!("modules/{name}"), &bytes);
    }
    for (name, path) in &programs.programs {
        archive.file(&format!("bin/{name}"), &fs::read(path).expect("a program"));
    }
    for path in &programs.libraries {
        archive.path(path);
    }
    archive.finish()
}

/// The machine's init script. It prints `PASSED name` or `FAILED name` for each program.
fn script(programs: &Programs) -> String {
    let mut script = String::from(
        "#!/bin/busybox sh\n\
         /bin/busybox --install -s /bin\n\
         export PATH=/bin TMPDIR=/tmp RUST_BACKTRACE=1 CLICKBOX_REQUIRE=kvm\n\
         mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp\n\
         insmod /modules/irqbypass.ko; insmod /modules/kvm.ko; insmod /modules/kvm-amd.ko $(grep -o 'npt=.' /proc/cmdline)\n\
         echo PAGING $(cat /sys/module/kvm_amd/parameters/npt)\n",
    );
    script += KEPT;
    let tests = programs.tests().map(|name| (name, format!("{name} --test-threads=1")));
    let commands = COMMANDS.iter().map(|(name, command)| (*name, command.to_string()));
    for (name, command) in tests.chain(commands) {
        script += &format!("timeout {LONGEST} {command} 2>&1 && echo PASSED {name} || echo FAILED {name}\n");
    }
    script + "echo ENDED\npoweroff -f\n"
}

/// Asserts that every program passed. None can have skipped virtual machines, because `CLICKBOX_REQUIRE` names `kvm`.
fn check(log: &str, programs: &Programs, nested_paging: u32) {
    let said = |line: &str| log.lines().any(|found| found.trim_end() == line);
    let paging = if nested_paging == 1 { "PAGING Y" } else { "PAGING N" };
    assert!(said(paging), "kvm_amd is not there as wished: no {paging:?}");
    let names = programs.tests().chain(COMMANDS.iter().map(|(name, _)| *name));
    let missing: Vec<_> = names.filter(|name| !said(&format!("PASSED {name}"))).collect();
    assert!(missing.is_empty(), "with nested paging {nested_paging} these did not pass: {missing:?}");
    assert!(log.contains("each in a virtual machine"), "the demonstration did not use virtual machines");
    assert!(said("ENDED"), "the machine did not come to its end");
}
