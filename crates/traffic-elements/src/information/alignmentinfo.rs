//! `AlignmentInfo`: notes about packet alignment, which have no effect.

use alloc::collections::{BTreeMap, BTreeSet};

use element::OtherName;
use element::arguments::Raw;
use element::prelude::*;
use element::text;

/// The element of FastClick that sets the size of DPDK's memory.
static NAMES: [OtherName; 1] = [OtherName {
    name: "DPDKInfo",
    positions: &["NB_MBUF"],
    ignored: &[(
        "NB_MBUF NB_SOCKET_MBUF MBUF_SIZE MBUF_CACHE_SIZE RX_PTHRESH RX_HTHRESH RX_WTHRESH TX_PTHRESH TX_HTHRESH \
         TX_WTHRESH MEMPOOL_PREFIX DEF_RING_NDESC DEF_BURST_SIZE RING_SIZE RING_POOL_CACHE_SIZE RING_PRIV_DATA_SIZE",
        "there is no memory of DPDK",
    )],
    ..OtherName::NONE
}];

/// Accepts the packet alignment notes that the tool `click-align` writes. They have no effect.
///
/// Each argument is `ELEMENT CHUNK OFFSET [CHUNK OFFSET...]`, with one pair per input. The notes are checked, but no
/// element depends on packet alignment.
/// ```click
/// AlignmentInfo(d 4 2);
/// InfiniteSource(LIMIT 1, STOP true) -> d :: Discard;
/// ```
/// ```expect
/// d.count = 1
/// ```
#[derive(Args)]
#[element(
    name = "AlignmentInfo",
    other_names = "NAMES",
    group = "information",
    ports = "0/0",
    phase = "information",
    see = "Align",
    shards = "independent"
)]
pub struct AlignmentInfoArgs {
    /// Elements, each with the alignment of its inputs.
    #[arg(rest)]
    alignments: Vec<Raw>,
}

pub struct AlignmentInfo;

impl Element for AlignmentInfo {
    type Args = AlignmentInfoArgs;

    fn new(args: AlignmentInfoArgs, setup: &mut Setup) -> Result<AlignmentInfo, SetupError> {
        let mut known: BTreeMap<String, BTreeSet<Vec<i32>>> = BTreeMap::new();
        for (index, Raw(argument)) in args.alignments.iter().enumerate() {
            let words = text::words(argument);
            let Some((name, words)) = words.split_first() else {
                setup.warn(format!("empty configuration argument {index}"));
                continue;
            };
            if words.len() % 2 != 0 {
                setup.notes.push("expected ‘ELEMENTNAME CHUNK OFFSET [CHUNK OFFSET...]’".into());
            }
            let mut numbers = Vec::new();
            for (index, word) in words.iter().enumerate() {
                match i32::from_argument(word, setup) {
                    Ok(number) => numbers.push(number),
                    Err(_) if index % 2 == 0 => setup.notes.push("expected CHUNK".into()),
                    Err(_) => setup.notes.push("expected OFFSET".into()),
                }
            }
            let others = known.entry(name.clone()).or_default();
            others.insert(numbers);
            if others.len() > 1 {
                setup.notes.push(format!("conflicting AlignmentInfo for ‘{name}’"));
            }
        }
        Ok(AlignmentInfo)
    }
}
