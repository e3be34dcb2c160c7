//! The cases of `testdata/corpus`: a configuration, and what it must have done.
//!
//! A file has sections, each begun by a line: `%config`, then any of `%expect` (`path = value` lines, `\n` for line
//! ends), `%console` (the lines written to the log), `%error` (lines of which each must stand in the error that the
//! configuration must give) and `%file NAME` (a file that it finds).

use std::path::{Path, PathBuf};

/// One case.
#[derive(Default)]
pub(crate) struct Case {
    pub(crate) config: String,
    pub(crate) expect: String,
    pub(crate) console: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) files: Vec<(String, String)>,
}

fn parse(text: &str) -> Result<Case, String> {
    let mut case = Case::default();
    let mut section = String::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('%') {
            section = name.trim().to_string();
            match section.split_once(' ') {
                Some(("file", name)) => case.files.push((name.trim().to_string(), String::new())),
                _ if section == "console" => case.console = Some(String::new()),
                _ if section == "error" => case.error = Some(String::new()),
                _ => {}
            }
            continue;
        }
        let place = match section.as_str() {
            "config" => &mut case.config,
            "expect" => &mut case.expect,
            "console" => case.console.get_or_insert_default(),
            "error" => case.error.get_or_insert_default(),
            name if name.starts_with("file ") => match case.files.last_mut() {
                Some((_, content)) => content,
                None => return Err("a file without a name".into()),
            },
            "" if line.trim().is_empty() || line.starts_with("//") => continue,
            other => return Err(format!("unknown section `{other}`")),
        };
        place.push_str(line);
        place.push('\n');
    }
    Ok(case)
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = folder.read_dir() else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "test") {
            found.push(path);
        }
    }
}

/// All cases with the names of their files, in order.
pub(crate) fn cases() -> Vec<(String, Result<Case, String>)> {
    let mut found = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/corpus"), &mut found);
    found.sort();
    assert!(!found.is_empty(), "no corpus");
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        (path.display().to_string(), parse(&text))
    };
    found.into_iter().map(read).collect()
}
