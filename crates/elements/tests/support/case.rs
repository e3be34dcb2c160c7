//! The cases of `testdata/corpus`: a configuration, and what it must have done.
//!
//! A file has sections, each started by a line:
//!
//! - `%config`: the configuration;
//! - `%expect`: `path = value` lines, with `\n` for line ends;
//! - `%console`: the lines written to the log, none by default;
//! - `%error`: the lines of the error with which the configuration is rejected, without file names and line numbers;
//! - `%file NAME`: a file that the configuration reads;
//! - `%output NAME`: the text of a file that it writes.

use std::path::{Path, PathBuf};

/// One case.
#[derive(Default)]
pub(crate) struct Case {
    pub(crate) config: String,
    pub(crate) expect: String,
    pub(crate) console: String,
    pub(crate) error: Option<String>,
    pub(crate) files: Vec<(String, String)>,
    /// Names and contents of the files that the configuration writes, except those of `files`.
    #[allow(dead_code, reason = "boxes do not return files")]
    pub(crate) outputs: Vec<(String, String)>,
}

fn parse(text: &str) -> Result<Case, String> {
    let mut case = Case::default();
    let mut section = String::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('%') {
            section = name.trim().to_string();
            match section.split_once(' ') {
                Some(("file", name)) => case.files.push((name.trim().to_string(), String::new())),
                Some(("output", name)) => case.outputs.push((name.trim().to_string(), String::new())),
                _ if section == "error" => case.error = Some(String::new()),
                _ => {}
            }
            continue;
        }
        let part = match section.as_str() {
            "config" => &mut case.config,
            "expect" => &mut case.expect,
            "console" => &mut case.console,
            "error" => case.error.get_or_insert_default(),
            name if name.starts_with("file ") => match case.files.last_mut() {
                Some((_, content)) => content,
                None => return Err("a file without a name".into()),
            },
            name if name.starts_with("output ") => match case.outputs.last_mut() {
                Some((_, content)) => content,
                None => return Err("an output without a name".into()),
            },
            "" if line.trim().is_empty() || line.starts_with("//") => continue,
            other => return Err(format!("unknown section `{other}`")),
        };
        part.push_str(line);
        part.push('\n');
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
