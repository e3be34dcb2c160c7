//! The answers of several shards to one read of a handler, as one answer.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;

use element::{HandlerError, HandlerTarget, ShardMode};

use crate::router::Router;
use crate::state::RouterState;

/// How the answers of shards become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Numbers are added up: line by line, where the words are the same.
    Sum,
    /// The lines of each shard, one after the other.
    Lines,
    /// The answer of the first shard.
    First,
    /// The answer that all shards give, or else one for each, under its name.
    Same,
}

/// What stands before and behind numbers.
const SEPARATORS: [char; 6] = [' ', '\t', '=', ',', '[', ']'];
/// Read handlers of every element that add up.
const ELEMENT_SUMS: [&str; 5] = ["icounts", "ocounts", "losses", "fates", "cycles"];
/// Read handlers of the router that add up.
const ROUTER_SUMS: [&str; 3] = ["account", "accounts", "discards"];

impl Router {
    /// How the answers of shards to a read of this handler become one.
    pub fn merge(&self, path: &str) -> Result<Merge, HandlerError> {
        Ok(self.state.merge(&self.state.resolve_path(None, path)?))
    }
}

impl RouterState {
    fn merge(&self, target: &HandlerTarget) -> Merge {
        let name = &&*target.handler;
        let Some(node) = target.element.and_then(|index| self.nodes.get(index)) else {
            return match &target.handler[..] {
                "waiting" => Merge::Lines,
                _ if ROUTER_SUMS.contains(name) => Merge::Sum,
                _ => Merge::Same,
            };
        };
        let sharding = &node.element.class.shards;
        if sharding.sums.contains(name) {
            Merge::Sum
        } else if sharding.lists.contains(name) {
            Merge::Lines
        } else if node.class.handlers().iter().any(|own| own.name == *name) {
            if sharding.mode == ShardMode::First { Merge::First } else { Merge::Same }
        } else if ELEMENT_SUMS.contains(name) {
            Merge::Sum
        } else {
            Merge::Same
        }
    }

    /// Reads a handler of all shards as one value, or that of one shard.
    pub(crate) fn read_shards(
        &self,
        from: usize,
        path: &str,
        parameter: &str,
        shard: Option<u32>,
    ) -> Result<String, HandlerError> {
        let own = || self.read_path(Some(from), path, parameter);
        let Some(others) = self.resources.environment.others() else { return own() };
        let target = self.resolve_path(Some(from), path)?;
        let merge = self.merge(&target);
        if shard == Some(0) || shard.is_none() && merge == Merge::First {
            return own();
        }
        let mut answers = others.read(&self.full_path(&target), parameter);
        match shard {
            Some(shard) if (shard as usize) <= answers.len() => answers.swap_remove(shard as usize - 1),
            Some(shard) => Err(HandlerError::NoElement(format!("shard{shard}"))),
            None => {
                answers.insert(0, own());
                Ok(merge.answer(&answers.into_iter().collect::<Result<Vec<String>, HandlerError>>()?))
            }
        }
    }

    /// Writes a handler in all shards. A new configuration is prepared in all of them, or in none.
    pub(crate) fn write_shards(&self, from: usize, path: &str, value: &str) -> Result<(), HandlerError> {
        let own = || self.write_path(Some(from), path, value);
        let Some(others) = self.resources.environment.others() else { return own() };
        let target = self.resolve_path(Some(from), path)?;
        if target.element.is_none() && target.handler == "hotconfig" {
            others.prepare(value)?;
            let result = own();
            if !matches!(result, Ok(()) | Err(HandlerError::WrittenWithWarnings(_))) {
                others.abort();
            }
            return result;
        }
        own()?;
        others.write(&self.full_path(&target), value)
    }
}

impl Merge {
    /// The answer to the user, from that of each shard in order.
    pub fn answer(self, answers: &[String]) -> String {
        let first = answers.first().cloned().unwrap_or_default();
        match self {
            Merge::First => first,
            Merge::Lines => answers.concat(),
            Merge::Sum => sum(answers),
            Merge::Same if answers.iter().all(|answer| *answer == first) => first,
            Merge::Same => by_shard(answers),
        }
    }
}

/// The answer of each shard under its name: on one line if it is one.
fn by_shard(answers: &[String]) -> String {
    let single = answers.iter().all(|answer| !answer.trim_end().contains('\n'));
    answers.iter().enumerate().fold(String::new(), |mut text, (index, answer)| {
        let answer = answer.trim_end();
        let _ = match single {
            true => writeln!(text, "shard{index}: {answer}"),
            false => writeln!(text, "shard{index}:\n{answer}"),
        };
        text
    })
}

/// A line without its numbers, which is the same in all shards, and the numbers.
#[derive(Default)]
struct Line {
    /// The texts before each number and behind the last.
    texts: Vec<String>,
    numbers: Vec<String>,
    /// How many equal lines came before it in its answer.
    repetition: usize,
}

impl Line {
    fn parse(line: &str) -> Line {
        let mut parsed = Line::default();
        let mut text = String::new();
        for piece in line.split_inclusive(SEPARATORS) {
            let word = piece.trim_end_matches(SEPARATORS);
            if is_number(word) {
                parsed.texts.push(core::mem::take(&mut text));
                parsed.numbers.push(word.to_string());
                text.push_str(piece.get(word.len()..).unwrap_or_default());
            } else {
                text.push_str(piece);
            }
        }
        parsed.texts.push(text);
        parsed
    }

    /// Adds the numbers of another line. Of ages, the highest counts.
    fn add(&mut self, other: &Line) {
        let is_age = self.texts.first().is_some_and(|text| text.starts_with("oldest"));
        for (number, other) in self.numbers.iter_mut().zip(&other.numbers) {
            if let (false, Ok(one), Ok(two)) = (is_age, number.parse::<u64>(), other.parse::<u64>()) {
                *number = one.saturating_add(two).to_string();
                continue;
            }
            let [one, two] = [&*number, other].map(|text| text.parse::<f64>().unwrap_or_default());
            if is_age {
                if two > one {
                    number.clone_from(other);
                }
                continue;
            }
            let digits =
                [&*number, other].map(|text| text.split_once('.').map_or(0, |(_, digits)| digits.len()));
            *number = format!("{:.*}", digits[0].max(digits[1]), one + two);
        }
    }
}

fn is_number(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit())
        && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && word.parse::<f64>().is_ok()
}

/// Adds up the numbers of equal lines. Lines that not all answers have keep the numbers of those that do.
fn sum(answers: &[String]) -> String {
    let mut sums: Vec<Line> = Vec::new();
    for answer in answers {
        let mut seen: Vec<Line> = Vec::new();
        for line in answer.lines() {
            let mut line = Line::parse(line);
            line.repetition = seen.iter().filter(|other| other.texts == line.texts).count();
            let known = |sum: &&mut Line| sum.texts == line.texts && sum.repetition == line.repetition;
            match sums.iter_mut().find(known) {
                Some(sum) => sum.add(&line),
                None => sums.push(Line { texts: line.texts.clone(), numbers: line.numbers.clone(), ..line }),
            }
            seen.push(line);
        }
    }
    let ends = answers.iter().any(|answer| answer.ends_with('\n'));
    let lines: Vec<String> = sums
        .iter()
        .map(|line| {
            let numbers = line.numbers.iter().map(String::as_str).chain([""]);
            line.texts.iter().zip(numbers).map(|(text, number)| [text, number].concat()).collect()
        })
        .collect();
    let end = if ends && !lines.is_empty() { "\n" } else { "" };
    lines.join("\n") + end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(merge: Merge, answers: [&str; 2], expected: &str) {
        assert_eq!(merge.answer(&answers.map(String::from)), expected);
    }

    #[test]
    fn numbers_of_equal_lines_add_up() {
        check(Merge::Sum, ["3", "4"], "7");
        check(Merge::Sum, ["2.25\n", "0.5\n"], "2.75\n");
        check(Merge::Sum, ["1\n2\n", "10\n20\n"], "11\n22\n");
        check(Merge::Sum, ["denied 3\n", "no_room 2\ndenied 1\n"], "denied 4\nno_room 2\n");
        check(Merge::Sum, ["lost 1\noldest 0.5\n", "lost 2\noldest 0.25\n"], "lost 3\noldest 0.5\n");
        check(Merge::Sum, ["a\tB\t1\tx=2,y=3\n", "a\tB\t4\tx=5,y=6\n"], "a\tB\t5\tx=7,y=9\n");
        check(Merge::Sum, ["1.0.0.1 5-9 - - [1]\n", "1.0.0.1 5-9 - - [2]\n"], "1.0.0.1 5-9 - - [3]\n");
        check(Merge::Sum, ["", "overflow 2\n"], "overflow 2\n");
    }

    #[test]
    fn other_answers_are_the_same_or_listed() {
        check(Merge::Same, ["1000", "1000"], "1000");
        check(Merge::Same, ["true", "false"], "shard0: true\nshard1: false\n");
        check(Merge::Same, ["a\nb\n", "c\n"], "shard0:\na\nb\nshard1:\nc\n");
        check(Merge::Lines, ["a\n", "b\n"], "a\nb\n");
        check(Merge::First, ["5", "0"], "5");
    }
}
