//! `BandwidthRatedUnqueue`: pulls packets at a bandwidth and pushes them on.

use element::arguments::Bandwidth;
use element::prelude::*;

use super::ratedpull::{Rated, RatedPull};
use crate::shaping::rated::{Allowance, Octets};

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
    /// Bandwidth of the packets.
    #[arg(position)]
    rate: Bandwidth,
    /// How long the token bucket takes to fill.
    burst_duration: Option<Timestamp>,
    /// Bytes that may follow each other at once.
    burst_bytes: Option<u32>,
}

/// The kind.
pub struct ByBytes;

impl Rated for ByBytes {
    type Args = BandwidthRatedUnqueueArgs;
    type Measure = Octets;

    fn allowance(args: BandwidthRatedUnqueueArgs) -> Result<Allowance<Octets>, SetupError> {
        Allowance::new(args.rate, args.burst_duration, args.burst_bytes)
    }
}

/// The element.
pub type BandwidthRatedUnqueue = RatedPull<ByBytes>;
