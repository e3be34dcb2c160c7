//! Rules of the house that no compiler checks: who may depend on whom, where `unsafe` may stand, how long a file may
//! be, and that what runs in a box needs no operating system.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Each crate and the crates of the workspace that it may depend on (not counting tests).
const ARROWS: &[(&str, &[&str])] = &[
    ("packet", &[]),
    ("reason", &[]),
    ("click-lang", &[]),
    ("boundary", &[]),
    ("capture", &[]),
    ("element-derive", &[]),
    ("element", &["element-derive", "packet", "reason"]),
    ("random", &[]),
    ("classify", &["packet"]),
    ("lookup", &["packet"]),
    ("flow", &["packet"]),
    ("elements", &["capture", "classify", "element", "flow", "lookup", "packet"]),
    ("router", &["click-lang", "element", "packet", "reason"]),
    ("engine", &["boundary", "click-lang", "element", "elements", "packet", "router"]),
    ("sandbox", &["boundary"]),
    ("switch", &["boundary", "capture", "packet", "reason"]),
    ("image", &[]),
    ("api", &[]),
    ("test-support", &[]),
    // Without `packet` and `capture`: frames are handled by `switch` alone.
    ("daemon", &["api", "boundary", "reason", "sandbox", "switch"]),
    // The plain process borrows the drivers of the switch, which have the `unsafe` that devices need.
    ("bench", &["api", "boundary", "capture", "image", "packet", "random", "sandbox", "switch"]),
    (
        "cli",
        &[
            "api",
            "bench",
            "capture",
            "click-lang",
            "daemon",
            "element",
            "elements",
            "engine",
            "image",
            "packet",
            "random",
            "reason",
            "router",
            "switch",
        ],
    ),
];

/// Crates in which `unsafe` may stand.
const UNSAFE: &[&str] = &["packet", "boundary", "sandbox", "switch", "guest"];

/// Lines of a source file, beyond which it has to be split.
const MOST_LINES: usize = 800;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn crates() -> BTreeMap<String, PathBuf> {
    let entries = fs::read_dir(root().join("crates")).expect("the crates").flatten();
    entries.map(|entry| (entry.file_name().into_string().expect("a plain name"), entry.path())).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn dependencies_follow_the_arrows() {
    let crates = crates();
    let mut failures = Vec::new();
    for (name, path) in &crates {
        let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| known == name) else {
            failures.push(format!("{name} is not in ARROWS"));
            continue;
        };
        let manifest = fs::read_to_string(path.join("Cargo.toml")).expect("a manifest");
        let mut section = "";
        for line in manifest.lines().map(str::trim) {
            if line.starts_with('[') {
                section = line;
            }
            let key = line.split(['.', ' ', '=']).next().unwrap_or("");
            if section == "[dependencies]" && crates.contains_key(key) && !allowed.contains(&key) {
                failures.push(format!("{name} depends on {key}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn unsafe_stands_only_where_it_may() {
    for (name, path) in crates() {
        if UNSAFE.contains(&name.as_str()) {
            continue;
        }
        let mut files = Vec::new();
        sources(&path.join("src"), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).expect("a source file");
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let found = code.filter(|line| line.contains("unsafe ") && !line.contains("forbid")).count();
            assert_eq!(found, 0, "{} has `unsafe`", file.display());
        }
    }
}

/// The magic numbers of pcap and pcapng stand in one crate, so no second reader or writer can grow.
#[test]
fn only_capture_knows_the_formats_of_captures() {
    const NUMBERS: &[&str] =
        &["a1b2c3d4", "a1b23c4d", "a1b2cd34", "d4c3b2a1", "4d3cb2a1", "0a0d0d0a", "1a2b3c4d"];
    let mut files = Vec::new();
    for folder in ["crates", "guest", "fuzz", "tests"] {
        sources(&root().join(folder), &mut files);
    }
    let own = root().join("crates/capture");
    files.retain(|file| !file.starts_with(&own) && !file.ends_with("tests/house.rs"));
    assert!(files.len() > 100, "the sources are elsewhere");
    let mut failures = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file").to_lowercase();
        // As one number with or without underscores, as bytes of a string, as elements of an array.
        let digits = text.replace("0x", "").replace("\\x", "").replace(['_', ',', ' '], "");
        if let Some(number) = NUMBERS.iter().find(|number| digits.contains(**number)) {
            failures.push(format!("{}: {number}", file.display()));
        }
    }
    assert!(failures.is_empty(), "use the capture crate instead:\n{}", failures.join("\n"));
}

/// Thread boxes have no isolation: they are for benchmarks and tests.
#[test]
fn only_benchmarks_and_tests_run_boxes_in_threads() {
    for (_, path) in crates().into_iter().filter(|(name, _)| !matches!(name.as_str(), "sandbox" | "bench")) {
        let mut files = Vec::new();
        sources(&path.join("src"), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).expect("a source file");
            assert!(!text.contains("sandbox::thread"), "{} uses thread boxes", file.display());
        }
    }
}

#[test]
fn files_are_short_and_say_what_they_are() {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    sources(&root().join("guest"), &mut files);
    let mut failures = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file");
        let lines = text.lines().count();
        if lines > MOST_LINES {
            failures.push(format!("{}: {lines} lines", file.display()));
        }
        if !text.starts_with("//!") {
            failures.push(format!("{}: no module line", file.display()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_box_needs_no_operating_system() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("freestanding");
    let output = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--manifest-path"])
        .arg(root().join("tests/freestanding/Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .env_remove("RUSTFLAGS")
        .output()
        .expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
