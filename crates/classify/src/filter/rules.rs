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
    let mut problems = Vec::new();
    let arguments = arguments.iter().map(AsRef::as_ref).enumerate();
    let rules =
        arguments.filter_map(|(number, text)| filter_rule(number, text, outputs, names, &mut problems));
    (rules.collect(), problems)
}

/// Parses one argument of an `IPFilter`: that with this number. Adds problems to `problems`.
pub fn filter_rule(
    number: usize,
    argument: &str,
    outputs: usize,
    names: &dyn Names,
    problems: &mut Vec<RuleDiagnostic>,
) -> Option<Rule> {
    let words = words::split(argument);
    let Some((action, rest)) = words.split_first() else {
        problems.push(RuleDiagnostic { rule: number, kind: RuleDiagnosticKind::EmptyRule });
        return None;
    };
    let mut kinds = Vec::new();
    let output = read_action(action, outputs).unwrap_or_else(|problem| {
        kinds.push(problem);
        None
    });
    let condition = read_condition(rest, names, &mut kinds);
    problems.extend(kinds.into_iter().map(|kind| RuleDiagnostic { rule: number, kind }));
    Some(Rule { output, condition })
}

/// Parses the arguments of an `IPClassifier`. Each is an expression; its packets go to the output of the same index.
#[must_use]
pub fn classifier_rules<S: AsRef<str>>(
    arguments: &[S],
    names: &dyn Names,
) -> (Vec<Rule>, Vec<RuleDiagnostic>) {
    let mut problems = Vec::new();
    let arguments = arguments.iter().map(AsRef::as_ref).enumerate();
    let rules = arguments.map(|(number, text)| classifier_rule(number, text, names, &mut problems));
    (rules.collect(), problems)
}

/// Parses one argument of an `IPClassifier`: that with this number. Adds problems to `problems`.
pub fn classifier_rule(
    number: usize,
    argument: &str,
    names: &dyn Names,
    problems: &mut Vec<RuleDiagnostic>,
) -> Rule {
    let words = words::split(argument);
    let mut kinds = Vec::new();
    let condition = read_condition(&words, names, &mut kinds);
    problems.extend(kinds.into_iter().map(|kind| RuleDiagnostic { rule: number, kind }));
    Rule { output: u32::try_from(number).ok(), condition }
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
