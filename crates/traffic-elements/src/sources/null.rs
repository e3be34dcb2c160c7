//! `Null`: passes packets unchanged.

use element::OtherName;
use element::prelude::*;

/// The elements of FastClick that copy packets into buffers of DPDK, and that let one thread at a time pass.
static NAMES: [OtherName; 2] = [
    OtherName {
        name: "EnsureDPDKBuffer",
        positions: &["FORCE_COPY", "EXTRA_HEADROOM"],
        ignored: &[("FORCE_COPY EXTRA_HEADROOM FAIL", "packets are not copied")],
        remark: "passes packets unchanged: they need no buffers of DPDK here",
        ..OtherName::NONE
    },
    OtherName {
        name: "PathSpinlock",
        positions: &["LOCK"],
        ignored: &[("LOCK", "one thread executes the configuration, or each shard")],
        remark: "passes packets unchanged: threads share no elements here",
        ..OtherName::NONE
    },
];

/// Passes packets unchanged.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true) -> Null -> d :: Discard;
/// ```
/// ```expect
/// d.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "Null",
    other_names = "NAMES",
    group = "sources",
    ports = "1/1",
    processing = "a/a",
    order_insensitive,
    shards = "independent",
    see = "Idle"
)]
pub struct NullArgs;

pub struct Null;

impl Element for Null {
    type Args = NullArgs;

    fn new(_: NullArgs, _: &mut Setup) -> Result<Null, SetupError> {
        Ok(Null)
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        cx.emit(0, batch);
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        cx.pull(0, most, into);
    }
}
