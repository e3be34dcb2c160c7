//! The reference in `docs/elements` equals the program's output: a page for each class, an index, and a page of
//! differences from Click. `UPDATE_DOCS=1 cargo test -p cli --test reference` writes it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/elements")
}

fn clickbox(arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_clickbox")).args(arguments).output().expect("the program starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn text<'a>(entry: &'a Value, key: &str) -> &'a str {
    entry[key].as_str().unwrap_or_default()
}

/// All files of the reference, by name.
fn pages() -> BTreeMap<String, String> {
    let entries: Vec<Value> = serde_json::from_str(&clickbox(&["element", "--json"])).expect("a list");
    let mut pages = BTreeMap::new();
    for entry in &entries {
        let name = text(entry, "name");
        pages.insert(format!("{name}.md"), clickbox(&["element", name, "--markdown"]));
    }
    pages.insert("README.md".into(), index(&entries));
    pages.insert("DIFFERENCES.md".into(), differences(&entries));
    pages
}

/// All classes by group, in the order of the registry.
fn index(entries: &[Value]) -> String {
    let mut page = String::from("# Elements\n\n");
    let _ = writeln!(
        page,
        "{} classes by group. Each page is the output of `clickbox element NAME --markdown`, generated from the code.\n\
         [DIFFERENCES](DIFFERENCES.md) lists the differences from Click's classes.",
        entries.len()
    );
    let mut group = "";
    for entry in entries {
        if text(entry, "group") != group {
            group = text(entry, "group");
            let _ = writeln!(page, "\n## {group}\n\n| class | |\n|---|---|");
        }
        let name = text(entry, "name");
        let _ = writeln!(page, "| [{name}]({name}.md) | {} |", text(entry, "summary").replace('|', "\\|"));
    }
    page
}

/// The section "Differences" of every class that has one.
fn differences(entries: &[Value]) -> String {
    let mut page = String::from(
        "# Differences from Click, element by element\n\n\
         A class that is not listed here should behave like Click's class of the same name.\n",
    );
    for entry in entries {
        let Some((_, section)) = text(entry, "description").split_once("## Differences\n") else { continue };
        let section = section.split("\n## ").next().unwrap_or_default().trim();
        let name = text(entry, "name");
        let _ = writeln!(page, "\n## [{name}]({name}.md)\n\n{section}");
    }
    page
}

#[test]
fn the_reference_is_fresh() {
    let pages = pages();
    let folder = folder();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::remove_dir_all(&folder).ok();
        fs::create_dir_all(&folder).expect("a folder");
        for (name, page) in &pages {
            fs::write(folder.join(name), page).expect("a page");
        }
        return;
    }
    let is_stale =
        |name: &str, page: &String| fs::read_to_string(folder.join(name)).ok().as_ref() != Some(page);
    let mut stale: Vec<String> =
        pages.iter().filter(|(name, page)| is_stale(name, page)).map(|(name, _)| name.clone()).collect();
    let files = fs::read_dir(&folder).expect("docs/elements").flatten();
    let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    stale.extend(names.filter(|name| !pages.contains_key(name)));
    assert!(stale.is_empty(), "stale: {}; run with UPDATE_DOCS=1", stale.join(", "));
}

#[test]
fn differences_have_their_own_heading() {
    for (name, page) in pages() {
        assert!(!page.contains("\n# Differences"), "{name}: the heading is `## Differences`");
    }
}
