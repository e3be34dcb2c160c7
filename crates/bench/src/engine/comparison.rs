//! Measures configurations in this program and in a peer, alternately.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::class_table::BURST;
use super::click_program::{ClickProgram, RunError};
use super::configuration::{Chain, Load, NoSource, REPETITIONS, argument_count, baseline, has_element};
use super::floor::Job;
use super::traffic::{Capture, FrameSize, Traffic, TrafficError};
use crate::statistics::{median, minimum, rounded};

/// A chain below this many nanoseconds is repeated for the measurement.
const SHORT_CHAIN_NS: f64 = 5.0;

/// The minimum cost of a chain in a comparison; anything less is noise.
const RESOLUTION_NS: f64 = 0.05;

/// The default number of filter rules for mixed traffic.
const USUAL_RULES: u32 = 10;

/// The number of PPPoE sessions of mixed traffic, and of one repeated frame.
const SESSIONS: u16 = 1_000;
const FEW_SESSIONS: u16 = 3;

/// A configuration to measure.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Its name in the results.
    pub config: String,
    /// Its text.
    pub text: String,
    /// The source of the packets.
    pub traffic: Traffic,
    /// The sizes of their frames.
    pub size: FrameSize,
    /// Number of flows of mixed traffic.
    pub flows: u32,
    /// Number of rules and routes.
    pub load: Load,
    /// Number of packets per run, limited by the size of the generated capture.
    pub packets: u64,
    /// Number of runs of each program.
    pub runs: u32,
    /// Seed of the traffic, the rules and the routes.
    pub seed: u64,
    /// Whether to measure the floor: the same job, done by a hand-written loop.
    pub floor: bool,
    /// Whether it measures a class: its source sends 32 packets in a turn, and the chain is not repeated, since it may be of use
    /// only once.
    pub of_class: bool,
}

/// The results for one configuration.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub config: String,
    /// The source of the packets.
    #[serde(serialize_with = "as_text")]
    pub traffic: Traffic,
    /// The sizes of their frames.
    pub size: FrameSize,
    /// Number of filter rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<u32>,
    /// Whether this program uses the compact form of the rules.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub compact: bool,
    /// Number of routes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routes: Option<u32>,
    /// Number of flows.
    pub flows: u64,
    /// Number of packets per run.
    pub packets: u64,
    /// Mean number of packets per batch at the end of the chain; `None` if the chain has no Counter `out`.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rounded_option")]
    pub batch: Option<f64>,
    /// How many copies of the chain were measured in series.
    pub repeated: u32,
    /// This program's figures.
    #[serde(flatten)]
    pub ours: Figures,
    /// The peer's figures, and the comparison.
    pub peer: Option<PeerFigures>,
    /// The figures of a hand-written loop for the same job, and the comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<FloorFigures>,
    /// Why the peer has no figures, or a remark about them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The cost of a packet in one program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Millions of packets per second, including reading them.
    #[serde(serialize_with = "rounded")]
    pub mpps: f64,
    /// Nanoseconds of CPU time per packet, including reading it: the minimum of the runs.
    #[serde(serialize_with = "rounded")]
    pub ns_per_packet: f64,
    /// Nanoseconds of the chain alone, without reading and dropping the packet.
    #[serde(serialize_with = "rounded")]
    pub chain_ns: f64,
    /// The difference between median and minimum of the runs, relative to the minimum.
    #[serde(serialize_with = "rounded")]
    pub spread: f64,
}

/// A peer's figures.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PeerFigures {
    /// Its cost.
    #[serde(flatten)]
    pub figures: Figures,
    /// The peer's time divided by this program's, including reading the packets.
    #[serde(serialize_with = "rounded")]
    pub ratio: f64,
    /// The same for the chain alone; `None` if the chain is too short to compare.
    #[serde(serialize_with = "rounded_option")]
    pub chain_ratio: Option<f64>,
}

/// The figures of a hand-written loop.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FloorFigures {
    /// Its cost.
    #[serde(flatten)]
    pub figures: Figures,
    /// This program's time divided by the loop's, including reading the packets.
    #[serde(serialize_with = "rounded")]
    pub ratio: f64,
}

fn rounded_option<S: Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => rounded(number, serializer),
        None => serializer.serialize_none(),
    }
}

fn as_text<S: Serializer>(value: &impl fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Why a configuration could not be measured.
#[derive(Debug)]
pub enum ComparisonError {
    /// The traffic could not be made.
    Capture(TrafficError),
    /// The configuration can't be used with the traffic.
    Configuration(NoSource),
    /// A file could not be written.
    File(PathBuf, std::io::Error),
    /// The floor could not read the capture.
    Floor(std::io::Error),
    /// This program failed.
    Own(RunError),
}

impl fmt::Display for ComparisonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capture(_) => f.write_str("can't create the traffic"),
            Self::Configuration(error) => error.fmt(f),
            Self::File(path, _) => write!(f, "{} can't be written", path.display()),
            Self::Floor(_) => f.write_str("the floor can't read the capture"),
            Self::Own(error) => write!(f, "this program {error}"),
        }
    }
}

impl std::error::Error for ComparisonError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Capture(error) => Some(error),
            Self::File(_, error) | Self::Floor(error) => Some(error),
            Self::Own(error) => error.source(),
            // The message is the cause's.
            Self::Configuration(error) => error.source(),
        }
    }
}

impl From<TrafficError> for ComparisonError {
    fn from(error: TrafficError) -> Self {
        Self::Capture(error)
    }
}

/// The programs to measure, and a folder for captures and configurations.
#[derive(Debug)]
pub struct Workbench {
    /// This program.
    own: ClickProgram,
    /// Another program.
    peer: Option<ClickProgram>,
    folder: PathBuf,
    /// The last generated capture, with its parameters.
    capture: Option<(CaptureKey, Capture)>,
}

type CaptureKey = (Traffic, FrameSize, u32, Option<u16>, u64, u64);

/// The files with the configurations of one comparison.
struct Files {
    baseline: PathBuf,
    whole: PathBuf,
    repeated: Option<PathBuf>,
}

/// The run times of a program in seconds.
#[derive(Clone, Debug, Default)]
struct Times {
    baseline: Vec<f64>,
    whole: Vec<f64>,
    repeated: Vec<f64>,
    /// Number of packets that left the chain, if a Counter counts them.
    packets_out: Option<u64>,
}

impl Workbench {
    /// A workbench in this folder, which must exist.
    pub fn new(own: ClickProgram, peer: Option<ClickProgram>, folder: &Path) -> Self {
        Self { own, peer, folder: folder.into(), capture: None }
    }

    /// Measures one configuration.
    ///
    /// # Errors
    ///
    /// This program can't run it. If only the peer can't, the row's note says so.
    pub fn measure(&mut self, comparison: &Comparison) -> Result<Row, ComparisonError> {
        let (capture, load, chain) = self.chain(comparison)?;
        let packets = capture.frames;
        let files = self.files("own", &chain.for_own(&load), &capture)?;
        let peer_files = self.files("peer", &chain, &capture)?;
        let has_counter = chain.has_output;

        let peer = self.peer.as_ref();
        let (mut ours, mut theirs) = (Times::default(), Ok(Times::default()));
        let job = if comparison.floor { job(&comparison.config, &chain) } else { None };
        let mut floor = Times::default();
        for _ in 0..comparison.runs.max(1) {
            if let Some(job) = &job {
                floor.run_floor(job, &capture.path).map_err(ComparisonError::Floor)?;
            }
            ours.run(&self.own, &files, has_counter).map_err(ComparisonError::Own)?;
            theirs = match (theirs, peer) {
                (Ok(mut times), Some(peer)) => times.run(peer, &peer_files, has_counter).map(|()| times),
                (times, _) => times,
            };
        }
        let is_short = |times: &Times| times.chain_ns(packets, 1) < SHORT_CHAIN_NS;
        let repeat = chain.has_output
            && !comparison.of_class
            && (is_short(&ours) || peer.is_some() && theirs.as_ref().is_ok_and(is_short));
        if repeat {
            for _ in 0..comparison.runs.max(1) {
                ours.run_repeated(&self.own, &files).map_err(ComparisonError::Own)?;
                theirs = match (theirs, peer) {
                    (Ok(mut times), Some(peer)) => times.run_repeated(peer, &peer_files).map(|()| times),
                    (times, _) => times,
                };
            }
        }
        let repeated = if repeat { REPETITIONS } else { 1 };
        let figures = ours.figures(packets, repeated);
        let useless =
            (ours.packets_out == Some(0)).then(|| "no packet of this traffic reaches `out`".to_string());
        let (peer, note) = match (peer, theirs) {
            (None, _) => (None, None),
            (Some(_), Err(error)) => (None, Some(format!("the peer {}", api::with_causes(&error)))),
            (Some(_), Ok(times)) => (
                Some(PeerFigures::of(&figures, times.figures(packets, repeated))),
                ours.difference(&times, "in the peer"),
            ),
        };
        let floor_note = job.as_ref().and_then(|_| ours.difference(&floor, "by the hand-written loop"));
        let note = useless.or(note).or(floor_note);
        Ok(Row {
            config: comparison.config.clone(),
            traffic: comparison.traffic.clone(),
            size: if matches!(comparison.traffic, Traffic::File(_)) {
                FrameSize::AsCaptured
            } else {
                comparison.size
            },
            rules: load.rules.or_else(|| argument_count(&comparison.text, "rules")),
            compact: load.compact,
            routes: load.routes.or_else(|| argument_count(&comparison.text, "routes")),
            flows: capture.flows.len() as u64,
            packets,
            batch: if has_counter { self.batch(&files)? } else { None },
            repeated,
            ours: figures,
            peer,
            floor: job.map(|_| FloorFigures::of(&figures, floor.figures(packets, 1))),
            note,
        })
    }

    /// The text that is measured for a comparison, and the capture that it reads.
    ///
    /// # Errors
    ///
    /// The traffic can't be made, or the configuration can't be used with it.
    pub fn prepare(&mut self, comparison: &Comparison) -> Result<(String, Capture), ComparisonError> {
        let (capture, load, chain) = self.chain(comparison)?;
        Ok((chain.for_own(&load).text(&capture, 1), capture))
    }

    /// The capture, the load and the chain of a comparison.
    fn chain(&mut self, comparison: &Comparison) -> Result<(Capture, Load, Chain), ComparisonError> {
        let is_mixed = comparison.traffic == Traffic::Mixed;
        let is_pppoe = comparison.text.contains("12/8864");
        let sessions = is_pppoe.then_some(if is_mixed { SESSIONS } else { FEW_SESSIONS });
        let capture = self.capture(comparison, sessions)?;
        let mut load = comparison.load;
        load.sessions = sessions.filter(|_| is_mixed && has_element(&comparison.text, "sessions"));
        load.compact &= has_element(&comparison.text, "rules");
        if load.rules.is_none()
            && comparison.traffic != Traffic::Constant
            && has_element(&comparison.text, "rules")
        {
            load.rules = Some(USUAL_RULES);
        }
        let chain = Chain::new(&comparison.text, &load, &capture, comparison.seed);
        let mut chain = chain.map_err(ComparisonError::Configuration)?;
        chain.burst = comparison.of_class.then_some(BURST);
        Ok((capture, load, chain))
    }

    /// The capture for a comparison: the last one if it matches.
    fn capture(
        &mut self,
        comparison: &Comparison,
        sessions: Option<u16>,
    ) -> Result<Capture, ComparisonError> {
        let Comparison { traffic, size, flows, seed, packets, .. } = comparison;
        let key = (traffic.clone(), *size, *flows, sessions, *seed, *packets);
        if let Some((_, capture)) = self.capture.as_ref().filter(|(known, _)| *known == key) {
            return Ok(capture.clone());
        }
        let path = self.folder.join("traffic.pcap");
        let constant = *traffic == Traffic::Constant;
        let capture = match traffic {
            Traffic::File(file) => Capture::extend(file, &path, *packets)?,
            _ => Capture::make(&path, *seed, *flows, constant, *size, sessions, *packets)?,
        };
        self.capture = Some((key, capture.clone()));
        Ok(capture)
    }

    fn files(&self, program: &str, chain: &Chain, capture: &Capture) -> Result<Files, ComparisonError> {
        let write = |name: &str, text: &str| {
            let path = self.folder.join(format!("{program}-{name}.click"));
            std::fs::write(&path, text).map_err(|error| ComparisonError::File(path.clone(), error))?;
            Ok::<_, ComparisonError>(path)
        };
        Ok(Files {
            baseline: write("baseline", &baseline(capture, chain.burst))?,
            whole: write("whole", &chain.text(capture, 1))?,
            repeated: match chain.has_output {
                true => Some(write("repeated", &chain.text(capture, REPETITIONS))?),
                false => None,
            },
        })
    }

    /// The mean number of packets per batch at the Counter `out`; `None` if no packet arrived. Uses a separate run that
    /// is not timed.
    fn batch(&self, files: &Files) -> Result<Option<f64>, ComparisonError> {
        let handlers = ["chain/out.count", "chain/out.batches"];
        let run = self.own.run(&files.whole, &handlers).map_err(ComparisonError::Own)?;
        match run.handlers[..] {
            [packets, batches] => Ok((batches > 0).then(|| packets as f64 / batches as f64)),
            _ => Err(ComparisonError::Own(RunError::NoHandler)),
        }
    }
}

impl Times {
    /// Runs baseline and chain alternately.
    fn run(&mut self, program: &ClickProgram, files: &Files, has_counter: bool) -> Result<(), RunError> {
        self.baseline.push(program.run(&files.baseline, &[])?.seconds);
        let handlers: &[&str] = if has_counter { &["chain/out.count"] } else { &[] };
        let run = program.run(&files.whole, handlers)?;
        self.whole.push(run.seconds);
        self.packets_out = run.handlers.first().copied();
        Ok(())
    }

    fn run_repeated(&mut self, program: &ClickProgram, files: &Files) -> Result<(), RunError> {
        if let Some(file) = &files.repeated {
            self.baseline.push(program.run(&files.baseline, &[])?.seconds);
            self.repeated.push(program.run(file, &[])?.seconds);
        }
        Ok(())
    }

    /// Runs the loop that only reads, and that of a job, alternately.
    fn run_floor(&mut self, job: &Job, capture: &Path) -> std::io::Result<()> {
        self.baseline.push(Job::Read.run(capture)?.seconds);
        let floor = job.run(capture)?;
        self.whole.push(floor.seconds);
        self.packets_out = Some(floor.passed);
        Ok(())
    }

    fn chain_ns(&self, packets: u64, repeated: u32) -> f64 {
        let with_chain = if repeated > 1 { &self.repeated } else { &self.whole };
        let seconds = minimum(with_chain) - minimum(&self.baseline);
        (seconds / f64::from(repeated) * 1e9 / packets as f64).max(0.0)
    }

    fn figures(&self, packets: u64, repeated: u32) -> Figures {
        let fastest = minimum(&self.whole);
        // A run of a few packets may be too short for the clock.
        let ns = (fastest * 1e9 / packets as f64).max(RESOLUTION_NS);
        let spread = if fastest > 0.0 { median(self.whole.clone()) / fastest - 1.0 } else { 0.0 };
        Figures { mpps: 1e3 / ns, ns_per_packet: ns, chain_ns: self.chain_ns(packets, repeated), spread }
    }

    /// The difference between the results, in words.
    fn difference(&self, other: &Times, place: &str) -> Option<String> {
        let (ours, theirs) = (self.packets_out?, other.packets_out?);
        (ours != theirs).then(|| format!("{ours} packets came out here, {theirs} {place}"))
    }
}

impl PeerFigures {
    fn of(ours: &Figures, theirs: Figures) -> Self {
        let comparable = ours.chain_ns >= RESOLUTION_NS && theirs.chain_ns >= RESOLUTION_NS;
        Self {
            figures: theirs,
            ratio: theirs.ns_per_packet / ours.ns_per_packet,
            chain_ratio: comparable.then(|| theirs.chain_ns / ours.chain_ns),
        }
    }
}

impl FloorFigures {
    fn of(ours: &Figures, floor: Figures) -> Self {
        Self { figures: floor, ratio: ours.ns_per_packet / floor.ns_per_packet }
    }
}

/// The job of an example, if the floor has a loop for it.
fn job(example: &str, chain: &Chain) -> Option<Job> {
    match example {
        "wire" => Some(Job::Read),
        "ethermirror" => Some(Job::Mirror),
        "router" if !chain.routes.is_empty() => Some(Job::Route(chain.routes.clone())),
        "firewall" if !chain.rules.is_empty() => Some(Job::Filter(chain.rules.clone())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(baseline: &[f64], whole: &[f64], repeated: &[f64]) -> Times {
        Times {
            baseline: baseline.into(),
            whole: whole.into(),
            repeated: repeated.into(),
            packets_out: Some(5),
        }
    }

    /// A million packets: each second is a thousand nanoseconds per packet.
    #[test]
    fn figures_are_minima_above_the_baseline() {
        let ours = times(&[0.030, 0.050], &[0.080, 0.060, 0.090], &[0.048]);
        let figures = ours.figures(1_000_000, 1);
        assert!((figures.ns_per_packet - 60.0).abs() < 1e-9 && (figures.chain_ns - 30.0).abs() < 1e-9);
        assert!((figures.mpps - 1e3 / 60.0).abs() < 1e-9 && (figures.spread - 1.0 / 3.0).abs() < 1e-9);
        assert!((ours.chain_ns(1_000_000, 9) - 2.0).abs() < 1e-9);
        let theirs = times(&[0.040], &[0.120], &[]).figures(1_000_000, 1);
        let peer = PeerFigures::of(&figures, theirs);
        assert!((peer.ratio - 2.0).abs() < 1e-9, "{peer:?}");
        assert!(peer.chain_ratio.is_some_and(|ratio| (ratio - 80.0 / 30.0).abs() < 1e-9), "{peer:?}");
        let nothing = times(&[0.030], &[0.030], &[]).figures(1_000_000, 1);
        assert_eq!(PeerFigures::of(&nothing, theirs).chain_ratio, None);
    }

    #[test]
    fn lost_packets_are_noted() {
        let ours = times(&[], &[], &[]);
        assert_eq!(ours.difference(&ours, "there"), None);
        let theirs = Times { packets_out: Some(4), ..ours.clone() };
        assert_eq!(ours.difference(&theirs, "there").as_deref(), Some("5 packets came out here, 4 there"));
    }
}
