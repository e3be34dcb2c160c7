//! Arguments shared by several rewriters.

use element::arguments::{Annotation, Raw};
use element::prelude::*;

use super::mapping::{Lifetimes, Tracking};
use super::rewriter::{Settings, annotations};

/// Converts a span, rounded to whole seconds as in Click, to milliseconds.
pub(super) fn seconds(span: Timestamp) -> u64 {
    u64::try_from((span + Timestamp::from_millis(500)).seconds()).unwrap_or(0).saturating_mul(1_000)
}

/// Arguments of all rewriters. They must come last, because the remaining arguments are INPUTSPECs.
#[derive(ArgumentGroup)]
pub(crate) struct FlowArguments {
    /// Maximum number of flows, or the name of a rewriter to share the capacity with. No limit by default.
    mapping_capacity: Option<Raw>,
    /// Another name of MAPPING_CAPACITY.
    capacity: Option<Raw>,
    /// Interval between searches for expired flows; 0 for none.
    #[arg(default = "15m")]
    reap_interval: Timestamp,
    /// Older name of REAP_INTERVAL.
    #[arg(deprecated)]
    reap_time: Option<Timestamp>,
    /// Annotation byte that replies inherit from the first packet of their flow.
    reply_anno: Option<Annotation<1>>,
    /// What to do with packets of unknown flows, one specification per input.
    #[arg(rest, keyword = "INPUTSPEC")]
    inputs: Vec<Raw>,
}

impl FlowArguments {
    /// Creates a rewriter's settings. `lifetimes` are those of its flows by table; `destination` says whether it sets
    /// the destination annotation.
    pub(super) fn settings(self, lifetimes: Vec<Lifetimes>, destination: bool) -> Settings {
        Settings {
            inputs: self.inputs,
            lifetimes,
            capacity: self.capacity.or(self.mapping_capacity).map(|Raw(text)| text),
            interval: Timestamp::from_millis(seconds(self.reap_time.unwrap_or(self.reap_interval)) as i64),
            annotations: annotations(destination, self.reply_anno),
        }
    }
}

/// Lifetimes of TCP flows.
#[derive(ArgumentGroup)]
pub(crate) struct TcpArguments {
    /// Lifetime of a TCP flow after data has passed in both directions.
    #[arg(default = "24h")]
    tcp_timeout: Timestamp,
    /// Another name of TCP_TIMEOUT.
    timeout: Option<Timestamp>,
    /// Lifetime of a TCP flow that both sides have closed.
    #[arg(default = "4m")]
    tcp_done_timeout: Timestamp,
    /// Lifetime of a TCP flow before data has passed in both directions.
    #[arg(default = "5m")]
    tcp_nodata_timeout: Timestamp,
    /// Time after each packet for which a TCP flow cannot be evicted.
    #[arg(default = "5")]
    tcp_guarantee: Timestamp,
    /// Another name of TCP_GUARANTEE.
    guarantee: Option<Timestamp>,
}

impl TcpArguments {
    pub(super) fn lifetimes(&self) -> Lifetimes {
        Lifetimes {
            guarantee: seconds(self.guarantee.unwrap_or(self.tcp_guarantee)),
            early: seconds(self.tcp_nodata_timeout),
            settled: seconds(self.timeout.unwrap_or(self.tcp_timeout)),
            done: seconds(self.tcp_done_timeout),
            tracking: Tracking::Tcp,
        }
    }
}

/// Lifetimes of flows that are identified by addresses only.
#[derive(ArgumentGroup)]
pub(crate) struct AddressArguments {
    /// Lifetime of a flow.
    #[arg(default = "2h")]
    timeout: Timestamp,
    /// Time after each packet for which a flow cannot be evicted.
    #[arg(default = "5")]
    guarantee: Timestamp,
}

impl AddressArguments {
    pub(super) fn lifetimes(&self) -> Lifetimes {
        untracked(self.timeout, self.guarantee)
    }
}

/// Lifetimes of flows whose progress is not tracked.
pub(super) fn untracked(timeout: Timestamp, guarantee: Timestamp) -> Lifetimes {
    Lifetimes {
        guarantee: seconds(guarantee),
        early: seconds(timeout),
        settled: 0,
        done: 0,
        tracking: Tracking::None,
    }
}
