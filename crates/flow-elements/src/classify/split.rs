//! Splitting of batches by a decision program, and warnings about rules.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use classify::{Columns, Decision, Headers, PatternError, Program, Rule, RuleDiagnostic, Unreachable};
use element::arguments::Raw;
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

/// The budget of a rule set: what the argument MEMORY gives, or what the environment has for each rule set. A check needs
/// no fast form, whose size may grow with the square of the rules up to the budget.
pub(super) fn budget(memory: Option<u32>, setup: &Setup) -> usize {
    match (setup.checking, memory) {
        (true, _) => 0,
        (false, Some(memory)) => memory as usize,
        (false, None) => setup.environment().rule_memory(),
    }
}

/// Passes warnings on; the other problems are the error: one message for each rule. The texts are the rules', as written.
pub(super) fn report(
    problems: &[RuleDiagnostic],
    texts: &[Raw],
    setup: &mut Setup,
) -> Result<(), SetupError> {
    let text = |rule: usize| texts.get(rule).map_or("", |text| text.0.as_str());
    for problem in problems.iter().filter(|problem| problem.is_warning()) {
        setup.warn_about(text(problem.rule), problem);
    }
    let problems: Vec<&RuleDiagnostic> = problems.iter().filter(|problem| !problem.is_warning()).collect();
    let of_rule = |of_rule: &[&RuleDiagnostic]| {
        let first = of_rule.first()?;
        let lines: Vec<String> = of_rule.iter().map(|problem| problem.to_string()).collect();
        let is_by_ports = |problem: &&RuleDiagnostic| problem.kind.depends_on_ports();
        if of_rule.iter().all(is_by_ports) {
            return Some(Message::Ports(lines.join("\n")));
        }
        let unknown = of_rule.iter().find_map(|problem| problem.kind.unknown_word());
        Some(Message::InArgument {
            argument: text(first.rule).into(),
            text: lines.join("\n"),
            problem: first.kind.explanation(),
            unknown: unknown.map(|(word, known)| (word.into(), known)),
        })
    };
    let messages = problems.chunk_by(|one, other| one.rule == other.rule).filter_map(of_rule).collect();
    SetupError { messages }.into_result()
}

/// Fails if there are problems with patterns, with a message for each. The texts are the patterns, as written.
pub(super) fn report_patterns(problems: &[PatternError], texts: &[Raw]) -> Result<(), SetupError> {
    let message = |problem: &PatternError| {
        let text = texts.get(problem.pattern).map_or("", |text| text.0.as_str());
        Message::in_argument(text, problem, problem.kind)
    };
    SetupError { messages: problems.iter().map(message).collect() }.into_result()
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
                setup.warn_about(text(rule), format_args!("rule {rule} ‘{}’ contradicts itself", text(rule)));
            }
            Unreachable::Shadowed(by) => {
                let (one, other) = (text(rule), text(by));
                setup.warn_about(
                    one,
                    format_args!("rule {rule} ‘{one}’ gets no packet: rule {by} ‘{other}’ takes them"),
                );
            }
        }
    }
}

/// Warns of outputs to which no rule sends packets, or only rules that never get one.
pub(super) fn warn_of_unused_outputs(
    rules: &[Rule],
    unreachable: &[(usize, Unreachable)],
    setup: &mut Setup,
) {
    let is_dead = |rule: usize| unreachable.binary_search_by_key(&rule, |(rule, _)| *rule).is_ok();
    let mut is_used = alloc::vec![false; setup.outputs()];
    for (_, rule) in rules.iter().enumerate().filter(|(index, _)| !is_dead(*index)) {
        if let Some(is_used) = rule.output.and_then(|output| is_used.get_mut(output as usize)) {
            *is_used = true;
        }
    }
    for (output, _) in is_used.iter().enumerate().filter(|(_, is_used)| !**is_used) {
        setup.warn(format_args!("output {output} matches no packets"));
    }
}
