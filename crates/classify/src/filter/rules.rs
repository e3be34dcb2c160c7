//! Parses the argument lists of `IPFilter` and `IPClassifier` into rules.

use alloc::vec::Vec;

use super::diagnostic::{RuleDiagnostic, RuleDiagnosticKind};
use super::parse::Parser;
use super::words;
use crate::expression::{Expression, Rule};
use crate::names::Names;

/// Parses the arguments of an `IPFilter` with `outputs` outputs. Each is an action and an expression.
///
/// Returns one rule per argument. An invalid argument gives the part that could be parsed.
#[must_use]
pub fn filter_rules<S: AsRef<str>>(
    arguments: &[S],
    outputs: usize,
    names: &dyn Names,
) -> (Vec<Rule>, Vec<RuleDiagnostic>) {
    let (mut rules, mut problems) = (Vec::with_capacity(arguments.len()), Vec::new());
    for (index, argument) in arguments.iter().enumerate() {
        let words = words::split(argument.as_ref());
        let Some((action, rest)) = words.split_first() else {
            problems.push(RuleDiagnostic { rule: index, kind: RuleDiagnosticKind::EmptyRule });
            continue;
        };
        let mut kinds = Vec::new();
        let output = read_action(action, outputs).unwrap_or_else(|problem| {
            kinds.push(problem);
            None
        });
        let condition = read_condition(rest, names, &mut kinds);
        problems.extend(kinds.into_iter().map(|kind| RuleDiagnostic { rule: index, kind }));
        rules.push(Rule { output, condition });
    }
    (rules, problems)
}

/// Parses the arguments of an `IPClassifier`. Each is an expression; its packets go to the output of the same index.
#[must_use]
pub fn classifier_rules<S: AsRef<str>>(
    arguments: &[S],
    names: &dyn Names,
) -> (Vec<Rule>, Vec<RuleDiagnostic>) {
    let (mut rules, mut problems) = (Vec::with_capacity(arguments.len()), Vec::new());
    for (index, argument) in arguments.iter().enumerate() {
        let words = words::split(argument.as_ref());
        let mut kinds = Vec::new();
        let condition = read_condition(&words, names, &mut kinds);
        problems.extend(kinds.into_iter().map(|kind| RuleDiagnostic { rule: index, kind }));
        rules.push(Rule { output: u32::try_from(index).ok(), condition });
    }
    (rules, problems)
}

fn read_action(word: &str, outputs: usize) -> Result<Option<u32>, RuleDiagnosticKind> {
    match word {
        "allow" if outputs == 0 => Err(RuleDiagnosticKind::NoOutput),
        "allow" => Ok(Some(0)),
        "deny" | "drop" => Ok(None),
        _ => {
            let number = words::signed(word).ok_or_else(|| RuleDiagnosticKind::UnknownAction(word.into()))?;
            let in_range = usize::try_from(number).is_ok_and(|number| number < outputs);
            in_range
                .then_some(Some(number))
                .ok_or(RuleDiagnosticKind::OutputOutOfRange(i64::from(number as i32)))
        }
    }
}

fn read_condition(words: &[&str], names: &dyn Names, problems: &mut Vec<RuleDiagnosticKind>) -> Expression {
    if matches!(words, [] | ["-" | "any" | "all"]) {
        return Expression::Constant(true);
    }
    let mut parser = Parser::new(words, names);
    let condition = parser.expression();
    let (rest, found) = parser.finish();
    problems.extend(found);
    if let Some(word) = rest.first() {
        problems.push(RuleDiagnosticKind::Garbage((*word).into()));
    }
    condition
}
