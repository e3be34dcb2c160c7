//! `BandwidthRatedUnqueue`: pulls packets at a bandwidth and pushes them on.

use element::prelude::*;

use super::ratedpull::RatedPull;
use crate::shaping::rated::{Allowance, ByteRate, Octets, Rated};

/// Moves packets from pull to push at a bandwidth of up to RATE.
///
/// A token bucket measures the rate. After a pause it allows a burst of BURST_BYTES, or of as many bytes as RATE yields
/// in BURST_DURATION (20 ms by default). The task sleeps while the upstream queue is empty.
/// ```click
/// RatedSource(LENGTH 1000, RATE 1000) -> q :: Queue -> u :: BandwidthRatedUnqueue(800kbps)
///   -> c :: Counter(COUNT_CALL 50 stop) -> Discard;
/// ```
/// ```expect
/// c.byte_count = 50000
/// ```
#[derive(Args)]
#[element(
    name = "BandwidthRatedUnqueue",
    group = "storing",
    ports = "1/1",
    processing = "l/h",
    task,
    see = "RatedUnqueue, BandwidthShaper, BandwidthRatedSplitter"
)]
pub struct BandwidthRatedUnqueueArgs {
    #[arg(flatten)]
    rate: ByteRate,
}

impl Rated for BandwidthRatedUnqueueArgs {
    type Measure = Octets;

    fn allowance(self) -> Result<Allowance<Octets>, SetupError> {
        self.rate.allowance()
    }
}

pub type BandwidthRatedUnqueue = RatedPull<BandwidthRatedUnqueueArgs>;
