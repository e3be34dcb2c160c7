//! The corpus of the element library, run in boxes: configurations must behave as they do outside.

#[path = "../../elements/tests/support/case.rs"]
mod case;
#[path = "../../../guest/corpus/src/runner.rs"]
mod runner;
mod sandboxes;

extern crate alloc;

use boundary::Request;
use case::{Case, cases};
use runner::Runner;
use sandbox::thread::{self, Start};
use sandbox::{CallError, CreateError, Host, Sandbox, Settings, Target, Worker};
use sandboxes::{TIMEOUT, settings};
use std::sync::OnceLock;
use test_support::{Capability, require};

/// Bytes of memory of a box, enough for a capture and thousands of packets.
const MEMORY: usize = 64 << 20;

/// A case that needs a terminal, which a box does not have.
const FOR_TERMINALS: &str = "control/progressbar.test";

/// The host with the image that runs cases in simulated time.
fn host() -> &'static Host {
    static HOST: OnceLock<Host> = OnceLock::new();
    HOST.get_or_init(|| Host::new(image::CORPUS).unwrap())
}

/// The program of a box in a thread.
fn program(start: Start) {
    let runner = Runner::new(start.region.into_mapped());
    runner.and_then(|mut runner| runner.run(&start.platform)).unwrap();
}

/// Sends the files of a case to the box: its own, and those of the project that its text names.
fn ship(sandbox: &mut Sandbox, case: &Case) -> Result<(), CallError> {
    let project = |name: &str| {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
        Some((name.to_string(), std::fs::read(path).ok()?))
    };
    let is_name = |byte: char| byte.is_ascii_alphanumeric() || "./-_".contains(byte);
    let named = case.config.split(|byte| !is_name(byte)).filter(|name| name.starts_with("testdata/"));
    let own = case.files.iter().map(|(name, text)| (name.clone(), text.clone().into_bytes()));
    for (name, contents) in named.filter_map(project).chain(own) {
        sandbox.call(&Request::File { name: &name, contents: &contents }, TIMEOUT)?;
    }
    Ok(())
}

/// Reads a handler of the main configuration.
fn read(sandbox: &mut Sandbox, handler: &str) -> Result<String, CallError> {
    let value = sandbox.call(&Request::Read { name: "", handler, argument: b"" }, TIMEOUT)?;
    Ok(String::from_utf8_lossy(&value).into_owned())
}

/// The names of the elements.
fn elements(sandbox: &mut Sandbox) -> Vec<String> {
    let list = read(sandbox, "list").unwrap_or_default();
    list.lines().skip(1).map(str::to_string).collect()
}

/// Runs a case in a box. Returns the differences.
fn check(sandbox: &mut Sandbox, case: &Case, batch: u32) -> Vec<String> {
    let install = Request::Install { name: &batch.to_string(), configuration: &case.config };
    let console = match (sandbox.call(&install, TIMEOUT), &case.error) {
        (Ok(console), None) => String::from_utf8_lossy(&console).into_owned(),
        (Ok(_), Some(_)) => return vec!["there was no error".into()],
        (Err(CallError::Refused(error)), wanted) => {
            let wanted = wanted.as_deref().unwrap_or("no error");
            let missing = wanted.lines().filter(|line| !error.as_str().contains(line.trim()));
            return missing
                .map(|line| format!("`{line}` is not in the error:\n{}", error.as_str()))
                .collect();
        }
        (Err(error), _) => return vec![format!("{error}: {:?}", sandbox.state())],
    };
    let mut failures = Vec::new();
    let mut elements = elements(sandbox);
    for line in case.expect.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"))
    {
        let (path, wanted) = line.split_once('=').unwrap_or((line, ""));
        if let Some(element) = path.trim().strip_suffix(".losses") {
            elements.retain(|other| other != element);
        }
        match read(sandbox, path.trim()) {
            Ok(value) if value.trim().replace('\n', "\\n") == wanted.trim() => {}
            other => failures.push(format!("{} is {other:?}, not `{}`", path.trim(), wanted.trim())),
        }
    }
    // An element whose drops are not listed must have dropped nothing.
    for element in elements {
        match read(sandbox, &format!("{element}.losses")) {
            Ok(losses) if losses.is_empty() => {}
            other => failures.push(format!("not listed: {element}.losses is {other:?}")),
        }
    }
    if console.trim_end() != case.console.trim_end() {
        failures.push(format!("the console has:\n{console}"));
    }
    failures
}

/// Runs all cases, each in a new box from `create`.
fn run(create: impl Fn(&Settings) -> Result<Sandbox, CreateError>, batches: &[u32], slots: u32) {
    let settings = Settings { memory: MEMORY, ..settings(1, slots) };
    let mut failures = Vec::new();
    for (name, case) in cases().into_iter().filter(|(name, _)| !name.ends_with(FOR_TERMINALS)) {
        let case = case.unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut sandbox = create(&settings).unwrap();
        sandbox.start().unwrap();
        ship(&mut sandbox, &case).unwrap();
        for batch in batches {
            let differences = check(&mut sandbox, &case, *batch);
            failures.extend(differences.iter().map(|text| format!("{name} (batch {batch}): {text}")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_corpus_passes_in_virtual_machines() {
    if !require(Capability::Kvm) {
        return;
    }
    let worker = Worker::start().unwrap();
    let create = |settings: &Settings| host().create(Target::Vm(&worker), settings);
    run(create, &[1, 256], 64);
    run(create, &[7], 2048);
}

#[test]
fn the_corpus_passes_in_processes() {
    let create = |settings: &Settings| host().create(Target::Process, settings);
    run(create, &[1, 256], 64);
    run(create, &[7], 2048);
}

#[test]
fn the_corpus_passes_in_threads() {
    run(|settings| thread::create(program, settings), &[7, 256], 64);
}
