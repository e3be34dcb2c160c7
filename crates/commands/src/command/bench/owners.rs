//! `clickbox bench owners`: how two owners share a host.

use bench::planes::{Owners, RoundTrips, owners};
use clap::Args;

use super::error::BenchError;
use crate::output;

/// Measure how two owners share the processors, and one's latency beside the other's load.
///
/// Starts a new daemon with a fabric for each owner. A box of the first owner pings another one through a switch: first
/// alone, then while the second owner runs one busy box for each processor. Finally both owners run busy boxes, and the
/// processor time of the two fabrics is measured.
#[derive(Args)]
#[command(after_help = "Example: clickbox bench owners --weights 300 100")]
pub(super) struct Arguments {
    /// Weights of the owners.
    #[arg(long, num_args = 2, value_names = ["ONE", "TWO"], default_values_t = [300, 100],
        value_parser = clap::value_parser!(u16).range(1..=10_000))]
    weights: Vec<u16>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub(super) fn measure(&self) -> Result<(), BenchError> {
        let program = std::env::current_exe().map_err(BenchError::Program)?;
        let weight = |place: usize| self.weights.get(place).copied().unwrap_or(100);
        let done = owners(&program, [weight(0), weight(1)])?;
        match self.json {
            true => output::json(&done),
            false => output::text(&sentences(&done)),
        }
        Ok(())
    }
}

fn sentences(done: &Owners) -> String {
    let Owners { weights, processors, alone, beside } = done;
    let trips = |trips: &RoundTrips| format!("mean {:.0} us, longest {:.0} us", trips.mean_us, trips.max_us);
    format!(
        "weights {}:{}: {:.2} and {:.2} processors used\n\
         round trips of the first owner alone: {}\n\
         beside the second owner's load: {}\n",
        weights[0],
        weights[1],
        processors[0],
        processors[1],
        trips(alone),
        trips(beside)
    )
}
