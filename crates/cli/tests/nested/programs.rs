//! The programs that run in the machine (`clickbox` and tests), and the system libraries that they need.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Programs and libraries.
pub(crate) struct Programs {
    /// Paths on this machine, by the name in the emulated one.
    pub(crate) programs: BTreeMap<String, PathBuf>,
    /// Paths that are the same in both machines.
    pub(crate) libraries: BTreeSet<PathBuf>,
}

impl Programs {
    /// Builds these test programs in the profile of this test.
    ///
    /// # Panics
    ///
    /// If there is no such test program.
    pub(crate) fn build(tests: &[&str]) -> Programs {
        let clickbox = PathBuf::from(env!("CARGO_BIN_EXE_clickbox"));
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["test", "--no-run", "--message-format=json"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        // Cargo describes the package of a test in its environment. Build scripts that read the same variables would run again here,
        // and once more in the next build, with all that depends on them.
        for (name, _) in std::env::vars().filter(|(name, _)| is_of_package(name)) {
            cargo.env_remove(name);
        }
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        // With the features of the whole workspace, as they are built for all tests: nothing is compiled again then.
        cargo.arg("--workspace");
        for name in tests.iter().filter_map(|name| Some(name.split_once('-')?.1)) {
            cargo.args(["--test", name]);
        }
        let output = cargo.stderr(Stdio::inherit()).output().expect("cargo");
        assert!(output.status.success(), "the tests can't be built");
        let text = String::from_utf8(output.stdout).expect("text");
        let messages = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let mut programs: BTreeMap<_, _> = messages.filter_map(|message| test(&message)).collect();
        programs.retain(|name, _| tests.contains(&name.as_str()));
        for name in tests {
            assert!(programs.contains_key(*name), "there is no test program {name}");
        }
        programs.insert("clickbox".to_string(), clickbox);
        let mut libraries = BTreeSet::new();
        for (name, path) in &mut programs {
            libraries.extend(linked(path));
            *path = stripped(name, path);
        }
        Programs { programs, libraries }
    }
}

/// Whether Cargo sets this variable for the programs of a package.
fn is_of_package(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| variable.starts_with(prefix))
        || variable == "OUT_DIR"
}

/// Name and path of a test program, from the message that Cargo prints about it.
fn test(message: &Value) -> Option<(String, PathBuf)> {
    let target = message.get("target")?;
    if target.get("kind")?.get(0)? != "test" {
        return None;
    }
    let crate_ = Path::new(target.get("src_path")?.as_str()?).ancestors().nth(2)?.file_name()?.to_str()?;
    let name = format!("{crate_}-{}", target.get("name")?.as_str()?);
    Some((name, message.get("executable")?.as_str()?.into()))
}

/// The libraries that a program is linked with, and the dynamic loader.
fn linked(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output().expect("ldd");
    let text = String::from_utf8(output.stdout).expect("text");
    text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}

/// Copies a program without its debugging information, because the machine keeps its files in memory.
fn stripped(name: &str, program: &Path) -> PathBuf {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nested").join(name);
    let status = Command::new("strip").arg("-o").args([&copy, program]).status().expect("strip");
    assert!(status.success(), "{} can't be stripped", program.display());
    copy
}
