//! `clickbox bench engine`: measurements of configurations in memory, on one core.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bench::TemporaryFolder;
use bench::engine::{
    ClickProgram, Comparison, EXAMPLES, FrameSize, Load, Row, Traffic, Workbench, class_configurations,
    has_element,
};
use clap::Args;
use serde::Serialize;

use super::error::BenchError;
use super::shards::ShardCounts;
use crate::error::FileError;
use crate::output;
use crate::shards::MAX_SHARDS;

/// Measure configurations in memory, on one core.
///
/// The element `source` of a configuration is replaced by FromDump, which reads packets from a capture. With --peer,
/// the other program runs the same text on the same capture, in turn. Each figure is the minimum of --runs runs. Times
/// are CPU times without start-up.
///
/// `whole` is the time per packet, including reading and dropping it. `chain` is the part that exceeds the time of
/// `FromDump(file) -> Discard`, measured in the same run. A chain below 5 ns is repeated nine times in one
/// configuration.
///
/// Mixed traffic is generated from --seed: TCP and UDP flows with payloads between clients and 2,000 servers, whose
/// popularity follows Zipf's law. Rules and routes are drawn from the flows, so packets match them.
///
/// With --floor, hand-written loops do the jobs of wire, ethermirror, router and firewall on the same capture, without an
/// engine. `floor` is their time per packet including reading, and the ratio says how much longer this program takes.
///
/// With --classes, each row is an element class in a small configuration, with what the class needs before and behind it. Their
/// FromDump sends 32 packets in a turn (BURST 32), as FastClick does by default.
#[derive(Args)]
#[command(
    after_help = "Examples: clickbox bench engine --all --peer /usr/local/bin/click\n          clickbox bench engine --config firewall --rules 10,100,1000 --size imix\n          clickbox bench engine --classes --peer /usr/local/bin/click --packets 1000000"
)]
pub(super) struct Arguments {
    /// Measure all nine examples (the default).
    #[arg(long, conflicts_with = "config")]
    all: bool,
    /// Measure this example or configuration file.
    #[arg(long, value_name = "NAME|FILE")]
    config: Vec<String>,
    /// Measure element classes instead, all or these.
    #[arg(long, value_name = "CLASS,...", value_delimiter = ',', num_args = 0.., conflicts_with_all = ["all", "config", "rules", "routes", "compact", "floor", "shards"])]
    classes: Option<Vec<String>>,
    /// `mixed` for many flows, `constant` for one repeated packet, or a capture file.
    #[arg(long, value_name = "mixed|constant|FILE", default_value = "mixed")]
    traffic: String,
    /// Bytes of each frame, 60 to 1514, or `imix`: 7 frames of 64 bytes, 4 of 594, 1 of 1514.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "64")]
    size: Vec<FrameSize>,
    /// Number of rules in the IPFilter `rules` (default 10 for mixed traffic).
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=60_000))]
    rules: Vec<u32>,
    /// Use the compact form of the rules in this program. The peer gets the same rules, but not the argument MEMORY 0.
    #[arg(long)]
    compact: bool,
    /// Number of routes in the route table `routes`.
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=4_000_000))]
    routes: Vec<u32>,
    /// Number of flows in mixed traffic.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "60000", value_parser = clap::value_parser!(u32).range(1..=4_000_000))]
    flows: Vec<u32>,
    /// Packets per run, limited by a capture size of 1 GB. A shorter capture file is repeated.
    #[arg(long, default_value_t = 4_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    packets: u64,
    /// Seed for traffic, rules and routes.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Also measure this program, which must accept Click's command line.
    #[arg(long, value_name = "PROGRAM")]
    peer: Option<PathBuf>,
    /// Also measure hand-written loops that do the same jobs.
    #[arg(long)]
    floor: bool,
    /// Number of runs of each program.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Kill a run after this time. A killed peer gets a note instead of figures.
    #[arg(long, default_value_t = 120, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Measure with each of these numbers of shards, instead of comparing: time by the clock, with the capture in memory and
    /// divided by flow before it starts.
    #[arg(long, value_name = "N,...", value_delimiter = ',', conflicts_with_all = ["peer", "floor"], value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SHARDS)))]
    shards: Vec<u32>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    results: Vec<Row>,
}

impl Arguments {
    pub(super) fn measure(&self) -> Result<(), BenchError> {
        let folder = TemporaryFolder::new().map_err(BenchError::Folder)?;
        let timeout = Duration::from_secs(self.timeout);
        let own = ClickProgram::own(timeout).map_err(BenchError::Program)?;
        let peer = self.peer.as_deref().map(|path| ClickProgram::other(path, timeout));
        if let (Some(program), Some(path)) = (&peer, &self.peer) {
            program.try_start().map_err(|error| BenchError::Peer(FileError::new(path, error)))?;
        }
        let mut workbench = Workbench::new(own, peer, folder.path());
        let comparisons = self.comparisons()?;
        if !self.shards.is_empty() {
            let counts = ShardCounts { shards: &self.shards, timeout, json: self.json };
            return counts.measure(&mut workbench, &comparisons);
        }
        if !self.json {
            output::text(&self.head());
        }
        let mut results = Vec::new();
        for comparison in comparisons {
            let row = workbench
                .measure(&comparison)
                .map_err(|cause| BenchError::Compare { name: comparison.config.clone(), cause })?;
            if !self.json {
                output::text(&self.line(&row));
            }
            results.push(row);
        }
        if self.json {
            output::json(&Report { results });
        } else if self.classes.is_some() && self.peer.is_some() {
            output::text(&slower(&results));
        }
        Ok(())
    }

    fn head(&self) -> String {
        let mut text = format!(
            "Nanoseconds of CPU time per packet, minimum of {} runs of {} packets; {} traffic.\n\
             whole: reading, chain and dropping. chain: time above reading and dropping. spread: median above minimum.\n",
            self.runs, self.packets, self.traffic
        );
        let peer =
            |name| if self.peer.is_some() { format!(" {name:>7} {:>6}", "ratio") } else { String::new() };
        let peer = peer("peer");
        let floor = if self.floor { format!(" {:>7} {:>6}", "floor", "ratio") } else { String::new() };
        text += &format!(
            "{:<40} {:>7}{peer}{floor} {:>7}{peer} {:>7} {:>6}\n",
            "", "whole", "chain", "spread", "batch"
        );
        text
    }

    /// All comparisons: each configuration with all requested loads that its elements support.
    fn comparisons(&self) -> Result<Vec<Comparison>, BenchError> {
        let traffic: Traffic = match self.traffic.parse() {
            Ok(traffic) => traffic,
            Err(never) => match never {},
        };
        // An existing capture determines sizes and flows.
        let (sizes, flows) = match traffic {
            Traffic::Mixed => (&self.size[..], &self.flows[..]),
            Traffic::Constant => (&self.size[..], &[1][..]),
            Traffic::File(_) => (&[FrameSize::AsCaptured][..], &[0][..]),
        };
        let choices = |wanted: &[u32], possible: bool| match possible {
            true if !wanted.is_empty() => wanted.iter().copied().map(Some).collect(),
            _ => vec![None],
        };
        let mut comparisons = Vec::new();
        for (config, text) in self.configurations()? {
            let all_rules = choices(&self.rules, has_element(&text, "rules"));
            let all_routes = choices(&self.routes, has_element(&text, "routes"));
            for &size in sizes {
                for &flows in flows {
                    for (&rules, &routes) in all_rules
                        .iter()
                        .flat_map(|rules| all_routes.iter().map(move |routes| (rules, routes)))
                    {
                        comparisons.push(Comparison {
                            config: config.clone(),
                            text: text.clone(),
                            traffic: traffic.clone(),
                            size,
                            flows,
                            load: Load { rules, routes, compact: self.compact, ..Load::default() },
                            packets: self.packets,
                            runs: self.runs,
                            seed: self.seed,
                            floor: self.floor,
                            of_class: self.classes.is_some(),
                        });
                    }
                }
            }
        }
        Ok(comparisons)
    }

    /// Names and texts of the configurations.
    fn configurations(&self) -> Result<Vec<(String, String)>, BenchError> {
        if let Some(classes) = &self.classes {
            let unknown =
                classes.iter().find(|class| class_configurations().all(|known| known.class != **class));
            if let Some(class) = unknown {
                return Err(BenchError::UnmeasuredClass(class.clone()));
            }
            let wanted = class_configurations()
                .filter(|known| classes.is_empty() || classes.iter().any(|class| class == known.class));
            return Ok(wanted.map(|known| (known.name.to_string(), known.text)).collect());
        }
        let examples = EXAMPLES.iter().map(|example| (example.name.to_string(), example.text.to_string()));
        if self.all || self.config.is_empty() {
            return Ok(examples.collect());
        }
        let named = |name: &String| {
            if let Some(example) = examples.clone().find(|(known, _)| known == name) {
                return Ok(example);
            }
            let text = std::fs::read_to_string(name)
                .map_err(|error| BenchError::Read(FileError::new(Path::new(name), error)))?;
            Ok((name.clone(), text))
        };
        self.config.iter().map(named).collect()
    }

    /// A row as text.
    fn line(&self, row: &Row) -> String {
        let size = match row.size {
            FrameSize::Bytes(bytes) => format!("{bytes} B"),
            other => other.to_string(),
        };
        let mut name = format!("{}, {size}", row.config);
        let rules = if row.compact { "compact rules" } else { "rules" };
        for (count, what) in [(row.rules, rules), (row.routes, "routes"), (Some(row.flows as u32), "flows")] {
            if let Some(count) = count {
                name += &format!(", {count} {what}");
            }
        }
        let peer = row.peer.as_ref();
        let whole = peer.map(|peer| format!(" {:>7.1} {:>6.2}", peer.figures.ns_per_packet, peer.ratio));
        let chain = peer.map(|peer| {
            let ratio = peer.chain_ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}"));
            format!(" {:>7.1} {ratio:>6}", peer.figures.chain_ns)
        });
        // Rows without a loop leave the columns empty.
        let floor =
            row.floor.map(|floor| format!(" {:>7.1} {:>6.2}", floor.figures.ns_per_packet, floor.ratio));
        let floor = floor.unwrap_or_else(|| if self.floor { format!("{:>15}", "") } else { String::new() });
        let batch = row.batch.map_or_else(|| "-".into(), |batch| format!("{batch:.1}"));
        let note = row.note.as_ref().map(|note| format!("  {note}")).unwrap_or_default();
        format!(
            "{name:<40} {:>7.1}{}{floor} {:>7.2}{} {:>6.0}% {batch:>6}{note}\n",
            row.ours.ns_per_packet,
            whole.unwrap_or_default(),
            row.ours.chain_ns,
            chain.unwrap_or_default(),
            row.ours.spread * 100.0
        )
    }
}

/// The goal for each class: at most this many times the peer's time.
const MAX_RATIO: f64 = 1.05;

/// The rows that take longer than `MAX_RATIO` times the peer's time, including reading the packets.
fn slower(rows: &[Row]) -> String {
    let ratio = |row: &Row| row.peer.map(|peer| row.ours.ns_per_packet / peer.figures.ns_per_packet);
    let compared = rows.iter().filter_map(|row| Some((row, ratio(row)?)));
    let slow = compared.filter(|(_, ratio)| *ratio > MAX_RATIO);
    let names: Vec<_> = slow.map(|(row, ratio)| format!("{} {ratio:.2}", row.config)).collect();
    match names.as_slice() {
        [] => format!("No class takes more than {MAX_RATIO} times the peer's whole time.\n"),
        names => format!("More than {MAX_RATIO} times the peer's whole time: {}.\n", names.join(", ")),
    }
}
