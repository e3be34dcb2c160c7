//! `clickbox bench engine --shards`: how much faster several engines are than one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bench::engine::{Comparison, Workbench};
use router::{Options, RunEnd};
use serde::Serialize;

use super::error::BenchError;
use crate::configuration;
use crate::environment;
use crate::error::FileError;
use crate::output;
use crate::shards::{Engines, Plan};

/// The numbers of shards to measure.
pub(super) struct ShardCounts<'a> {
    pub(super) shards: &'a [u32],
    /// The longest time that a run may take.
    pub(super) timeout: Duration,
    pub(super) json: bool,
}

/// The results for one configuration and number of shards.
#[derive(Serialize)]
struct Row {
    config: String,
    shards: u32,
    packets: u64,
    /// The shortest run, in seconds.
    seconds: f64,
    mpps: f64,
    /// Packets in the fullest shard, in relation to their mean.
    imbalance: f64,
    /// The rate in relation to that of the first number of shards.
    speedup: f64,
    /// The same by the CPU time of the busiest shard, for machines on which others run.
    cpu_speedup: f64,
}

/// The best of the runs.
struct Best {
    seconds: f64,
    cpu_seconds: f64,
    imbalance: f64,
}

impl ShardCounts<'_> {
    pub(super) fn measure(
        &self,
        workbench: &mut Workbench,
        comparisons: &[Comparison],
    ) -> Result<(), BenchError> {
        if !self.json {
            output::text(&format!(
                "Time by the clock, minimum of the runs. imbalance: packets in the fullest shard above their mean.\n\
                 by CPU: the speed-up by the CPU time of the busiest shard, which tells more if others use the machine.\n\
                 {:<24} {:>6} {:>10} {:>8} {:>10} {:>8} {:>8}\n",
                "", "shards", "packets", "Mp/s", "imbalance", "speed-up", "by CPU"
            ));
        }
        let mut rows = Vec::new();
        for comparison in comparisons {
            let refused = |cause| BenchError::Compare { name: comparison.config.clone(), cause };
            let (text, capture) = workbench.prepare(comparison).map_err(refused)?;
            let mut first = None;
            for &shards in self.shards {
                let best = self.run(&comparison.config, &text, &capture.path, shards, comparison.runs)?;
                let (seconds, cpu_seconds) = *first.get_or_insert((best.seconds, best.cpu_seconds));
                let row = Row {
                    config: comparison.config.clone(),
                    shards,
                    packets: capture.frames,
                    seconds: best.seconds,
                    mpps: capture.frames as f64 / best.seconds / 1e6,
                    imbalance: best.imbalance,
                    speedup: seconds / best.seconds,
                    cpu_speedup: cpu_seconds / best.cpu_seconds,
                };
                if !self.json {
                    output::text(&format!(
                        "{:<24} {:>6} {:>10} {:>8.2} {:>9.1}% {:>8.2} {:>8.2}\n",
                        row.config,
                        row.shards,
                        row.packets,
                        row.mpps,
                        row.imbalance * 100.0,
                        row.speedup,
                        row.cpu_speedup
                    ));
                }
                rows.push(row);
            }
        }
        if self.json {
            output::json(&rows);
        }
        Ok(())
    }

    /// The best of several runs.
    fn run(&self, name: &str, text: &str, path: &Path, shards: u32, runs: u32) -> Result<Best, BenchError> {
        let failed = |problem: String| BenchError::Shards { name: name.into(), shards, problem };
        let is_class = |name: &str| configuration::registry().contains(name);
        let compiled = click_lang::compile(text, &click_lang::Options::new(name, &is_class));
        if compiled.has_errors() {
            return Err(failed(lines(&compiled.diagnostics)));
        }
        let bytes: Arc<[u8]> =
            std::fs::read(path).map_err(|error| BenchError::Read(FileError::new(path, error)))?.into();
        let parts = match shards {
            1 => vec![bytes],
            _ => environment::split(&bytes, shards).map_err(|error| failed(error.to_string()))?,
        };
        let sizes = parts.iter().map(|part| part.len() as f64);
        let mean = sizes.clone().sum::<f64>() / f64::from(shards);
        let imbalance = sizes.fold(0.0, f64::max) / mean - 1.0;
        let options = Options { source: text.into(), ..Options::default() };
        let captures = vec![(path.display().to_string(), parts)];
        let plan = Plan { graph: compiled.graph, options, captures };
        let mut best = Best { seconds: f64::INFINITY, cpu_seconds: f64::INFINITY, imbalance };
        for _ in 0..runs.max(1) {
            let built = Engines::build(shards, &plan).map_err(|error| failed(error.to_string()))?;
            let (mut engines, _) = built.map_err(|problems| failed(lines(&problems)))?;
            let started = engines.start();
            let end = engines.wait(self.timeout);
            let (seconds, busy) = ((engines.ended() - started).as_secs_f64(), engines.busy().as_secs_f64());
            engines.finish();
            if end != Some(RunEnd::Stopped) {
                return Err(failed("the run did not end in time".into()));
            }
            best.seconds = best.seconds.min(seconds);
            best.cpu_seconds = best.cpu_seconds.min(busy);
        }
        Ok(best)
    }
}

fn lines(problems: &[click_lang::Diagnostic]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<String>>().join("\n")
}
