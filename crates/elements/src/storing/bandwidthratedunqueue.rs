//! `BandwidthRatedUnqueue`: pulls packets at a bandwidth and pushes them on.

use element::prelude::*;

use super::ratedpull::RatedPull;
use crate::shaping::rated::{Allowance, ByteRate, Octets, Rated};

/// Pulls packets at a bandwidth of RATE and pushes them on.
///
/// After a pause as many bytes may follow each other at once as come in BURST_DURATION (20 ms by default), or
/// BURST_BYTES. It sleeps while what is upstream says that it is empty.
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

/// The element.
pub type BandwidthRatedUnqueue = RatedPull<BandwidthRatedUnqueueArgs>;
