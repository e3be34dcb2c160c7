//! Checks the written documents: link targets and named tests exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files below `folder` with this extension, except build folders.
fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                files(&path, ending, found);
            }
        } else if name.ends_with(ending) {
            found.push(path);
        }
    }
}

fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&root(), ".md", &mut found);
    assert!(found.len() > 10, "no documents");
    found
}

/// The texts between each `open` and the next `close`.
fn between<'a>(text: &'a str, open: &str, close: char) -> impl Iterator<Item = &'a str> {
    text.split(open).skip(1).filter_map(move |rest| rest.split_once(close)).map(|(inside, _)| inside)
}

/// Whether a document has a heading with this anchor: its words in lower case, joined by hyphens.
fn has_heading(document: &str, anchor: &str) -> bool {
    let headings = document.lines().filter(|line| line.starts_with('#'));
    let anchors = headings.map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        title.replace(|letter: char| !letter.is_alphanumeric() && letter != '-' && letter != '_', "")
    });
    anchors.into_iter().any(|found| found == anchor)
}

#[test]
fn links_have_targets() {
    let mut failures = Vec::new();
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a document");
        for link in between(&text, "](", ')').filter(|link| !link.contains("://")) {
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match target {
                "" => path.clone(),
                _ => path.parent().expect("a folder").join(target),
            };
            let is_there = match anchor {
                "" => target.exists(),
                _ => fs::read_to_string(&target).is_ok_and(|text| has_heading(&text, anchor)),
            };
            if !is_there {
                failures.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A name in backquotes with two or more underscores is a test function's: no other kind of name is that long here.
fn is_test(name: &str) -> bool {
    name.matches('_').count() > 1
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit())
}

#[test]
fn named_tests_exist() {
    let mut sources = Vec::new();
    for folder in ["crates", "fuzz", "guest", "tests"] {
        files(&root().join(folder), ".rs", &mut sources);
    }
    let mut functions = BTreeSet::new();
    for path in sources {
        let text = fs::read_to_string(&path).expect("a source file");
        functions.extend(between(&text, "fn ", '(').map(str::to_string));
    }
    let mut failures = Vec::new();
    let mut named =
        ["ARCHITECTURE.md", "SPECIFICATION.md", "THREAT_MODEL.md"].map(|name| root().join(name)).to_vec();
    let alone = named.len();
    files(&root().join("docs/architecture"), ".md", &mut named);
    assert!(named.len() > alone, "no parts of the architecture");
    for path in named {
        let text = fs::read_to_string(&path).expect("a document");
        // Fenced blocks contain no names in backquotes.
        for part in text.split("```").step_by(2) {
            for (place, word) in part.split('`').enumerate() {
                if place % 2 == 1 && is_test(word) && !functions.contains(word) {
                    failures.push(format!("{}: {word}", path.display()));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
