//! Tests of the guide in `docs/book`: its configurations pass `clickbox check`, and its commands print the output
//! shown.
//!
//! A block marked `click` is a configuration. If its first line is `// NAME.click`, later commands on the page can use
//! it under that name. In a block marked `console`, a line after `$ ` is a command, and the following lines are its
//! output, compared without regard to spacing. Lines after `> ` continue the command. A line `...` stands for any
//! lines; `...` at the end of a line stands for its rest. Other blocks are ignored. Pages about boxes have a
//! daemon of their own.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::Daemon;

/// A page is about what the image of a function does and not about its speed, and optimising it takes a minute.
const QUICK: &str = "profile.release.opt-level = 0\nprofile.release.package.click-lang.opt-level = 0\n\
     profile.release.package.memory.opt-level = 3\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project")
}

/// The environment of a page's commands.
struct Workspace {
    /// A folder with the project's examples.
    folder: PathBuf,
    /// The socket of the page's daemon, if it has one.
    socket: PathBuf,
}

/// A folder for the commands of a page, with the project's examples.
fn folder(page: &str) -> PathBuf {
    let book = Path::new(env!("CARGO_TARGET_TMPDIR")).join("book");
    let folder = book.join(page);
    fs::remove_dir_all(&folder).ok();
    fs::create_dir_all(&folder).expect("a folder");
    // Cargo reads it for the projects of functions in the folder.
    fs::create_dir_all(book.join(".cargo")).expect("a folder");
    fs::write(book.join(".cargo/config.toml"), QUICK).expect("a file");
    for name in ["examples", "testdata"] {
        std::os::unix::fs::symlink(root().join(name), folder.join(name)).expect("a link");
    }
    folder
}

/// Runs a command with `clickbox` and `click` on its PATH.
fn shell(command: &str, Workspace { folder, socket }: &Workspace) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_clickbox"));
    let programs = folder.join(".programs");
    fs::create_dir_all(&programs).expect("a folder");
    for name in ["click", "clickbox"] {
        std::os::unix::fs::symlink(program, programs.join(name)).ok();
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    Command::new("sh")
        .arg("-c")
        .arg(format!("exec 2>&1; {command}"))
        .current_dir(folder)
        .env("PATH", path)
        .env("LC_ALL", "C.UTF-8")
        .env("CLICKBOX_SOCKET", socket)
        .output()
        .expect("a shell")
}

/// Whether the lines match the expected ones, in which `...` stands for any lines.
fn matches(expected: &[&str], lines: &[&str]) -> bool {
    match expected.split_first() {
        None => lines.is_empty(),
        Some((&"...", rest)) => (0..=lines.len()).any(|skipped| matches(rest, &lines[skipped..])),
        Some((first, rest)) => lines.split_first().is_some_and(|(line, lines)| {
            let is_same = match first.strip_suffix(" ...") {
                Some(start) => line.trim_start().starts_with(start.trim_start()),
                None => first.split_whitespace().eq(line.split_whitespace()),
            };
            is_same && matches(rest, lines)
        }),
    }
}

fn check_configuration(text: &str, workspace: &Workspace) -> Option<String> {
    let name =
        text.lines().next().and_then(|line| line.strip_prefix("// ")).filter(|name| name.ends_with(".click"));
    let name = name.unwrap_or("unnamed.click");
    fs::write(workspace.folder.join(name), text).expect("a file");
    let output = shell(&format!("clickbox check {name}"), workspace);
    (!output.status.success()).then(|| format!("{text}\n{}", String::from_utf8_lossy(&output.stdout)))
}

fn check_console(text: &str, workspace: &Workspace) -> Vec<String> {
    let mut failures = Vec::new();
    for part in format!("\n{text}").split("\n$ ").skip(1) {
        let (first, mut expected) = part.split_once('\n').unwrap_or((part, ""));
        let mut command = first.to_string();
        while let Some(more) = expected.strip_prefix("> ") {
            let (line, rest) = more.split_once('\n').unwrap_or((more, ""));
            command += &format!("\n{line}");
            expected = rest;
        }
        let output = shell(&command, workspace);
        let printed = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<&str> = printed.trim_end().lines().collect();
        if !matches(&expected.trim_end().lines().collect::<Vec<_>>(), &lines) {
            failures.push(format!("$ {command}\nprints:\n{printed}instead of:\n{expected}"));
        }
    }
    failures
}

#[test]
fn the_guides_commands_print_the_output_shown() {
    let mut pages: Vec<_> = fs::read_dir(root().join("docs/book")).expect("the book").flatten().collect();
    pages.sort_by_key(fs::DirEntry::path);
    let mut failures = Vec::new();
    for page in pages {
        let name = page.file_name().to_string_lossy().into_owned();
        let text = fs::read_to_string(page.path()).expect("a page");
        let daemon = ["boxes.md", "functions-c.md", "functions.md", "packets.md", "ports.md", "services.md"]
            .contains(&name.as_str())
            .then(|| Daemon::start("book"));
        let folder = folder(&name);
        let socket = daemon.as_ref().map_or(folder.join("no-daemon"), Daemon::socket);
        let workspace = Workspace { folder, socket };
        for block in text.split("\n```").skip(1).step_by(2) {
            let (kind, body) = block.split_once('\n').unwrap_or((block, ""));
            let found = match kind {
                "click" => check_configuration(body, &workspace).into_iter().collect(),
                "console" => check_console(body, &workspace),
                _ => Vec::new(),
            };
            failures.extend(found.into_iter().map(|failure| format!("{name}: {failure}")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A table of a page: the cells of each row, without those of the head.
fn table<'t>(page: &'t str, head: &str) -> Vec<Vec<&'t str>> {
    let (_, rest) = page.split_once(head).unwrap_or_else(|| panic!("no table {head:?}"));
    let rows = rest.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

/// What is between backticks and could be the name of a class.
fn classes(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The page of configurations for Click names only classes that are missing here, and its numbers agree with its tables. With the
/// variable `CLICKBOX_CONFIGURATIONS`, a folder with the folders `conf` of FastClick and Click as `fastclick` and `click`, the page is
/// also compared with what they give.
#[test]
fn the_page_of_configurations_says_what_is_missing() {
    let page = fs::read_to_string(root().join("docs/book/click-configurations.md")).expect("the page");
    let missing =
        ["FastClick", "Click"].map(|name| table(&page, &format!("| configuration of {name} | lacks |")));
    let refused = table(&page, "| configuration | in FastClick | in Click | why |");
    let refused_of = [1, 2]
        .map(|column| refused.iter().map(|row| row[column]).filter(|cell| *cell != "–").collect::<Vec<_>>());
    let all = [90, 55];
    let [fastclick, click] = [0, 1].map(|of| all[of] - missing[of].len() - refused_of[of].len());
    for text in [
        format!("accepts {fastclick} of the 90 configurations of FastClick, and {click} of the 55 of Click"),
        format!(
            "refuses {} of the others of FastClick, and {} of those of Click",
            refused_of[0].len(),
            refused_of[1].len()
        ),
        format!("The remaining {} and {} lack something", missing[0].len(), missing[1].len()),
    ] {
        assert!(page.contains(&text), "{text}");
    }
    let runs = table(&page, "| result | configurations |");
    let run: Vec<&str> = runs.iter().flat_map(|row| classes(row[1])).collect();
    assert_eq!(run.len(), fastclick, "each accepted configuration has a result");
    assert_eq!(run.iter().collect::<BTreeSet<_>>().len(), fastclick, "and only one");
    let names: BTreeSet<&str> = missing.iter().flatten().flat_map(|row| classes(row[1])).collect();
    let folder = folder("configurations");
    let declared: Vec<String> =
        names.iter().enumerate().map(|(at, name)| format!("x{at} :: {name};")).collect();
    fs::write(folder.join("classes.click"), declared.join("\n")).expect("a file");
    let workspace = Workspace { socket: folder.join("no-daemon"), folder };
    let brief = |path: &str| {
        let text = shell(&format!("clickbox check --brief L=60 N=100 S=1000 {path}"), &workspace).stdout;
        String::from_utf8(text).expect("text").trim_end().to_string()
    };
    let list: Vec<&str> = names.into_iter().collect();
    assert_eq!(brief("classes.click"), format!("classes.click: no class {}", list.join(", ")));
    let Some(folder) = std::env::var_os("CLICKBOX_CONFIGURATIONS") else { return };
    for (of, name) in ["fastclick", "click"].into_iter().enumerate() {
        let folder = Path::new(&folder).join(name);
        let lacks = missing[of].iter().map(|row| (row[0].trim_matches('`'), Some(row[1])));
        for (file, lacks) in lacks.chain(refused_of[of].iter().map(|cell| (cell.trim_matches('`'), None))) {
            let text = brief(folder.join(file).to_str().expect("a plain path"));
            assert!(!text.ends_with(": accepted"), "{text}");
            let wanted = lacks.map(|lacks| classes(lacks).collect::<Vec<_>>().join(", ")).unwrap_or_default();
            assert!(text.contains(&wanted), "{text}");
        }
    }
}
