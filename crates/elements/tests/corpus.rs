//! Runs `testdata/corpus/**/*.test`: a configuration, and what it must have done, at every batch size.

#[path = "support/case.rs"]
mod case;
mod support;

use std::rc::Rc;

use case::{Case, cases};
use support::{BATCHES, Memory, books, expectations, run_with};

/// A line of an error, without the location that starts a heading.
fn without_location(line: &str) -> &str {
    let line = line.trim();
    line.find("While ").and_then(|start| line.get(start..)).unwrap_or(line)
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
            let wanted = case.error.as_deref().unwrap_or("no error").lines().map(str::trim);
            let is_equal = error.lines().map(without_location).eq(wanted);
            return if is_equal { Vec::new() } else { vec![format!("the error is:\n{error}")] };
        }
    };
    // Before handlers are read, because these may log, too.
    let console = run.memory.console();
    let mut failures = expectations(&run, &case.expect);
    failures.extend(books::check(&run));
    if console.trim_end() != case.console.trim_end() {
        failures.push(format!("the console has:\n{console}"));
    }
    for (name, text) in run.memory.files() {
        let is_input = case.files.iter().any(|(input, content)| *input == name && *content == text);
        let is_output = case
            .outputs
            .iter()
            .any(|(output, content)| *output == name && content.trim_end() == text.trim_end());
        if !is_input && !is_output {
            failures.push(format!("the file `{name}` has:\n{text}"));
        }
    }
    let missing = case.outputs.iter().filter(|(name, _)| run.memory.file(name).is_none());
    failures.extend(missing.map(|(name, _)| format!("there is no file `{name}`")));
    failures
}

#[test]
fn the_corpus_passes() {
    let mut failures = Vec::new();
    for (name, case) in cases() {
        match case {
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
