//! Boxes on a processor with SVM that QEMU emulates, under Debian's kernel and its `kvm_amd`.
//!
//! A KVM that runs in software accepts what real hardware refuses: page tables that can't be written, descriptors with
//! bits missing, registers that a fault clobbers. Here AMD's rules apply. The tests of boxes run in the emulated
//! machine and start them, pass packets, read and write handlers, and make them crash.
//!
//! The test needs neither `/dev/kvm` nor root, but Debian's package archive and a minute or two. It runs if
//! `CLICKBOX_REQUIRE` names `nested`, or if `CLICKBOX_NESTED` is set to a list of words: `shadow` turns nested paging
//! off (tests that compare times fail then), `all` also runs the slower programs, any other word changes nothing.

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

/// Test programs that always run, as crate and test: they boot boxes, forward packets, and make boxes fail.
const TESTS: &[&str] = &["engine-boxes", "sandbox-boxes", "sandbox-hostile", "sandbox-snapshot"];

/// Test programs that run as well with `CLICKBOX_NESTED=all`.
const MORE_TESTS: &[&str] = &["engine-copies", "sandbox-sharing"];

/// Commands that always run, after the tests, by a name for each.
const COMMANDS: &[(&str, &str)] = &[
    ("boot", "clickbox bench boot --count 5 --runs 1 --sandbox vm --json"),
    ("handlers", "clickbox bench state --runs 1 --sandbox vm"),
];

/// Commands that run as well with `CLICKBOX_NESTED=all`.
const MORE_COMMANDS: &[(&str, &str)] = &[("demonstration", "clickbox demo")];

/// Starts a box that runs as long as the machine. With the first box the kernel patches its scheduler, and it patches
/// it back after the last one; QEMU 7.2 sometimes keeps executing the breakpoint that stands there in between, and hangs
/// (in about one of forty such changes).
const KEPT: &str = "echo 'FromDevice(0) -> Discard;' > /tmp/kept.click\n\
     export CLICKBOX_SOCKET=/tmp/kept\n\
     clickbox daemon --no-store > /tmp/kept.log 2>&1 &\n\
     for attempt in $(seq 30); do\n\
     timeout 60 clickbox create kept /tmp/kept.click --attach - --sandbox vm && echo PASSED kept && break || sleep 1\n\
     done\n\
     cat /tmp/kept.log\n";

/// Seconds after which a program is killed.
const LONGEST: u32 = 300;

/// What `CLICKBOX_NESTED` chooses.
struct Choice {
    nested_paging: bool,
    tests: Vec<&'static str>,
    commands: Vec<(&'static str, &'static str)>,
}

impl Choice {
    fn new(words: &str) -> Choice {
        let has = |wanted| words.split(',').any(|word| word.trim() == wanted);
        let (mut tests, mut commands) = (TESTS.to_vec(), COMMANDS.to_vec());
        if has("all") {
            tests.extend(MORE_TESTS);
            commands.extend(MORE_COMMANDS);
        }
        Choice { nested_paging: !has("shadow"), tests, commands }
    }

    /// The names of all that runs.
    fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once("kept")
            .chain(self.tests.iter().copied())
            .chain(self.commands.iter().map(|(name, _)| *name))
    }
}

#[test]
fn boxes_run_on_an_emulated_processor() {
    let words = std::env::var("CLICKBOX_NESTED").ok();
    if words.is_none() && !is_required(Capability::Nested) {
        skip(Capability::Nested, "set CLICKBOX_NESTED=1 to emulate a processor with SVM");
        return;
    }
    let choice = Choice::new(words.as_deref().unwrap_or_default());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nested");
    fs::create_dir_all(&folder).expect("a folder");
    let packages = Packages::fetch(&folder);
    let programs = Programs::build(&choice.tests);
    let archive = folder.join("initramfs");
    fs::write(&archive, files(&packages, &programs, &choice)).expect("the machine's files");
    let options = format!("npt={}", u32::from(choice.nested_paging));
    let log = emulator::run(&packages, &archive, &options, "PASSED kept");
    println!("{log}");
    check(&log, &choice);
}

/// All files of the machine.
fn files(packages: &Packages, programs: &Programs, choice: &Choice) -> Vec<u8> {
    let mut archive = Archive::new();
    for folder in ["bin", "dev", "lib", "lib64", "modules", "proc", "sys", "tmp"] {
        archive.folder(folder);
    }
    archive.file("init", script(choice).as_bytes());
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

/// The first program of the machine. It prints a line `PASSED name` or `FAILED name` for each program that it runs.
///
/// `CLICKBOX_REQUIRE` makes a test fail that would skip virtual machines.
fn script(choice: &Choice) -> String {
    let mut script = String::from(
        "#!/bin/busybox sh\n\
         /bin/busybox --install -s /bin\n\
         export PATH=/bin TMPDIR=/tmp RUST_BACKTRACE=1 CLICKBOX_REQUIRE=kvm\n\
         mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp\n\
         insmod /modules/irqbypass.ko; insmod /modules/kvm.ko; insmod /modules/kvm-amd.ko $(grep -o 'npt=.' /proc/cmdline)\n\
         echo PAGING $(cat /sys/module/kvm_amd/parameters/npt)\n",
    );
    script += KEPT;
    let tests = choice.tests.iter().map(|name| (*name, format!("{name} --test-threads=1")));
    let commands = choice.commands.iter().map(|(name, command)| (*name, command.to_string()));
    for (name, command) in tests.chain(commands) {
        script += &format!("timeout {LONGEST} {command} 2>&1 && echo PASSED {name} || echo FAILED {name}\n");
    }
    script + "echo ENDED\npoweroff -f\n"
}

/// Checks the machine's output: all programs passed, on the paging that was chosen, and the machine shut down.
fn check(log: &str, choice: &Choice) {
    let has = |line: &str| log.lines().any(|found| found.trim_end() == line);
    let paging = if choice.nested_paging { "PAGING Y" } else { "PAGING N" };
    assert!(has(paging), "kvm_amd was not loaded as chosen: there is no line {paging:?}");
    let failed: Vec<_> = choice.names().filter(|name| !has(&format!("PASSED {name}"))).collect();
    assert!(failed.is_empty(), "these did not pass ({paging}): {failed:?}");
    if choice.names().any(|name| name == "demonstration") {
        assert!(log.contains("each in a virtual machine"), "the demonstration did not use virtual machines");
    }
    assert!(has("ENDED"), "the machine did not shut down");
}
