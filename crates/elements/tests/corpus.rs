//! Runs `testdata/corpus/**/*.test`: a configuration, and what it must have done, at every batch size.
//!
//! A file has sections, each begun by a line: `%config`, then any of `%expect` (`path = value` lines, `\n` for line
//! ends), `%console` (the lines written to the log), `%error` (lines of which each must stand in the error that the
//! configuration must give) and `%file NAME` (a file that it finds).

mod support;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use support::{BATCHES, Memory, expectations, run_with};

#[derive(Default)]
struct Case {
    config: String,
    expect: String,
    console: Option<String>,
    error: Option<String>,
    files: Vec<(String, String)>,
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

fn check(case: &Case, batch: usize) -> Vec<String> {
    let memory = Rc::new(Memory::default());
    for (name, content) in &case.files {
        memory.put(name, content.as_bytes());
    }
    let run = match run_with(&case.config, batch, memory) {
        Ok(run) if case.error.is_none() => run,
        Ok(_) => return vec!["there was no error".into()],
        Err(error) => {
            let wanted = case.error.as_deref().unwrap_or("no error");
            let missing = wanted.lines().filter(|line| !error.contains(line.trim()));
            return missing.map(|line| format!("`{line}` is not in the error:\n{error}")).collect();
        }
    };
    let mut failures = expectations(&run, &case.expect);
    if let Some(wanted) = &case.console {
        let console = run.memory.console();
        if console.trim_end() != wanted.trim_end() {
            failures.push(format!("the console has:\n{console}"));
        }
    }
    failures
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

#[test]
fn the_corpus_ends_as_it_says() {
    let mut found = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/corpus"), &mut found);
    found.sort();
    assert!(!found.is_empty(), "no corpus");
    let mut failures = Vec::new();
    for path in found {
        let name = path.display();
        let text = std::fs::read_to_string(&path).expect("a readable file");
        match parse(&text) {
            Ok(case) => {
                for batch in BATCHES {
                    failures.extend(
                        check(&case, batch).iter().map(|text| format!("{name} (batch {batch}): {text}")),
                    );
                }
            }
            Err(error) => failures.push(format!("{name}: {error}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
