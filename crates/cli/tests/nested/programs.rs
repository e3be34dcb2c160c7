//! The programs in the machine: `clickbox`, the tests of boxes, and the system libraries that they need.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The crates whose tests create boxes.
const CRATES: &[&str] = &["sandbox", "engine"];

/// Their test programs that are excluded: two take too long on an emulated CPU, the last creates no boxes.
const NOT_THESE: &[&str] = &["engine-corpus", "engine-buffers", "engine-engine"];

/// Programs and libraries.
pub(crate) struct Programs {
    /// `clickbox` and the test programs, by their names in the machine.
    pub(crate) programs: BTreeMap<String, PathBuf>,
    /// Library paths, the same in the machine.
    pub(crate) libraries: BTreeSet<PathBuf>,
}

impl Programs {
    /// Builds the programs in the profile of this test.
    pub(crate) fn build() -> Programs {
        let clickbox = PathBuf::from(env!("CARGO_BIN_EXE_clickbox"));
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["test", "--no-run", "--message-format=json"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        for name in CRATES {
            cargo.args(["-p", name]);
        }
        let output = cargo.stderr(Stdio::inherit()).output().expect("cargo");
        assert!(output.status.success(), "the tests can't be built");
        let text = String::from_utf8(output.stdout).expect("text");
        let messages = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let mut programs: BTreeMap<_, _> = messages.filter_map(|message| test(&message)).collect();
        programs.retain(|name, _| !NOT_THESE.contains(&name.as_str()));
        programs.insert("clickbox".to_string(), clickbox);
        let mut libraries = BTreeSet::new();
        for (name, path) in &mut programs {
            libraries.extend(linked(path));
            *path = stripped(name, path);
        }
        Programs { programs, libraries }
    }

    /// The names of the test programs.
    pub(crate) fn tests(&self) -> impl Iterator<Item = &str> {
        self.programs.keys().map(String::as_str).filter(|name| *name != "clickbox")
    }
}

/// The name and path of the test program in a message of cargo.
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

/// A copy of a program without debug information, because the machine keeps it in memory.
fn stripped(name: &str, program: &Path) -> PathBuf {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nested").join(name);
    let status = Command::new("strip").arg("-o").args([&copy, program]).status().expect("strip");
    assert!(status.success(), "{} can't be stripped", program.display());
    copy
}
