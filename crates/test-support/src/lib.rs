//! Lets tests state which capabilities they need from the machine, and skip if one is missing.
//!
//! A test that needs `/dev/kvm` starts with `if !require(Capability::Kvm) { return; }`. If the capability is missing,
//! a line on standard error names the skipped test and the reason. If the environment variable `CLICKBOX_REQUIRE`
//! contains the capability, the test fails instead, so that continuous integration does not skip tests silently:
//!
//! ```sh
//! CLICKBOX_REQUIRE=kvm,root,nested cargo test
//! ```
//!
//! Invariant: no skip is silent. Lines are written to the file descriptor, because the test harness captures the output
//! of `eprintln!` and shows it for failed tests only.
//!
//! Absent: anything that is not for tests. Other crates use this crate as a dev-dependency only.

#![forbid(unsafe_code)]

use std::fmt::{self, Display};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

/// The environment variable that lists the capabilities which may not be missing, separated by commas.
pub const VARIABLE: &str = "CLICKBOX_REQUIRE";

/// Something that not every machine offers to the tests that run on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// `/dev/kvm` can be opened, so boxes can run in virtual machines.
    Kvm,
    /// The tests may make network and mount namespaces, and `ip` is installed.
    Root,
    /// An emulated processor with SVM, to run boxes by the rules of real hardware.
    Nested,
    /// The generators that read the OpenAPI document.
    Openapi,
    /// Two CPUs or more.
    Processors,
    /// Huge pages: reserved ones (`vm.nr_hugepages`), or a kernel that makes them of files in memory.
    HugePages,
    /// `systemd-analyze`, which judges units.
    Systemd,
    /// `podman`, which can run a container from an image that it built.
    Containers,
    /// `python3`, for functions in Python.
    Python,
    /// The Rust target wasm32-unknown-unknown, for functions in WebAssembly.
    Wasm,
    /// `ping`, which shows who answered that a packet is too long.
    Ping,
}

impl Capability {
    /// All of them.
    pub const ALL: &[Capability] = &[
        Self::Kvm,
        Self::Root,
        Self::Nested,
        Self::Openapi,
        Self::Processors,
        Self::HugePages,
        Self::Systemd,
        Self::Containers,
        Self::Python,
        Self::Wasm,
        Self::Ping,
    ];

    /// Its name in `CLICKBOX_REQUIRE`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Root => "root",
            Self::Nested => "nested",
            Self::Openapi => "openapi",
            Self::Processors => "processors",
            Self::HugePages => "huge-pages",
            Self::Systemd => "systemd",
            Self::Containers => "containers",
            Self::Python => "python",
            Self::Wasm => "wasm",
            Self::Ping => "ping",
        }
    }

    /// Checks that the machine has it. Those that only an attempt can show ([`Self::Nested`], [`Self::Openapi`],
    /// [`Self::HugePages`], [`Self::Systemd`], [`Self::Containers`]) count as present: the test that tries calls [`skip`].
    fn check(self) -> Result<(), String> {
        match self {
            Self::Kvm => match OpenOptions::new().read(true).write(true).open("/dev/kvm") {
                Ok(_) => Ok(()),
                Err(error) => Err(format!("/dev/kvm: {error}")),
            },
            Self::Root => namespaces(),
            Self::Processors => match thread::available_parallelism() {
                Ok(count) if count.get() > 1 => Ok(()),
                _ => Err("there is only one CPU".to_string()),
            },
            Self::Python => runs("python3", "--version"),
            Self::Ping => runs("ping", "-V"),
            Self::Wasm => wasm_target(),
            Self::Nested | Self::Openapi | Self::HugePages | Self::Systemd | Self::Containers => Ok(()),
        }
    }
}

impl Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Checks that a program is installed.
fn runs(program: &str, argument: &str) -> Result<(), String> {
    let output = Command::new(program).arg(argument).output();
    output.map(|_| ()).map_err(|error| format!("{program}: {error}"))
}

/// Looks for the standard library of the target.
fn wasm_target() -> Result<(), String> {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", "wasm32-unknown-unknown"]);
    let output = rustc.output().map_err(|error| format!("rustc: {error}"))?;
    let folder = String::from_utf8_lossy(&output.stdout).trim().to_string();
    match output.status.success() && Path::new(&folder).is_dir() {
        true => Ok(()),
        false => Err("the target wasm32-unknown-unknown is not installed".to_string()),
    }
}

/// Whether the machine has this capability. If it has not, the line that says so is printed, and the caller returns.
///
/// # Panics
///
/// Where `CLICKBOX_REQUIRE` names a missing capability, or a word that is none.
#[must_use]
pub fn require(capability: Capability) -> bool {
    match capability.check() {
        Ok(()) => true,
        Err(reason) => {
            skip(capability, reason);
            false
        }
    }
}

/// Says that a test, or a part of it, is skipped for want of this capability. For tests that find out by trying.
///
/// # Panics
///
/// Where `CLICKBOX_REQUIRE` names the capability, or a word that is none.
pub fn skip(capability: Capability, reason: impl Display) {
    assert!(!is_required(capability), "{capability} is missing, and {VARIABLE} names it: {reason}");
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test");
    // One write, so that the lines of several tests don't mix. A failed write has no better place to be reported.
    let line = format!("SKIPPED {test}: {capability} is missing ({reason})\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Whether `CLICKBOX_REQUIRE` names this capability. For tests that are too slow to run unless they are asked for.
///
/// # Panics
///
/// Where `CLICKBOX_REQUIRE` has a word that names no capability.
pub fn is_required(capability: Capability) -> bool {
    let list = std::env::var(VARIABLE).unwrap_or_default();
    match parse_list(&list) {
        Ok(required) => required.contains(&capability),
        Err(word) => panic!("{VARIABLE}: there is no capability {word:?}"),
    }
}

/// The capabilities of a list, or the first word that names none.
fn parse_list(list: &str) -> Result<Vec<Capability>, &str> {
    let words = list.split(',').map(str::trim).filter(|word| !word.is_empty());
    let find =
        |word| Capability::ALL.iter().copied().find(|capability| capability.name() == word).ok_or(word);
    words.map(find).collect()
}

/// Tries what tests do with root's privileges, in a process that ends at once.
fn namespaces() -> Result<(), String> {
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "ip", "link", "set", "lo", "up"]).stdin(Stdio::null());
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_string()),
        Err(error) => Err(format!("unshare: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_parsed_and_unknown_words_rejected() {
        assert_eq!(parse_list(""), Ok(vec![]));
        assert_eq!(parse_list("kvm, root,"), Ok(vec![Capability::Kvm, Capability::Root]));
        assert_eq!(parse_list("kvm,rooot"), Err("rooot"));
        for capability in Capability::ALL {
            assert_eq!(parse_list(capability.name()), Ok(vec![*capability]));
        }
    }
}
