//! `RatedUnqueue`: pulls packets at a rate and pushes them on.

use element::prelude::*;

use super::ratedpull::{Rated, RatedPull};
use crate::shaping::rated::{Allowance, Packets};

/// Pulls RATE packets a second and pushes them on.
///
/// After a pause as many packets may follow each other at once as come in BURST_DURATION (20 ms by default), or
/// BURST_SIZE. It sleeps while what is upstream says that it is empty.
/// ```click
/// RatedSource(RATE 1000) -> q :: Queue -> u :: RatedUnqueue(100) -> c :: Counter(COUNT_CALL 50 stop) -> Discard;
/// ```
/// ```expect
/// u.rate = 100
/// c.count = 50
/// ```
#[derive(Args)]
#[element(
    name = "RatedUnqueue",
    group = "storing",
    ports = "1/1",
    processing = "l/h",
    task,
    see = "BandwidthRatedUnqueue, Unqueue, Shaper, RatedSplitter"
)]
pub struct RatedUnqueueArgs {
    /// Packets a second.
    #[arg(position)]
    rate: u32,
    /// How long the token bucket takes to fill.
    burst_duration: Option<Timestamp>,
    /// Packets that may follow each other at once.
    burst_size: Option<u32>,
}

/// The kind.
pub struct ByPackets;

impl Rated for ByPackets {
    type Args = RatedUnqueueArgs;
    type Measure = Packets;

    fn allowance(args: RatedUnqueueArgs) -> Result<Allowance<Packets>, SetupError> {
        Allowance::new(args.rate, args.burst_duration, args.burst_size)
    }
}

/// The element.
pub type RatedUnqueue = RatedPull<ByPackets>;
