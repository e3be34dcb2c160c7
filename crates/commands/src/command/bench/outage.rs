//! `clickbox bench outage`: packet loss while the daemon is killed or upgraded.

use bench::planes::{Interrupted, Outage, outage};
use clap::Args;

use super::error::BenchError;
use crate::output;

/// Count the packets that are lost while the daemon is killed and upgraded.
///
/// Starts a new daemon with a store in a temporary folder. A box sends packets of 60 bytes through a switch to another box,
/// at half of the throughput (the highest rate without loss, RFC 2544). Their rings have 2,048 slots. The daemon is killed
/// and started again, and then replaced as by `clickbox upgrade`. Also prints the time until a handler of a box answers
/// again.
#[derive(Args)]
#[command(after_help = "Example: clickbox bench outage --count 10")]
pub(super) struct Arguments {
    /// Number of interruptions of each kind.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    count: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub(super) fn measure(&self) -> Result<(), BenchError> {
        let program = std::env::current_exe().map_err(BenchError::Program)?;
        let done = outage(&program, self.count)?;
        match self.json {
            true => output::json(&done),
            false => output::text(&sentences(&done)),
        }
        Ok(())
    }
}

fn sentences(done: &Outage) -> String {
    let Outage { capacity_pps, throughput_pps, rate_pps, undisturbed, kills, upgrades } = done;
    let line = |what: &str, part: &Interrupted| {
        format!(
            "{}, the daemon {what} {} times: {} lost of {}; a handler answered after {:.1} ms, at most {:.1} ms\n",
            "the same stream",
            part.interruptions,
            part.stream.lost,
            part.stream.sent,
            part.answer_ms.p50,
            part.answer_ms.max
        )
    };
    format!(
        "at most {capacity_pps} packets a second arrive; none is lost of {throughput_pps} packets a second\n\
         a stream of {rate_pps} packets a second: {} lost of {}\n{}{}",
        undisturbed.lost,
        undisturbed.sent,
        line("killed", kills),
        line("upgraded", upgrades)
    )
}
