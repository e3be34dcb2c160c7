//! `clickbox bench`: measures, alone or beside another program.

mod boxes;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::configuration::system_words;
use crate::output;
use ::bench::engine::{EXAMPLES, Load, Program, Trouble, count_of, has, median, prepare};

/// Measure configurations and boxes.
#[derive(Args)]
#[command(
    after_help = "Examples: clickbox bench boot --count 100\n          clickbox bench all --out report/"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Engine(Engine),
    #[command(flatten)]
    Boxes(boxes::What),
}

/// Measure configurations in memory, on one core.
///
/// Each configuration has a source of its own (InfiniteSource), so that no device and no file is measured. All programs
/// are run on the same text, in turn, as often as --runs says; the figures are medians of processor time after
/// start-up. With --flows the source address of each packet is one of so many, taken at random; with --routes the
/// destination is random and there are so many prefixes. Both are done by SetRandIPAddress and StoreIPAddress behind
/// the source, in all programs alike, and are in the figures.
#[derive(Args)]
#[command(
    after_help = "Example: clickbox bench engine --config firewall --rules 10,1000 --peer /usr/local/bin/click"
)]
struct Engine {
    /// Measure all nine examples.
    #[arg(long, conflicts_with = "config")]
    all: bool,
    /// An example by its name, or a file.
    #[arg(long, value_name = "NAME|FILE")]
    config: Vec<String>,
    /// Bytes of each frame.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "64", value_parser = clap::value_parser!(u32).range(60..=1514))]
    size: Vec<u32>,
    /// Rules of the element `rules`, an IPFilter.
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=60_000))]
    rules: Vec<u32>,
    /// Routes of the element `routes`, a route table.
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=4_000_000))]
    routes: Vec<u32>,
    /// Flows of the traffic.
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=4_000_000))]
    flows: Vec<u32>,
    /// Packets that the source makes at a turn.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=4096))]
    batch: u32,
    /// A program with Click's command line to measure beside this one.
    #[arg(long, value_name = "PROGRAM")]
    peer: Option<PathBuf>,
    /// Runs of each program.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// About how long a run takes.
    #[arg(long, default_value_t = 300, value_name = "MILLISECONDS", value_parser = clap::value_parser!(u64).range(10..=30_000))]
    time: u64,
    /// The longest that a run may take. A peer that takes longer is left out, with a note.
    #[arg(long, default_value_t = 120, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    patience: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    results: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    config: String,
    size: u32,
    rules: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    routes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flows: Option<u32>,
    batch: u32,
    mpps: f64,
    ns_per_packet: f64,
    peer: Option<Peer>,
    /// Why there is no figure of the peer's.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize)]
struct Peer {
    mpps: f64,
    ns_per_packet: f64,
    /// How many times as fast as the peer this program is.
    ratio: f64,
}

/// A configuration to measure.
struct Subject {
    name: String,
    text: String,
    has_flows: bool,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let result = match &arguments.what {
        What::Engine(engine) => engine.measure(),
        What::Boxes(what) => what.measure().map_err(|error| error.to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("clickbox: {text}");
            ExitCode::from(1)
        }
    }
}

impl Engine {
    fn measure(&self) -> Result<(), String> {
        let folder = Folder::new().map_err(|error| format!("no folder for temporary files: {error}"))?;
        let subjects = self.subjects()?;
        let mut results = Vec::new();
        if !self.json {
            println!("{:<34} {:>9} {:>9} {:>9} {:>7}", "", "ns/packet", "Mp/s", "peer's ns", "ratio");
        }
        for subject in subjects {
            for load in self.loads(&subject) {
                let row =
                    self.row(&subject, load, &folder).map_err(|text| format!("{}: {text}", subject.name))?;
                if !self.json {
                    println!("{}", row.line());
                }
                results.push(row);
            }
        }
        if self.json {
            output::json(&Report { results });
        }
        Ok(())
    }

    fn subjects(&self) -> Result<Vec<Subject>, String> {
        let built_in = EXAMPLES.iter().map(|example| Subject {
            name: example.name.into(),
            text: example.text.into(),
            has_flows: example.has_flows,
        });
        if self.all || self.config.is_empty() {
            return Ok(built_in.collect());
        }
        let named = |name: &String| {
            if let Some(example) = built_in.clone().find(|example| example.name == *name) {
                return Ok(example);
            }
            let text = std::fs::read_to_string(name).map_err(|error| {
                let names: Vec<&str> = EXAMPLES.iter().map(|example| example.name).collect();
                let names = names.join(", ");
                format!("{name}: {}; --config takes a file or one of {names}", system_words(&error))
            })?;
            Ok(Subject { name: name.clone(), text, has_flows: true })
        };
        self.config.iter().map(named).collect()
    }

    /// All loads of a configuration: those that its elements can have.
    fn loads(&self, subject: &Subject) -> Vec<Load> {
        let choices = |wanted: &[u32], possible: bool| -> Vec<Option<u32>> {
            if wanted.is_empty() || !possible {
                vec![None]
            } else {
                wanted.iter().copied().map(Some).collect()
            }
        };
        let mut loads = Vec::new();
        for &size in &self.size {
            for &rules in &choices(&self.rules, has(&subject.text, "rules")) {
                for &routes in &choices(&self.routes, has(&subject.text, "routes")) {
                    for &flows in &choices(&self.flows, subject.has_flows) {
                        loads.push(Load { size, rules, routes, flows });
                    }
                }
            }
        }
        loads
    }

    fn row(&self, subject: &Subject, load: Load, folder: &Folder) -> Result<Row, String> {
        let (text, parameters) = prepare(&subject.text, &load);
        let file = folder.write(&text).map_err(|error| format!("temporary file: {error}"))?;
        let mut parameters: Vec<String> =
            parameters.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        parameters.push(format!("BURST={}", self.batch));
        // As many packets before the measurement as make nearly all flows known.
        let warm = load.flows.map_or(0, |flows| u64::from(flows) * 4);
        let time = Duration::from_millis(self.time);
        let patience = Duration::from_secs(self.patience);
        let own = Program::own(patience).map_err(|error| error.to_string())?;
        let count = own.calibrate(&file, &parameters, warm, time).map_err(|trouble| trouble.to_string())?;
        let mut peer = Contestant::default();
        if let Some(program) = self.peer.as_deref().map(|path| Program::other(path, patience)) {
            let count = program.calibrate(&file, &parameters, warm, time);
            peer.take(count, |peer, count| peer.program = Some((program, count)))?;
        }
        let mut times = Vec::new();
        for _ in 0..self.runs {
            let time = own.measure(&file, &parameters, warm, count);
            times.push(time.map_err(|trouble| trouble.to_string())?);
            if let Some((program, count)) = &peer.program {
                let time = program.measure(&file, &parameters, warm, *count);
                peer.take(time, |peer, time| peer.times.push(time))?;
            }
        }
        let time = median(&mut times).max(1e-3);
        let other = peer.program.is_some().then(|| median(&mut peer.times).max(1e-3));
        Ok(Row {
            config: subject.name.clone(),
            size: load.size,
            rules: load.rules.or_else(|| count_of(&subject.text, "rules")),
            routes: load.routes,
            flows: load.flows,
            batch: self.batch,
            mpps: round(1e3 / time),
            ns_per_packet: round(time),
            peer: other.map(|other| Peer {
                mpps: round(1e3 / other),
                ns_per_packet: round(other),
                ratio: round(other / time),
            }),
            note: peer.late.map(|trouble| format!("the peer {trouble}")),
        })
    }
}

/// A peer while it is measured. One that takes too long is left out, and the others' figures stand.
#[derive(Default)]
struct Contestant {
    /// The program and how many packets it is given.
    program: Option<(Program, u64)>,
    times: Vec<f64>,
    late: Option<Trouble>,
}

impl Contestant {
    /// Does `with` with what a run has given, or leaves the peer out if it was late.
    fn take<T>(
        &mut self,
        result: Result<T, Trouble>,
        with: impl FnOnce(&mut Contestant, T),
    ) -> Result<(), String> {
        match result {
            Ok(value) => with(self, value),
            Err(late @ Trouble::Late(_)) => *self = Contestant { late: Some(late), ..Contestant::default() },
            Err(trouble) => return Err(format!("the peer {trouble}")),
        }
        Ok(())
    }
}

impl Row {
    fn line(&self) -> String {
        let mut name = format!("{}, {} B", self.config, self.size);
        for (count, what) in [(self.rules, "rules"), (self.routes, "routes"), (self.flows, "flows")] {
            if let Some(count) = count {
                name += &format!(", {count} {what}");
            }
        }
        let peer = self.peer.as_ref();
        let peer = peer.map(|peer| format!(" {:>9.1} {:>7.2}", peer.ns_per_packet, peer.ratio));
        let note = self.note.as_ref().map(|note| format!("  {note}"));
        let rest = peer.or(note).unwrap_or_default();
        format!("{name:<34} {:>9.1} {:>9.2}{rest}", self.ns_per_packet, self.mpps)
    }
}

/// Three places are more than a measurement is good for.
fn round(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

/// A folder for the configurations, gone when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Folder> {
        let path = std::env::temp_dir().join(format!("clickbox-bench-{}", std::process::id()));
        std::fs::create_dir(&path)?;
        Ok(Folder(path))
    }

    fn write(&self, text: &str) -> std::io::Result<PathBuf> {
        let path = self.0.join("bench.click");
        std::fs::write(&path, text)?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What can't be removed stays in the system's folder of temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
