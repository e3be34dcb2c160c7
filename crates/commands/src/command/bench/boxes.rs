//! `clickbox bench boot|create|memory|io|latency|chain|steering|ports|density|state|all`: measurements of boxes.

use std::path::PathBuf;
use std::time::Duration;

use bench::{
    BoxProgram, IdleMode, Interconnect, IoMode, Latency, Lookup, Machine, MeasureError, NeighbourLoad,
    PAPER_FUNCTIONS, PacketSizes, PeerDriver, PlatformKind, ReportScope, Rows, SamplePlan, SteeringResults,
    SteeringScope, Table, TestBed,
};
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

use super::error::BenchError;
use crate::components;
use crate::configuration::registry;
use crate::error::FileError;
use crate::{output, thread_box};

/// The frame sizes of `--all`.
const SIZES: [u16; 6] = [64, 128, 256, 512, 1024, 1500];

/// The ring sizes of `--all`, in slots.
const RINGS: [u32; 6] = [64, 128, 256, 512, 1024, 2048];

/// The lengths of handler values, in bytes.
const VALUES: [usize; 6] = [1, 64, 1024, 4096, 16_384, 65_536];

#[derive(Subcommand)]
pub(super) enum BoxBenchmark {
    Boot(BootArguments),
    Create(CreateArguments),
    Io(IoArguments),
    Latency(LatencyArguments),
    Chain(ChainArguments),
    Steering(SteeringArguments),
    Ports(PortsArguments),
    Density(DensityArguments),
    State(StateArguments),
    Memory(MemoryArguments),
    All(AllArguments),
}

/// Options of all benchmarks.
#[derive(Args)]
struct Common {
    /// Sandbox of the boxes. The default is vm if /dev/kvm is usable, else process.
    #[arg(long, value_enum)]
    sandbox: Option<Sandbox>,
    /// Program inside the boxes.
    #[arg(long, value_enum, default_value = "click")]
    inside: InsideName,
    /// Number of runs; the figures are their medians.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Duration of runs without a natural end.
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
    /// The engine with a Click configuration.
    Click,
    /// A small program that only moves packets, to measure sandbox, rings and switch alone.
    Probe,
}

/// Measure how long boxes take to start.
///
/// Measures three ways: through a daemon, from the request to the first packet on a switch; with the sandbox library
/// alone; and as copies of one box. With processes, also the time from the end of an instance of a service to the next packet of
/// its flow, which another instance passes.
#[derive(Args)]
#[command(after_help = "Example: clickbox bench boot --count 400 --sandbox process")]
pub(super) struct BootArguments {
    /// Number of boxes, started one by one; all keep running.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: u32,
    #[command(flatten)]
    common: Common,
}

/// Measure how long a box takes from the command `create` to its first packet.
///
/// Boxes are attached to a switch, and their first packet is captured at another port of it. They are created alternately by
/// the command, from its start, and by requests on an open connection. An fsync of the disk with the store is measured in
/// between. Then a handler is read and written on the connection.
#[derive(Args)]
#[command(after_help = "Example: clickbox bench create --sandbox process")]
pub(super) struct CreateArguments {
    /// Number of boxes that are created in each of the two ways; all keep running.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    count: u32,
    #[command(flatten)]
    common: Common,
}

/// Measure how fast one box moves packets.
#[derive(Args)]
#[command(after_help = "Example: clickbox bench io --mode forward --size 64 --ring 1024")]
pub(super) struct IoArguments {
    /// Task of the box.
    #[arg(long, value_enum, default_value = "forward")]
    mode: ModeName,
    /// Bytes of each frame.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(60..=2048))]
    size: u16,
    /// Slots of each ring: a power of two from 64 to 2048.
    #[arg(long, default_value_t = 1024)]
    ring: u32,
    /// Measure all combinations of frames from 64 to 1500 bytes and rings from 64 to 2048 slots.
    #[arg(long, conflicts_with_all = ["size", "ring"])]
    all: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, ValueEnum)]
enum ModeName {
    /// Generate packets.
    Send,
    /// Receive packets.
    Receive,
    /// Forward packets from one port to another.
    Forward,
    /// Send packets back with addresses swapped.
    Mirror,
}

/// Measure the response time of a box, alone and with other boxes on its core.
#[derive(Args)]
#[command(after_help = "Example: clickbox bench latency --others 0,1,11")]
pub(super) struct LatencyArguments {
    /// Numbers of other boxes on its core.
    #[arg(long, value_delimiter = ',', default_value = "0,1,3,7,11", value_parser = clap::value_parser!(u16).range(0..=1000))]
    others: Vec<u16>,
    #[command(flatten)]
    common: Common,
}

/// Measure the packet rate through a chain of boxes on one core.
///
/// The boxes have one owner, share their packets as with `create --share-packets`, and are joined by switches.
#[derive(Args)]
#[command(after_help = "Example: clickbox bench chain --length 9 --pipes")]
pub(super) struct ChainArguments {
    /// Number of boxes, including the first, which sends, and the last, which receives. The default is every length
    /// from 2 to 9.
    #[arg(long, value_parser = clap::value_parser!(u16).range(2..=100))]
    length: Option<u16>,
    /// Join the boxes by pipes instead of switches.
    #[arg(long)]
    pipes: bool,
    /// Do not share packets: switches copy each one, as between boxes of different owners.
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

/// Measure packets through a chain of functions of a steering switch.
///
/// All functions run on one core, and the switch on the other. They only forward; rates are measured where packets leave
/// the chain. The latency is that of single packets; the function polls if there is only one. `by` states how packets come
/// into the chain: as the default of their port, or by one of 1,001 entries of the flow table. With `static`, switches with
/// static tables before, between and after the functions take the place of the steering switch; they have one thread, and no
/// idle ports. All chains of one number of flows, size and number of threads are measured alternately.
///
/// `ns` is the processor time of the switch for each packet on its whole way, with receiving and sending it, and `ns a hop` what each
/// function costs beyond those of the next shorter chain.
///
/// At last, a chain of six functions is compared with one function, each with a processor of its own on which it polls, as
/// in the OpenNetVM paper. This needs seven processors; the output says so where there are fewer.
///
/// With --testpmd, a chain of processes of DPDK's testpmd is measured too, on the same cores: memif connects the processes, and
/// no packet is looked up. Its processes poll, so several on one core hinder each other. With --ovs, the same processes are
/// connected to Open vSwitch with DPDK, which stands where the switch does.
#[derive(Args)]
#[command(
    after_help = "Examples: clickbox bench steering --chain 1,2,5 --flows 60000,1000000 --size 64,1472\n          clickbox bench steering --chain 1 --testpmd /usr/bin/dpdk-testpmd --ovs /usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
)]
pub(super) struct SteeringArguments {
    /// Numbers of functions.
    #[arg(long, value_delimiter = ',', default_value = "1,2,5", value_parser = clap::value_parser!(u16).range(1..=32))]
    chain: Vec<u16>,
    /// Numbers of flows.
    #[arg(long, value_delimiter = ',', default_value = "60000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    flows: Vec<u32>,
    /// Bytes of each frame, from 60 to 1514; or `mix`, the sizes of the OpenNetVM paper: 44.3 % of 64 bytes, 18.5 % of 65 to 1023, and
    /// 37.2 % of 1024 to 1514.
    #[arg(long, value_delimiter = ',', default_value = "64")]
    size: Vec<PacketSizes>,
    /// Numbers of threads that run the switch. Each has the flows that a device with a queue for each thread would give it.
    #[arg(long, value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u8).range(1..=8))]
    switch_threads: Vec<u8>,
    /// Numbers of ports of the steering switch that have no packets, beside those of the chain.
    #[arg(long, value_delimiter = ',', default_value = "0", value_parser = clap::value_parser!(u16).range(0..=4000))]
    idle_ports: Vec<u16>,
    /// Measure this testpmd too
    #[arg(long, value_name = "PROGRAM", value_hint = clap::ValueHint::ExecutablePath)]
    testpmd: Option<PathBuf>,
    /// Measure this `ovs-vswitchd`, built with DPDK, too. The other programs of Open vSwitch are found by PATH
    #[arg(long, value_name = "PROGRAM", requires = "testpmd", value_hint = clap::ValueHint::ExecutablePath)]
    ovs: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// Measure ports to other processes beside two processes of DPDK's testpmd.
///
/// One end sends frames of 64 bytes, and the other one discards them. A switch on one core has a port to a testpmd on the other;
/// in the same run, a second testpmd takes the place of the switch. No box takes part.
#[derive(Args)]
#[command(
    after_help = "Examples: clickbox bench ports --testpmd /usr/bin/dpdk-testpmd\n          clickbox bench ports --testpmd /usr/bin/dpdk-testpmd --driver memif --runs 9 --time 1000"
)]
pub(super) struct PortsArguments {
    /// The program
    #[arg(long, value_name = "PROGRAM", value_hint = clap::ValueHint::ExecutablePath)]
    testpmd: PathBuf,
    /// Drivers of the port.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "memif,vhost_user")]
    driver: Vec<DriverName>,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum DriverName {
    /// A memif interface, as server and as client.
    Memif,
    /// The back end of a virtio network device.
    VhostUser,
}

/// Measure the total send rate of many boxes on one core, and how evenly they share it.
#[derive(Args)]
#[command(after_help = "Example: clickbox bench density --boxes 100 --size 64")]
pub(super) struct DensityArguments {
    /// Number of boxes.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    boxes: u16,
    /// Bytes of each frame.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(60..=2048))]
    size: u16,
    /// Slots of each ring: a power of two from 64 to 2048. A box fills its ring in one turn.
    #[arg(long, default_value_t = 2048)]
    ring: u32,
    #[command(flatten)]
    common: Common,
}

/// Measure the time to write and read handlers of a box.
#[derive(Args)]
#[command(after_help = "Examples: clickbox bench state\n          clickbox bench state --rules 10000")]
pub(super) struct StateArguments {
    /// Measure instead how long packets wait while this many rules of a firewall are written, and while its configuration
    /// is replaced, under traffic, in a box and in a plain process.
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=50_000))]
    rules: Option<u32>,
    #[command(flatten)]
    common: Common,
}

/// Measure the memory that ports, routes, rules and patterns of a box use.
#[derive(Args)]
#[command(after_help = "Example: clickbox bench memory --json")]
pub(super) struct MemoryArguments {
    /// Number of routes, and of rules. Patterns are two fifths of that.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(5..=50_000))]
    entries: u32,
    #[command(flatten)]
    common: Common,
}

/// Measure everything, and write a page that compares it with the papers' figures.
///
/// Writes `index.html`, which loads nothing from the network, and `report.json`.
#[derive(Args)]
#[command(after_help = "Example: clickbox bench all --out report/")]
pub(super) struct AllArguments {
    /// Output folder; created if missing.
    #[arg(long, default_value = "report")]
    out: PathBuf,
    /// Number of boxes to start, one by one.
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: u32,
    #[command(flatten)]
    common: Common,
}

impl BoxBenchmark {
    pub(super) fn measure(&self) -> Result<(), BenchError> {
        match self {
            BoxBenchmark::Boot(arguments) => {
                let common = &arguments.common;
                let program = std::env::current_exe().map_err(BenchError::Program)?;
                let count = arguments.count as usize;
                common.print(&bench::boot(&common.bed()?, count, common.plan(), Some(&program))?);
            }
            BoxBenchmark::Create(arguments) => {
                let common = &arguments.common;
                let program = std::env::current_exe().map_err(BenchError::Program)?;
                let count = arguments.count as usize;
                common.print(&bench::create(&common.bed()?, &program, count, common.plan())?);
            }
            BoxBenchmark::Io(arguments) => arguments.measure()?,
            BoxBenchmark::Latency(arguments) => arguments.measure()?,
            BoxBenchmark::Chain(arguments) => arguments.measure()?,
            BoxBenchmark::Steering(arguments) => arguments.measure()?,
            BoxBenchmark::Ports(arguments) => arguments.measure()?,
            BoxBenchmark::Density(arguments) => {
                let common = &arguments.common;
                let (boxes, size, ring) = (usize::from(arguments.boxes), arguments.size, arguments.ring);
                common.print(&bench::density(&common.bed()?, boxes, size, ring, common.plan())?);
            }
            BoxBenchmark::State(arguments) => {
                let common = &arguments.common;
                match arguments.rules {
                    Some(rules) => {
                        let program = std::env::current_exe().map_err(BenchError::Program)?;
                        common.print(&bench::rule_writes(&common.bed()?, &program, rules, common.plan())?);
                    }
                    None => common.print(&bench::state(&common.bed()?, &VALUES, common.plan())?),
                }
            }
            BoxBenchmark::Memory(arguments) => {
                let common = &arguments.common;
                common.print(&bench::memory(&common.bed()?, arguments.entries)?);
            }
            BoxBenchmark::All(arguments) => arguments.measure()?,
        }
        Ok(())
    }
}

impl Common {
    /// A test bed with the given sandbox, or with the first that works.
    fn bed(&self) -> Result<TestBed, MeasureError> {
        let (inside, image) = match self.inside {
            InsideName::Click => (BoxProgram::Click, components::get().box_image),
            InsideName::Probe => (BoxProgram::Probe, components::get().probe_image),
        };
        let bed = |kind| TestBed::new(kind, inside, image, Some(thread_box::run));
        match self.sandbox {
            Some(Sandbox::Vm) => bed(PlatformKind::Vm),
            Some(Sandbox::Process) => bed(PlatformKind::Process),
            Some(Sandbox::Thread) => bed(PlatformKind::Thread),
            None => match bed(PlatformKind::Vm) {
                Err(MeasureError::NoKvm) => {
                    eprintln!("clickbox: /dev/kvm is not usable: boxes run as processes");
                    bed(PlatformKind::Process)
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
    fn measure(&self) -> Result<(), BenchError> {
        let common = &self.common;
        let write = |name: &str, text: &str| {
            let path = self.out.join(name);
            std::fs::write(&path, text).map_err(|error| BenchError::Write(FileError::new(&path, error)))
        };
        // Fails before minutes of measurements if the folder can't be written.
        std::fs::create_dir_all(&self.out)
            .map_err(|error| BenchError::Write(FileError::new(&self.out, error)))?;
        write("index.html", "")?;
        let scope = ReportScope {
            boxes: self.count as usize,
            program: Some(std::env::current_exe().map_err(BenchError::Program)?),
            classes: Some(registry().classes().count()),
            ..ReportScope::default()
        };
        let machine = Machine::this();
        let progress = |what: &str| eprintln!("measuring {what} ...");
        let report = bench::report(&common.bed()?, machine, &scope, common.plan(), progress)?;
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

impl SteeringArguments {
    fn measure(&self) -> Result<(), MeasureError> {
        let common = &self.common;
        let bed = common.bed()?;
        let mut results = Vec::new();
        let plan = common.plan();
        let numbers = |list: &[u16]| list.iter().map(|number| usize::from(*number)).collect::<Vec<_>>();
        let (chains, idle_ports) = (numbers(&self.chain), numbers(&self.idle_ports));
        for flows in &self.flows {
            for size in &self.size {
                for threads in &self.switch_threads {
                    let scope = SteeringScope {
                        chains: &chains,
                        ways: &Lookup::ALL,
                        idle_ports: &idle_ports,
                        flows: *flows,
                        size: *size,
                        threads: (*threads).into(),
                    };
                    results.extend(bench::steering_rates(&bed, &scope, plan)?);
                }
            }
        }
        let own_cores = bench::own_cores(&bed, PAPER_FUNCTIONS, plan)?;
        let mut peers = Vec::new();
        if let Some(program) = &self.testpmd {
            for chain in chains {
                for size in &self.size {
                    let PacketSizes::Bytes(size) = *size else {
                        eprintln!(
                            "clickbox: the peers send frames of one size: they are not measured with a mix"
                        );
                        continue;
                    };
                    peers.push(bench::testpmd_rate(program, &bed, chain, size, plan)?);
                    if let Some(ovs) = &self.ovs {
                        peers.push(bench::ovs_rate(ovs, program, &bed, chain, size, plan)?);
                    }
                }
            }
        }
        common.print(&SteeringResults { results, own_cores, peers });
        Ok(())
    }
}

impl PortsArguments {
    fn measure(&self) -> Result<(), MeasureError> {
        let common = &self.common;
        let bed = common.bed()?;
        let mut rows = Vec::new();
        for driver in &self.driver {
            let driver = match driver {
                DriverName::Memif => PeerDriver::Memif,
                DriverName::VhostUser => PeerDriver::VhostUser,
            };
            rows.extend(bench::port_rates(&self.testpmd, &bed, driver, common.plan())?);
        }
        common.print(&Rows { rows });
        Ok(())
    }
}

impl ChainArguments {
    fn measure(&self) -> Result<(), MeasureError> {
        let common = &self.common;
        let bed = common.bed()?;
        let interconnect = match (self.pipes, self.copy) {
            (true, _) => Interconnect::Pipe,
            (_, true) => Interconnect::Copy,
            _ => Interconnect::Pool,
        };
        let one = |length: u16| {
            bench::chain(&bed, length.into(), interconnect, self.size, self.ring, common.plan())
        };
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
