//! No import cycles: the modules of a crate, which are its files, import each other in one direction only.
//!
//! Re-exports in a `mod.rs` are resolved: an import of `crate::fabric::Port` counts as an import of the file that
//! defines `Port`. Tests at the end of a file are ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Crates that still have cycles. The list may only get shorter.
const CIRCULAR: &[&str] = &["bench"];

/// A module's path from the crate's root; the root is the empty path.
type Module = Vec<String>;

/// The references of a module's file.
#[derive(Default)]
struct Source {
    /// The absolute paths that it uses, including the item's name.
    uses: BTreeSet<Vec<String>>,
    /// The names that it re-exports, with their target paths. `*` means all names.
    exports: Vec<(String, Vec<String>)>,
}

/// The words and symbols of a source text, without comments, string literals, and the tests at its end.
fn tokens(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if first.is_alphanumeric() || first == '_' {
            rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
        } else if rest.starts_with("//") {
            rest = rest.split_once('\n').map_or("", |(_, below)| below);
            continue;
        } else if first == '"' {
            rest = after_text(&rest[1..]);
            continue;
        } else if rest.starts_with("'\"'") {
            3
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        if !first.is_whitespace() {
            tokens.push(rest[..length].to_string());
        }
        rest = &rest[length..];
    }
    tokens
}

/// The text after a string literal whose opening quote was consumed.
fn after_text(mut rest: &str) -> &str {
    while let Some(at) = rest.find(['"', '\\']) {
        let is_end = rest[at..].starts_with('"');
        let step = if is_end { 1 } else { 1 + rest[at + 1..].chars().next().map_or(0, char::len_utf8) };
        rest = &rest[at + step..];
        if is_end {
            return rest;
        }
    }
    ""
}

/// The paths of the use tree at the start of `tokens`, each with its local name.
fn tree(tokens: &[String], at: &mut usize, before: &[String], found: &mut Vec<(String, Vec<String>)>) {
    let mut path = before.to_vec();
    while let Some(token) = tokens.get(*at).map(String::as_str) {
        match token {
            "{" => {
                *at += 1;
                while tokens.get(*at).is_some_and(|token| token != "}") {
                    tree(tokens, at, &path, found);
                    if tokens.get(*at).is_some_and(|token| token == ",") {
                        *at += 1;
                    }
                }
                *at += 1;
                return;
            }
            "::" => *at += 1,
            "*" => {
                *at += 1;
                found.push(("*".into(), path));
                return;
            }
            word if word.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                path.push(word.to_string());
                *at += 1;
                match tokens.get(*at).map(String::as_str) {
                    Some("::") => {}
                    Some("as") => {
                        let name = tokens.get(*at + 1).cloned().unwrap_or_default();
                        *at += 2;
                        found.push((name, path));
                        return;
                    }
                    _ => {
                        found.push((path.last().cloned().unwrap_or_default(), path));
                        return;
                    }
                }
            }
            _ => return,
        }
    }
}

/// A path relative to the crate's root; `None` for another crate's.
fn absolute(path: &[String], module: &Module, modules: &BTreeSet<Module>) -> Option<Vec<String>> {
    let mut from = match path.first()?.as_str() {
        "crate" => return Some(path[1..].to_vec()),
        "self" | "super" => module.clone(),
        child => {
            let below = [&module[..], &[child.to_string()]].concat();
            modules.contains(&below).then_some(())?;
            return Some([&module[..], path].concat());
        }
    };
    let mut rest = path;
    while let Some(("self" | "super", tail)) = rest.split_first().map(|(first, tail)| (first.as_str(), tail))
    {
        if rest[0] == "super" {
            from.pop()?;
        }
        rest = tail;
    }
    Some([&from[..], rest].concat())
}

impl Source {
    fn read(text: &str, module: &Module, modules: &BTreeSet<Module>) -> Source {
        let tokens = tokens(text);
        let mut source = Source::default();
        let mut at = 0;
        while at < tokens.len() {
            let is_path = tokens.get(at + 1).is_some_and(|next| next == "::");
            let goes_on = at > 0 && tokens[at - 1] == "::";
            if tokens[at] == "use" {
                let is_export = at > 0 && (tokens[at - 1] == "pub" || tokens[at - 1] == ")");
                let mut found = Vec::new();
                at += 1;
                tree(&tokens, &mut at, &[], &mut found);
                for (name, path) in found {
                    match absolute(&path, module, modules) {
                        Some(path) if is_export => source.exports.push((name, path)),
                        Some(path) => drop(source.uses.insert(path)),
                        None => {}
                    }
                }
            } else if is_path && !goes_on && tokens[at].starts_with(|c: char| c.is_alphabetic()) {
                let mut path = vec![tokens[at].clone()];
                while tokens.get(at + 1).is_some_and(|next| next == "::")
                    && tokens.get(at + 2).is_some_and(|word| word.starts_with(|c: char| c.is_alphabetic()))
                {
                    path.push(tokens[at + 2].clone());
                    at += 2;
                }
                source.uses.extend(absolute(&path, module, modules));
                at += 1;
            } else {
                at += 1;
            }
        }
        source
    }
}

/// The module that defines the item at a path, resolved through re-exports.
fn owner(path: &[String], sources: &BTreeMap<Module, Source>, depth: usize) -> Module {
    let length = (0..=path.len()).rev().find(|length| sources.contains_key(&path[..*length])).unwrap_or(0);
    let module = path[..length].to_vec();
    let Some(name) = path.get(length).filter(|_| depth > 0) else { return module };
    let exports = &sources[&module].exports;
    let named = exports.iter().find(|(export, _)| export == name);
    match named {
        Some((_, target)) => owner(target, sources, depth - 1),
        None => module,
    }
}

/// All modules of a crate with their references.
fn sources(folder: &Path) -> BTreeMap<Module, Source> {
    fn collect(folder: &Path, module: &Module, texts: &mut BTreeMap<Module, String>) {
        for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a plain name").to_string();
            let below = [&module[..], std::slice::from_ref(&name)].concat();
            if path.is_dir() {
                collect(&path, &below, texts);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let is_root = matches!(name.as_str(), "mod" | "lib" | "main");
                let text = fs::read_to_string(&path).expect("a source file");
                texts.insert(if is_root { module.clone() } else { below }, text);
            }
        }
    }
    let mut texts = BTreeMap::new();
    collect(folder, &Vec::new(), &mut texts);
    let modules: BTreeSet<Module> = texts.keys().cloned().collect();
    let read = |(module, text): (Module, String)| {
        let source = Source::read(&text, &module, &modules);
        (module, source)
    };
    texts.into_iter().map(read).collect()
}

/// The modules that each module imports from.
fn imports(sources: &BTreeMap<Module, Source>) -> BTreeMap<String, BTreeSet<String>> {
    let name = |module: &Module| if module.is_empty() { "crate".into() } else { module.join("::") };
    let edges = sources.iter().map(|(module, source)| {
        let owners = source.uses.iter().map(|path| owner(path, sources, 8));
        (name(module), owners.filter(|owner| owner != module).map(|owner| name(&owner)).collect())
    });
    edges.collect()
}

/// Groups of modules that import each other, directly or indirectly.
fn circles(imports: &BTreeMap<String, BTreeSet<String>>) -> Vec<BTreeSet<String>> {
    let reachable = |from: &String| {
        let mut found = BTreeSet::new();
        let mut open: Vec<&String> = imports[from].iter().collect();
        while let Some(module) = open.pop() {
            if found.insert(module.clone()) {
                open.extend(&imports[module]);
            }
        }
        found
    };
    let reach: BTreeMap<&String, BTreeSet<String>> =
        imports.keys().map(|module| (module, reachable(module))).collect();
    let mut circles = Vec::new();
    for (module, found) in &reach {
        if found.contains(*module) {
            let circle: BTreeSet<String> =
                found.iter().filter(|other| reach[other].contains(*module)).cloned().collect();
            if !circles.contains(&circle) {
                circles.push(circle);
            }
        }
    }
    circles
}

#[test]
fn modules_import_in_one_direction() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut failures = String::new();
    for path in fs::read_dir(folder).expect("the crates").flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a plain name");
        let imports = imports(&sources(&path.join("src")));
        if CIRCULAR.contains(&name) {
            continue;
        }
        for circle in circles(&imports) {
            failures += &format!("{name}: a circle of {} modules\n", circle.len());
            for module in &circle {
                let others: Vec<_> = imports[module].intersection(&circle).cloned().collect();
                failures += &format!("  {module} imports from {}\n", others.join(", "));
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn circles_are_found_through_reexports() {
    let text = |module: &[&str], text: &str| {
        (module.iter().map(|word| word.to_string()).collect::<Module>(), text.to_string())
    };
    let texts = [
        text(&[], "mod a; mod b; mod c; fn main() { a::run(); }"),
        text(&["a"], "mod x; mod y; pub(crate) use x::{One, Two as Other}; pub(crate) use y::run;"),
        text(&["a", "x"], "use crate::b::{self, Thing};\npub struct One;"),
        text(
            &["a", "y"],
            "use super::One; // use crate::c;\npub fn run() { \"crate::c::f\"; crate::b::go(); }",
        ),
        text(&["b"], "pub struct Thing; pub fn go() { super::c::act() }"),
        text(&["c"], "use crate::a::Other;\n#[cfg(test)]\nmod tests { use crate::a::run; }"),
    ];
    let modules: BTreeSet<Module> = texts.iter().map(|(module, _)| module.clone()).collect();
    let read = |(module, text): (Module, String)| {
        let source = Source::read(&text, &module, &modules);
        (module, source)
    };
    let imports = imports(&texts.map(read).into_iter().collect());
    let of = |module: &str| imports[module].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!((of("crate"), of("a")), (vec!["a::y"], vec![]));
    assert_eq!((of("a::x"), of("a::y")), (vec!["b"], vec!["a::x", "b"]));
    assert_eq!((of("b"), of("c")), (vec!["c"], vec!["a::x"]));
    let expected = ["a::x", "b", "c"].map(String::from).into();
    assert_eq!(circles(&imports), [expected]);
}
