//! `clickbox bench boot|memory|io|latency|chain|density|state|all`: measurements of boxes.

use std::path::PathBuf;
use std::time::Duration;

use bench::{
    Backend, BoxProgram, IdleMode, Interconnect, IoMode, Latency, Machine, MeasureError, NeighbourLoad,
    ReportScope, SamplePlan, TestBed,
};
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

use crate::configuration::registry;
use crate::source::system_message;
use crate::{output, program};
use bench::{Rows, Table};

/// The frame sizes of `--all`.
const SIZES: [u16; 6] = [64, 128, 256, 512, 1024, 1500];

/// The ring sizes of `--all`, in slots.
const RINGS: [u32; 6] = [64, 128, 256, 512, 1024, 2048];

/// The lengths of handler values, in bytes.
const VALUES: [usize; 6] = [1, 64, 1024, 4096, 16_384, 65_536];

#[derive(Subcommand)]
pub(super) enum What {
    Boot(BootArguments),
    Io(IoArguments),
    Latency(LatencyArguments),
    Chain(ChainArguments),
    Density(DensityArguments),
    State(StateArguments),
    Memory(MemoryArguments),
    All(AllArguments),
}

/// What all of them have.
#[derive(Args)]
struct Common {
    /// Sandbox of the boxes: virtual machines where /dev/kvm is usable, else processes.
    #[arg(long, value_enum)]
    sandbox: Option<Sandbox>,
    /// What runs in the boxes.
    #[arg(long, value_enum, default_value = "click")]
    inside: InsideName,
    /// Runs; the figures are medians.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// How long a run takes, where it does not end by itself.
    #[arg(long, default_value_t = 300, value_name = "MILLISECONDS", value_parser = clap::value_parser!(u64).range(10..=60_000))]
    time: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Sandbox {
    /// Virtual machines.
    Vm,
    /// Sandboxed processes.
    Process,
    /// Threads of this process, without isolation, for development.
    #[value(alias = "none")]
    Thread,
}

#[derive(Clone, Copy, ValueEnum)]
enum InsideName {
    /// The engine, with a Click configuration.
    Click,
    /// A small program that only moves packets: sandbox, rings and switch alone.
    Probe,
}

/// Measure how long boxes take to start: by a daemon, from the request to the first packet on a switch; by the sandbox
/// library alone; and as copies of one box.
#[derive(Args)]
#[command(after_help = "Example: clickbox bench boot --count 400 --sandbox process")]
pub(super) struct BootArguments {
    /// Boxes, started one after the other and all kept.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: u32,
    #[command(flatten)]
    common: Common,
}

/// Measure how fast one box moves packets.
#[derive(Args)]
#[command(after_help = "Example: clickbox bench io --mode forward --size 64 --ring 1024")]
pub(super) struct IoArguments {
    /// What the box does.
    #[arg(long, value_enum, default_value = "forward")]
    mode: ModeName,
    /// Bytes of each frame.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(60..=2048))]
    size: u16,
    /// Slots of each ring: a power of two from 64 to 2048.
    #[arg(long, default_value_t = 1024)]
    ring: u32,
    /// Measure frames from 64 to 1500 bytes, and rings from 64 to 2048 slots.
    #[arg(long, conflicts_with_all = ["size", "ring"])]
    all: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, ValueEnum)]
enum ModeName {
    /// It makes packets.
    Send,
    /// It takes packets.
    Receive,
    /// It sends packets on, from one port to another.
    Forward,
    /// It sends packets back, addresses exchanged.
    Mirror,
}

/// Measure how long a box takes to answer, alone and beside others.
#[derive(Args)]
#[command(after_help = "Example: clickbox bench latency --others 0,1,11")]
pub(super) struct LatencyArguments {
    /// Boxes beside it on its core.
    #[arg(long, value_delimiter = ',', default_value = "0,1,3,7,11", value_parser = clap::value_parser!(u16).range(0..=1000))]
    others: Vec<u16>,
    #[command(flatten)]
    common: Common,
}

/// Measure how fast packets pass through a chain of boxes, all on one core: boxes of one owner
/// that share their packets, as with `create --share-packets`, joined by switches.
#[derive(Args)]
#[command(after_help = "Example: clickbox bench chain --length 9 --pipes")]
pub(super) struct ChainArguments {
    /// Boxes; the first sends, the last takes. Without it every length from 2 to 9 is measured.
    #[arg(long, value_parser = clap::value_parser!(u16).range(2..=100))]
    length: Option<u16>,
    /// Join them by pipes instead of switches.
    #[arg(long)]
    pipes: bool,
    /// Share no packets: the switches copy each of them, as they do between boxes of different owners.
    #[arg(long, conflicts_with = "pipes")]
    copy: bool,
    /// Bytes of each frame.
    #[arg(long, default_value_t = 1472, value_parser = clap::value_parser!(u16).range(60..=2048))]
    size: u16,
    /// Slots of each ring: a power of two from 64 to 2048.
    #[arg(long, default_value_t = 1024)]
    ring: u32,
    #[command(flatten)]
    common: Common,
}

/// Measure how fast many boxes on one core send in sum, and how evenly.
#[derive(Args)]
#[command(after_help = "Example: clickbox bench density --boxes 100 --size 64")]
pub(super) struct DensityArguments {
    /// Boxes.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    boxes: u16,
    /// Bytes of each frame.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(60..=2048))]
    size: u16,
    /// Slots of each ring, which a box fills in one turn: a power of two from 64 to 2048.
    #[arg(long, default_value_t = 2048)]
    ring: u32,
    #[command(flatten)]
    common: Common,
}

/// Measure how long handlers of a box take to be written and read.
#[derive(Args)]
#[command(after_help = "Example: clickbox bench state")]
pub(super) struct StateArguments {
    #[command(flatten)]
    common: Common,
}

/// Measure what the memory of a box is made of: what ports take, and what routes, rules and patterns add.
#[derive(Args)]
#[command(after_help = "Example: clickbox bench memory --json")]
pub(super) struct MemoryArguments {
    /// Routes, and rules; patterns are two fifths of that.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(5..=50_000))]
    entries: u32,
    #[command(flatten)]
    common: Common,
}

/// Measure everything, and write a page that shows it beside the papers' figures.
///
/// The folder gets `index.html`, which needs nothing from the network, and `report.json`.
#[derive(Args)]
#[command(after_help = "Example: clickbox bench all --out report/")]
pub(super) struct AllArguments {
    /// The folder, made where there is none.
    #[arg(long, default_value = "report")]
    out: PathBuf,
    /// Boxes that are started, one after the other.
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: u32,
    #[command(flatten)]
    common: Common,
}

/// Why a benchmark failed.
pub(super) enum Failure {
    /// The measurement failed.
    Measure(MeasureError),
    /// The result could not be written.
    Write(PathBuf, std::io::Error),
}

impl From<MeasureError> for Failure {
    fn from(error: MeasureError) -> Failure {
        Failure::Measure(error)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Measure(error) => error.fmt(f),
            Failure::Write(path, error) => write!(f, "{}: {}", path.display(), system_message(error)),
        }
    }
}

impl What {
    pub(super) fn measure(&self) -> Result<(), Failure> {
        match self {
            What::Boot(arguments) => {
                let common = &arguments.common;
                let program = std::env::current_exe().map_err(MeasureError::Daemon)?;
                let count = arguments.count as usize;
                common.print(&bench::boot(&common.bed()?, count, common.plan(), Some(&program))?);
            }
            What::Io(arguments) => arguments.measure()?,
            What::Latency(arguments) => arguments.measure()?,
            What::Chain(arguments) => arguments.measure()?,
            What::Density(arguments) => {
                let common = &arguments.common;
                let (boxes, size, ring) = (usize::from(arguments.boxes), arguments.size, arguments.ring);
                common.print(&bench::density(&common.bed()?, boxes, size, ring, common.plan())?);
            }
            What::State(arguments) => {
                let common = &arguments.common;
                common.print(&bench::state(&common.bed()?, &VALUES, common.plan())?);
            }
            What::Memory(arguments) => {
                let common = &arguments.common;
                common.print(&bench::memory(&common.bed()?, arguments.entries)?);
            }
            What::All(arguments) => arguments.measure()?,
        }
        Ok(())
    }
}

impl Common {
    /// A test bed with the given sandbox, or with the first that works.
    fn bed(&self) -> Result<TestBed, MeasureError> {
        let inside = match self.inside {
            InsideName::Click => BoxProgram::Click,
            InsideName::Probe => BoxProgram::Probe,
        };
        let bed = |kind| TestBed::new(kind, inside, Some(program::run));
        match self.sandbox {
            Some(Sandbox::Vm) => bed(Backend::Vm),
            Some(Sandbox::Process) => bed(Backend::Process),
            Some(Sandbox::Thread) => bed(Backend::Thread),
            None => match bed(Backend::Vm) {
                Err(MeasureError::NoKvm) => {
                    eprintln!("clickbox: /dev/kvm is not usable: boxes run as processes");
                    bed(Backend::Process)
                }
                result => result,
            },
        }
    }

    fn plan(&self) -> SamplePlan {
        SamplePlan { runs: self.runs, time: Duration::from_millis(self.time) }
    }

    fn print(&self, figures: &(impl Serialize + Table)) {
        if self.json {
            output::json(figures);
        } else {
            output::text(&figures.table());
        }
    }
}

impl AllArguments {
    fn measure(&self) -> Result<(), Failure> {
        let common = &self.common;
        let write = |name: &str, text: &str| {
            let path = self.out.join(name);
            std::fs::write(&path, text).map_err(|error| Failure::Write(path, error))
        };
        // Fails before minutes of measurements if the folder can't be written.
        std::fs::create_dir_all(&self.out).map_err(|error| Failure::Write(self.out.clone(), error))?;
        write("index.html", "")?;
        let scope = ReportScope {
            boxes: self.count as usize,
            program: Some(std::env::current_exe().map_err(MeasureError::Daemon)?),
            classes: Some(registry().classes().count()),
            ..ReportScope::default()
        };
        let machine = Machine::this();
        let tell = |what: &str| eprintln!("measuring {what} ...");
        let report = bench::report(&common.bed()?, machine, &scope, common.plan(), tell)?;
        write("index.html", &bench::page(&report))?;
        write("report.json", &output::to_json(&report))?;
        if common.json {
            output::json(&report);
        } else {
            output::text(&format!("{}\n", self.out.join("index.html").display()));
        }
        Ok(())
    }
}

impl IoArguments {
    fn measure(&self) -> Result<(), MeasureError> {
        let (common, mode) = (&self.common, self.mode.into());
        let bed = common.bed()?;
        if !self.all {
            common.print(&bench::io(&bed, mode, self.size, self.ring, common.plan())?);
            return Ok(());
        }
        let mut rows = Vec::new();
        for size in SIZES {
            for ring in RINGS {
                rows.push(bench::io(&bed, mode, size, ring, common.plan())?);
            }
        }
        common.print(&Rows { rows });
        Ok(())
    }
}

impl LatencyArguments {
    fn measure(&self) -> Result<(), MeasureError> {
        let common = &self.common;
        let bed = common.bed()?;
        let mut rows = vec![bench::latency(&bed, IdleMode::Polling, 0, NeighbourLoad::Idle, common.plan())?];
        for &load in NeighbourLoad::all(bed.box_program()) {
            for &others in self.others.iter().filter(|others| load == NeighbourLoad::Idle || **others > 0) {
                rows.push(bench::latency(&bed, IdleMode::Idle, others.into(), load, common.plan())?);
            }
        }
        if let Some(&others) = self.others.last().filter(|others| **others > 0) {
            let row =
                bench::latency(&bed, IdleMode::Polling, others.into(), NeighbourLoad::Idle, common.plan())?;
            rows.push(row);
        }
        common.print(&Latency { rows });
        Ok(())
    }
}

impl ChainArguments {
    fn measure(&self) -> Result<(), MeasureError> {
        let common = &self.common;
        let bed = common.bed()?;
        let joint = match (self.pipes, self.copy) {
            (true, _) => Interconnect::Pipe,
            (_, true) => Interconnect::Copy,
            _ => Interconnect::Pool,
        };
        let one = |length: u16| bench::chain(&bed, length.into(), joint, self.size, self.ring, common.plan());
        match self.length {
            Some(length) => common.print(&one(length)?),
            None => {
                let rows = (2..=9).map(one).collect::<Result<_, _>>()?;
                common.print(&Rows { rows });
            }
        }
        Ok(())
    }
}

impl From<ModeName> for IoMode {
    fn from(name: ModeName) -> IoMode {
        match name {
            ModeName::Send => IoMode::Send,
            ModeName::Receive => IoMode::Receive,
            ModeName::Forward => IoMode::Forward,
            ModeName::Mirror => IoMode::Mirror,
        }
    }
}
