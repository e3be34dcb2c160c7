//! Counters of the packets that a header check rejects.

use element::prelude::*;

/// A possible fault of a header.
pub struct HeaderFault {
    /// The text in the log and in `drop_details`.
    pub text: &'static str,
    pub drop: Reason,
}

/// The common arguments of all header checks.
#[derive(ArgumentGroup)]
pub struct FaultArguments {
    /// Log every bad packet.
    #[arg(default = "false")]
    verbose: bool,
    /// Count bad packets by reason in `drop_details`.
    #[arg(default = "false")]
    details: bool,
}

/// The rejected packets, in total and by fault.
pub(crate) struct FaultCounters {
    reasons: &'static [HeaderFault],
    drops: u64,
    details: Option<Vec<u64>>,
    verbose: bool,
}

impl FaultCounters {
    /// Creates zero counters. Without VERBOSE only the first rejection is logged.
    pub(crate) fn new(reasons: &'static [HeaderFault], args: FaultArguments) -> FaultCounters {
        let details = args.details.then(|| vec![0; reasons.len()]);
        FaultCounters { reasons, drops: 0, details, verbose: args.verbose }
    }

    /// Rejects a packet: sends it to output 1 if there is one. `check` returns the start of the message. It is called
    /// only if the message is logged, so that malformed packets can't make the router format text each time.
    #[cold]
    pub(crate) fn reject(
        &mut self,
        cx: &Context,
        packet: Packet,
        reason: usize,
        check: impl FnOnce() -> String,
    ) -> Verdict {
        let Some(HeaderFault { text, drop }) = self.reasons.get(reason) else {
            return Verdict::Divert(packet, Reason::UNDECLARED);
        };
        if self.drops == 0 || self.verbose {
            cx.log(&format!("{} check failed: {text}", check()));
        }
        self.drops += 1;
        if let Some(count) = self.details.as_mut().and_then(|details| details.get_mut(reason)) {
            *count += 1;
        }
        Verdict::Divert(packet, *drop)
    }

    /// The `drops` handler.
    pub(super) fn drops(&self) -> String {
        self.drops.to_string()
    }

    /// The `drop_details` handler: one line per fault, with count and text. Absent without `details`.
    pub(super) fn details(&self) -> Result<String, HandlerError> {
        let details =
            self.details.as_ref().ok_or_else(|| HandlerError::NoHandler("drop_details".to_string()))?;
        Ok(details
            .iter()
            .zip(self.reasons)
            .map(|(count, reason)| format!("{count}\t{}\n", reason.text))
            .collect())
    }
}
