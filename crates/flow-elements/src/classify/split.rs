//! Splitting of batches by a decision program, and warnings about rules.

use alloc::string::String;
use alloc::vec::Vec;

use classify::{Columns, Decision, Headers, Program, RuleDiagnostic, Unreachable};
use element::{Context, Message, Reason, Setup, SetupError};
use packet::{Batch, Packet};

/// Sends each packet of `batch` to the output that `program` finds, in order; packets without one, or whose output
/// does not exist, are dropped as `reason`. `headers` finds the headers of a packet.
#[inline(always)]
pub(super) fn split(
    cx: &mut Context,
    batch: Batch,
    reason: Reason,
    (program, columns): (&Program, &mut Columns),
    headers: impl Fn(&Packet) -> Headers<'_>,
) {
    match program.decide(columns, batch.as_slice(), headers) {
        Decision::All(output) if (output as usize) < cx.outputs() => cx.emit(output as usize, batch),
        Decision::All(_) => cx.drop_batch(batch, reason),
        Decision::Each(outputs) => cx.send_to_ports(batch, outputs, reason),
    }
}

/// Passes warnings on; the other problems are the error.
pub(super) fn report(problems: &[RuleDiagnostic], setup: &mut Setup) -> Result<(), SetupError> {
    let mut errors = SetupError::default();
    for problem in problems {
        if problem.is_warning() {
            setup.warn(problem);
        } else {
            errors.messages.push(Message::Other(alloc::format!("{problem}")));
        }
    }
    errors.into_result()
}

/// Names the rules that can never get a packet, where the configuration is only being checked. The texts are the
/// rules', as written.
pub(super) fn warn_of_shadowed_rules(program: &Program, texts: &[String], setup: &mut Setup) {
    if !setup.checking {
        return;
    }
    let text = |rule: usize| texts.get(rule).map_or("", |text| text.trim());
    for (rule, why) in program.unreachable() {
        match why {
            Unreachable::Contradiction => {
                setup.warn(format_args!("rule {rule} ‘{}’ contradicts itself", text(rule)));
            }
            Unreachable::Shadowed(by) => {
                let (one, other) = (text(rule), text(by));
                setup
                    .warn(format_args!("rule {rule} ‘{one}’ gets no packet: rule {by} ‘{other}’ takes them"));
            }
        }
    }
}

/// Warns of outputs to which no rule sends packets, or only rules that never get one.
pub(super) fn warn_of_unused_outputs(program: &Program, setup: &mut Setup) {
    let unreachable: Vec<(usize, Unreachable)> = program.unreachable();
    let is_dead = |rule: usize| unreachable.binary_search_by_key(&rule, |(rule, _)| *rule).is_ok();
    let mut is_used = alloc::vec![false; setup.outputs()];
    for (_, rule) in program.rules().iter().enumerate().filter(|(index, _)| !is_dead(*index)) {
        if let Some(is_used) = rule.output.and_then(|output| is_used.get_mut(output as usize)) {
            *is_used = true;
        }
    }
    for (output, _) in is_used.iter().enumerate().filter(|(_, is_used)| !**is_used) {
        setup.warn(format_args!("output {output} matches no packets"));
    }
}
