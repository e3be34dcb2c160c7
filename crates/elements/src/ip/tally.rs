//! The account that header checks keep of what they refuse.

use element::prelude::*;

/// One way in which a header can be wrong.
pub struct HeaderFault {
    /// Text in the log and in `drop_details`.
    pub text: &'static str,
    /// As the framework counts it.
    pub drop: Reason,
}

/// What all checks of headers are asked for.
#[derive(ArgumentGroup)]
pub struct TallyArguments {
    /// Log every bad packet.
    #[arg(default = "false")]
    verbose: bool,
    /// Count bad packets by reason in `drop_details`.
    #[arg(default = "false")]
    details: bool,
}

/// Packets refused, in all and for each reason.
pub(crate) struct Tally {
    reasons: &'static [HeaderFault],
    drops: u64,
    details: Option<Vec<u64>>,
    verbose: bool,
}

impl Tally {
    /// None yet. Without VERBOSE the first refusal alone is told.
    pub(crate) fn new(reasons: &'static [HeaderFault], args: TallyArguments) -> Tally {
        let details = args.details.then(|| vec![0; reasons.len()]);
        Tally { reasons, drops: 0, details, verbose: args.verbose }
    }

    /// Refuses a packet: output 1 if there is one. `check` begins the message: it is made only where there is one,
    /// since whoever sends malformed packets must not be able to make each of them cost a piece of text.
    #[cold]
    pub(crate) fn refuse(
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
            cx.say(&format!("{} check failed: {text}", check()));
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

    /// The `drop_details` handler: a line with count and text for each reason. Absent without `details`.
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
