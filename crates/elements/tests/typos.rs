//! One mistake in a configuration gives one error: what only follows from it is not shown.

mod support;

use std::fs;
use std::path::Path;
use std::rc::Rc;

use click_lang::{Options, Severity};
use router::Registry;
use support::Memory;

/// The errors of a check that a user sees.
fn errors(text: &str) -> Vec<String> {
    let is_class = |name: &str| elements::class(name).is_some();
    let names: Vec<&str> = elements::DOCUMENTATION.iter().copied().flatten().map(|page| page.name).collect();
    let options = Options { class_names: &names, ..Options::new("config", &is_class) };
    let compiled = click_lang::compile(text, &options);
    let found = router::check(compiled, Registry::new(elements::REGISTRY), Rc::new(Memory::connected()));
    let shown = found.iter().filter(|found| found.severity == Severity::Error && !found.is_consequence);
    shown.map(|found| format!("{found} ({:?})", found.hint)).collect()
}

/// The examples that users start from.
fn examples() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut found: Vec<(String, String)> = fs::read_dir(folder)
        .expect("the examples")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "click"))
        .map(|path| (path.display().to_string(), fs::read_to_string(&path).expect("text")))
        .collect();
    found.sort();
    assert!(found.len() > 5, "the examples are missing");
    found
}

/// A mistake: replaces `from` by `to` in a line that contains `line`.
struct Typo {
    line: &'static str,
    from: &'static str,
    to: &'static str,
}

const TYPOS: &[Typo] = &[
    Typo { line: " -> Discard;", from: "Discard", to: "Disacrd" },
    Typo { line: "Counter", from: "Counter", to: "Conuter" },
    Typo { line: ":: ", from: " :: ", to: " : " },
    Typo { line: "-> ", from: "-> ", to: "> " },
    Typo { line: "-> ", from: "-> ", to: "- " },
    Typo { line: ");", from: ");", to: ";" },
    Typo { line: ";", from: ";", to: "" },
    Typo { line: "elementclass", from: "elementclass", to: "elementclas" },
    Typo { line: "}", from: "}", to: "" },
    Typo { line: "FromDevice(", from: "FromDevice(", to: "FromDevice" },
    Typo { line: "allow", from: "allow", to: "alow" },
    Typo { line: "dst ", from: "dst ", to: "dts " },
    Typo { line: "/24", from: "/24", to: "/42" },
    Typo { line: "LIMIT", from: "LIMIT", to: "LIMT" },
    Typo { line: "Queue", from: "Queue", to: "Quue" },
];

#[test]
fn one_typo_gives_one_error() {
    let (mut failures, mut tried) = (Vec::new(), 0);
    for (name, text) in examples() {
        let before = errors(&text);
        assert!(before.is_empty(), "{name}: {before:?}");
        for typo in TYPOS {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let is_code = |line: &&str| !line.trim_start().starts_with("//") && !line.contains("/*");
            for (number, line) in
                lines.iter().enumerate().filter(|(_, line)| is_code(line) && line.contains(typo.line))
            {
                let wrong = line.replacen(typo.from, typo.to, 1);
                let all: String = lines
                    .iter()
                    .enumerate()
                    .map(|(at, line)| if at == number { &wrong } else { *line })
                    .collect();
                let found = errors(&all);
                tried += 1;
                // Most semicolons may be left out.
                let may_be_right = typo.from == ";" && found.is_empty();
                if found.len() != 1 && !may_be_right {
                    failures.push(format!(
                        "{name}:{}: {}\n    {}",
                        number + 1,
                        wrong.trim(),
                        found.join("\n    ")
                    ));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} of {tried}:\n{}", failures.len(), failures.join("\n"));
}
