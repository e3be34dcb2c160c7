//! `clickbox bench owners`: how two owners share a host.

use bench::planes::{Owners, RoundTrips, owners};
use clap::Args;

use super::error::BenchError;
use crate::output;

/// Measure how two owners share the processors, and one's latency beside the other's load.
///
/// Starts a daemon of its own with a fabric for each owner. Boxes of the first owner ping each other through a switch, first
/// alone, and then beside as many boxes of the second owner as there are processors, which always have work. In the end
/// both owners have such boxes, and the processor time of their fabrics is compared.
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
