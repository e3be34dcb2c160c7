//! Runs `testdata/corpus/**/*.test`: a configuration, and what it must have done, at every batch size.

#[path = "support/case.rs"]
mod case;
mod support;

use std::rc::Rc;

use case::{Case, cases};
use support::{BATCHES, Memory, expectations, run_with};

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

#[test]
fn the_corpus_ends_as_it_says() {
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
