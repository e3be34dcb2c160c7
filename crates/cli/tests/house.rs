//! Project rules that no compiler checks: dependencies between crates, crates that may use `unsafe`, and the length of
//! files.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates that may use `unsafe`.
const UNSAFE: &[&str] = &["packet", "boundary", "sandbox", "switch"];

/// Files of other crates that may: tests that hold the memory of a box, and this file, which names the lint.
const EXEMPT: &[&str] = &["engine/tests/support/mod.rs", "cli/tests/house.rs"];

/// Maximum number of lines of a source file.
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

/// The crates that each crate may depend on (not counting tests), as listed in ARCHITECTURE.md: `names -> names`. A
/// line that begins with a space continues the previous line's list.
fn arrows() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let section = text.split("## Who may depend on whom").nth(1).expect("the section with the arrows");
    let list = section.split("```").nth(1).expect("the list of arrows").trim_start_matches("text\n");
    let list = list.replace("\n ", " ");
    let mut arrows = BTreeMap::new();
    for line in list.lines().filter(|line| !line.trim().is_empty()) {
        let (from, to) = line.split_once("->").expect("an arrow");
        let words = to.split([',', ' ']).filter(|word| !word.is_empty() && *word != "nothing");
        let to: BTreeSet<String> = words.map(str::to_string).collect();
        for name in from.split_whitespace() {
            let twice = arrows.insert(name.to_string(), to.clone());
            assert!(twice.is_none(), "ARCHITECTURE.md lists the arrows of {name} twice");
        }
    }
    arrows
}

/// The packages of the workspace, from cargo's metadata, which covers every section and form of a dependency.
fn packages() -> Vec<Value> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(root());
    let output = cargo.output().expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

/// A package's dependencies except those for tests: names, and whether they are in the workspace.
fn dependencies(package: &Value) -> impl Iterator<Item = (&str, bool)> {
    let all = package["dependencies"].as_array().expect("dependencies").iter();
    let relevant = all.filter(|dependency| dependency["kind"] != "dev");
    relevant.map(|found| (found["name"].as_str().expect("a name"), found["path"].is_string()))
}

#[test]
fn dependencies_follow_the_arrows() {
    let (mut arrows, mut failures) = (arrows(), Vec::new());
    for package in packages() {
        let name = package["name"].as_str().expect("a name");
        let Some(listed) = arrows.remove(name) else {
            failures.push(format!("{name} is not among the arrows of ARCHITECTURE.md"));
            continue;
        };
        let found = dependencies(&package).filter(|(_, is_ours)| *is_ours).map(|(name, _)| name.to_string());
        let found: BTreeSet<String> = found.collect();
        failures.extend(found.difference(&listed).map(|to| format!("{name} depends on {to}")));
        failures.extend(listed.difference(&found).map(|to| format!("{name} does not depend on {to}")));
    }
    failures.extend(arrows.keys().map(|name| format!("there is no crate {name}")));
    assert!(failures.is_empty(), "otherwise than ARCHITECTURE.md says:\n{}", failures.join("\n"));
}

#[test]
fn every_crate_is_in_the_table_of_architecture() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let missing: Vec<_> =
        crates().into_keys().filter(|name| !text.contains(&format!("| `{name}` |"))).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md says nothing about {missing:?}");
}

/// The ciphers of IPsec, which only well-reviewed crates should implement.
const CIPHERS: [&str; 4] = ["aes", "cbc", "hmac", "sha1"];

/// All code in the built-in image is our own, but for ciphers: the engine, the elements, and their dependencies.
#[test]
fn code_in_boxes_depends_on_this_workspace_only() {
    let packages = packages();
    let find = |name: &str| packages.iter().find(|package| package["name"] == name).expect("a package");
    let (mut open, mut seen, mut failures) =
        (vec!["engine", "elements", "function"], BTreeSet::new(), Vec::new());
    while let Some(name) = open.pop() {
        let package = find(name);
        let targets = package["targets"].as_array().expect("targets");
        // The dependencies of a macro are not part of the program.
        let is_macro = targets.iter().any(|target| target["kind"][0] == "proc-macro");
        if is_macro || !seen.insert(name) {
            continue;
        }
        for (dependency, is_ours) in dependencies(package) {
            match is_ours {
                true => open.push(dependency),
                false if name == "ipsec-elements" && CIPHERS.contains(&dependency) => {}
                false => failures.push(format!("{name} depends on {dependency}")),
            }
        }
    }
    assert!(seen.contains("packet") && seen.contains("elements"), "{seen:?}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A workspace lint denies `unsafe`. This test checks which crates lift it.
#[test]
fn only_the_listed_crates_use_unsafe() {
    let mut failures = Vec::new();
    for (name, path) in crates() {
        let manifest = fs::read_to_string(path.join("Cargo.toml")).expect("a manifest");
        if !manifest.contains("[lints]\nworkspace = true") {
            failures.push(format!("{name} does not take the lints of the workspace"));
        }
        if UNSAFE.contains(&name.as_str()) {
            continue;
        }
        let mut files = Vec::new();
        sources(&path, &mut files);
        for file in files.iter().filter(|file| !EXEMPT.iter().any(|exempt| file.ends_with(exempt))) {
            let text = fs::read_to_string(file).expect("a source file");
            if ["allow", "expect", "warn"].iter().any(|level| text.contains(&format!("{level}(unsafe_code")))
            {
                failures.push(format!("{} lifts the lint against `unsafe`", file.display()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The magic numbers of pcap and pcapng occur in one crate only, so that there is no second reader or writer.
#[test]
fn only_one_crate_reads_and_writes_captures() {
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

/// Thread boxes have no isolation, so only benchmarks and tests use them.
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
fn files_are_short_and_begin_with_a_module_line() {
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
