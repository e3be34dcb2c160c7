//! Every class of the registry: documented, with an example that runs and ends as it says, at every batch size.

mod support;

use std::collections::BTreeSet;

use element::Class;
use support::{BATCHES, expectations, run};

fn classes() -> impl Iterator<Item = &'static Class> {
    elements::REGISTRY.iter().flat_map(|group| group.iter())
}

#[test]
fn every_example_ends_as_it_says() {
    let mut failures = Vec::new();
    for class in classes() {
        let info = class.info;
        for batch in BATCHES {
            match run(info.example, batch) {
                Ok(run) => {
                    let differences = expectations(&run, info.expect);
                    failures.extend(
                        differences.iter().map(|text| format!("{} (batch {batch}): {text}", info.name)),
                    );
                }
                Err(error) => failures.push(format!("{} (batch {batch}): {error}", info.name)),
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_class_is_documented() {
    let mut failures = Vec::new();
    for class in classes() {
        let info = class.info;
        let mut complain = |text: String| failures.push(format!("{}: {text}", info.name));
        if !info.summary.ends_with('.') || info.summary.len() > 120 {
            complain(format!("summary `{}` is not one sentence of at most 120 bytes", info.summary));
        }
        if !info.example.contains(info.name) {
            complain("the example does not use it".into());
        }
        for argument in info.arguments() {
            if !argument.summary.ends_with('.') {
                complain(format!("argument {} has no summary sentence", argument.keyword));
            }
        }
        let handlers = class.handlers().into_iter().map(|handler| (handler.name, handler.summary));
        for (name, summary) in
            handlers.chain(class.numbered.map(|(prefix, summary)| (prefix.into(), summary)))
        {
            if !summary.ends_with('.') {
                complain(format!("handler {name} has no summary sentence"));
            }
        }
        // What the text says of drops is what the class declares.
        for (_, rest) in info
            .description
            .match_indices("dropped as `")
            .map(|(at, found)| info.description.split_at(at + found.len()))
        {
            let named = rest.split('`').next().unwrap_or_default();
            if !info.drops.iter().any(|reason| reason.name() == named) {
                complain(format!("`{named}` is not among its drops"));
            }
        }
        for other in info.see {
            if elements::class(other).is_none() {
                complain(format!("see {other}, which does not exist"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn names_are_unique_and_files_are_named_after_them() {
    let mut names = BTreeSet::new();
    for class in classes() {
        for name in [class.info.name].iter().chain(class.info.aliases) {
            assert!(names.insert(*name), "{name} is there twice");
        }
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(class.info.group);
        assert!(folder.is_dir(), "{}: no group {}", class.info.name, class.info.group);
        let file = folder.join(class.info.name.to_lowercase() + ".rs");
        assert!(file.is_file(), "{}: no file {}", class.info.name, file.display());
    }
}
