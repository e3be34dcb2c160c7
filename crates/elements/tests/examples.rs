//! Every class of the registry is documented, and its example gives the listed results at every batch size.

mod support;

use std::collections::BTreeSet;
use std::rc::Rc;

use element::{Class, ClassDocumentation};
use support::{BATCHES, Memory, books, expectations, run_with};

/// The crates with elements.
const CRATES: [&str; 5] =
    ["flow-elements", "header-elements", "ipsec-elements", "trace-elements", "traffic-elements"];

fn classes() -> impl Iterator<Item = &'static Class> {
    elements::REGISTRY.iter().flat_map(|group| group.iter())
}

/// Each class with its documentation.
fn pages() -> impl Iterator<Item = (&'static Class, &'static ClassDocumentation)> {
    classes().zip(elements::DOCUMENTATION.iter().copied().flatten().copied())
}

#[test]
fn every_example_gives_the_expected_values() {
    let mut failures = Vec::new();
    for (_, page) in pages() {
        for batch in BATCHES {
            match run_with(page.example, batch, Rc::new(Memory::connected())) {
                Ok(run) => {
                    let mut differences = expectations(&run, page.expect);
                    differences.extend(books::check(&run));
                    failures.extend(
                        differences.iter().map(|text| format!("{} (batch {batch}): {text}", page.name)),
                    );
                }
                Err(error) => failures.push(format!("{} (batch {batch}): {error}", page.name)),
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Whether a text has this word outside its comments.
fn uses(text: &str, word: &str) -> bool {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let mut words = code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.any(|found| found == word)
}

#[test]
fn every_class_is_documented() {
    let mut failures = Vec::new();
    assert_eq!(classes().count(), elements::DOCUMENTATION.iter().copied().flatten().count());
    for (class, page) in pages() {
        let info = class.info;
        let mut report = |text: String| failures.push(format!("{}: {text}", info.name));
        if page.name != info.name {
            report(format!("its documentation is that of {}", page.name));
        }
        if !page.summary.ends_with('.') || page.summary.len() > 120 {
            report(format!("summary `{}` is not one sentence of at most 120 bytes", page.summary));
        }
        if !uses(page.example, info.name) && !info.aliases.iter().any(|alias| uses(page.example, alias)) {
            report("the example does not use it".into());
        }
        if page.arguments().count() != info.arguments().count() {
            report("arguments and their summaries differ in number".into());
        }
        for (argument, summary) in info.arguments().zip(page.arguments()) {
            if !summary.ends_with('.') {
                report(format!("argument {} has no summary sentence", argument.keyword));
            }
        }
        let handlers = class.handlers().into_iter().map(|handler| (handler.name, handler.summary));
        for (name, summary) in
            handlers.chain(class.numbered.map(|(prefix, summary)| (prefix.into(), summary)))
        {
            if !summary.ends_with('.') {
                report(format!("handler {name} has no summary sentence"));
            }
        }
        // The drop reasons in the text are those that the class declares.
        for (_, rest) in page
            .description
            .match_indices("dropped as `")
            .map(|(at, found)| page.description.split_at(at + found.len()))
        {
            let named = rest.split('`').next().unwrap_or_default();
            if !info.drops.iter().any(|reason| reason.name() == named) {
                report(format!("`{named}` is not among its drops"));
            }
        }
        for other in page.see {
            if elements::class(other).is_none() {
                report(format!("see {other}, which does not exist"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn names_are_unique_and_files_are_named_after_them() {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut names = BTreeSet::new();
    let registry = router::Registry::new(elements::REGISTRY);
    for class in classes() {
        let others = class.info.other_names.iter().map(|other| &other.name);
        for name in [class.info.name].iter().chain(class.info.aliases).chain(others) {
            assert!(names.insert(*name), "{name} is there twice");
            let found = registry.find(name).map(|found| found.info.name);
            assert_eq!(found, Some(class.info.name), "the class called {name}");
        }
        let (group, file) = (class.info.group, class.info.name.to_lowercase() + ".rs");
        let folders = CRATES.map(|name| crates.join(name).join("src").join(group));
        let found: Vec<_> = folders.iter().filter(|folder| folder.is_dir()).collect();
        let [folder] = found[..] else {
            panic!("{}: {} folders of the group {group}", class.info.name, found.len())
        };
        assert!(folder.join(&file).is_file(), "{}: no file {file} in {}", class.info.name, folder.display());
    }
}
