//! What the `program` handlers show: rules as a sequence of four-byte tests, in Click's notation.
//!
//! It is a description, made when it is asked for and to tell which outputs Click would find unused; packets are
//! classified by a [`crate::Program`].

mod emit;
mod optimize;
mod step;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::expression::Rule;
use crate::program::Layout;
use emit::emit;
use optimize::Steps;
use step::{Step, Target};

/// Most rules whose listing is shortened: the work grows faster than their number.
const MAX_SHORTENED: usize = 1000;
/// Most rules whose listing is made to find unused outputs: it must not delay a start.
const MAX_LOOKED_AT: usize = 64;
/// Values of a test that are sorted when there are at least so many.
const SORTED: usize = 7;

/// The listing of `rules`.
#[must_use]
pub fn listing(rules: &[Rule], layout: Layout) -> String {
    let mut program = shortened(rules, layout);
    if layout == Layout::Ip && rules.len() <= MAX_SHORTENED {
        program.sort_chains();
        program.steps = grouped(&program.steps);
    }
    text(&program)
}

/// The outputs below `count` that no step of the listing leads to; `None` where there are too many rules.
#[must_use]
pub fn unused_outputs(rules: &[Rule], layout: Layout, count: usize) -> Option<Vec<usize>> {
    if rules.len() > MAX_LOOKED_AT {
        return None;
    }
    let program = shortened(rules, layout);
    let targets = program.steps.iter().flat_map(|step| step.targets).chain(program.everything);
    let used: Vec<Target> = targets.collect();
    Some((0..count).filter(|output| !used.contains(&Target::Output(*output as u32))).collect())
}

/// The steps of `rules`, without those that no packet needs.
fn shortened(rules: &[Rule], layout: Layout) -> Steps {
    let shorten = rules.len() <= MAX_SHORTENED;
    let mut programs: Vec<Steps> = rules.iter().map(|rule| Steps::new(emit(rule, layout))).collect();
    if layout == Layout::Bytes || !shorten || programs.len() == 1 {
        programs = programs.into_iter().reduce(joined).into_iter().collect();
        if layout == Layout::Bytes {
            // All patterns are one program, with nothing after it.
            programs.iter_mut().for_each(|program| program.replace_next(Target::Drop));
        }
        if shorten {
            programs.iter_mut().for_each(Steps::optimize);
        }
    }
    while programs.len() > 1 {
        let mut pairs = programs.into_iter();
        programs = Vec::new();
        while let Some(first) = pairs.next() {
            programs.push(match pairs.next() {
                Some(second) => {
                    let mut both = joined(first, second);
                    both.optimize();
                    both
                }
                None => first,
            });
        }
    }
    let mut program = programs.pop().unwrap_or_else(|| Steps::new(Vec::new()));
    program.replace_next(Target::Drop);
    program
}

fn joined(mut first: Steps, second: Steps) -> Steps {
    first.append(second);
    first
}

/// Brings tests of the same bits together that lead to one target, in the order of their values when they are many.
fn grouped(steps: &[Step]) -> Vec<Step> {
    let mut uses = vec![0usize; steps.len()];
    for target in steps.iter().flat_map(|step| step.targets) {
        if let Target::Step(step) = target {
            uses[step] += 1;
        }
    }
    let mut taken = vec![false; steps.len()];
    let mut result: Vec<Step> = Vec::new();
    // Where each step that others lead to has come to stand.
    let mut places: BTreeMap<usize, usize> = BTreeMap::new();
    for (index, step) in steps.iter().enumerate() {
        if taken[index] {
            continue;
        }
        places.insert(index, result.len());
        let mut values = vec![step.value];
        let mut no = step.no();
        while let Target::Step(next) = no
            && let other = &steps[next]
            && uses[next] == 1
            && other.yes() == step.yes()
            && other.offset == step.offset
            && other.mask == step.mask
        {
            values.push(other.value);
            taken[next] = true;
            no = other.no();
        }
        if values.len() >= SORTED {
            // As numbers in the memory of a little-endian machine.
            values.sort_unstable_by_key(|value| value.swap_bytes());
        }
        let last = values.len() - 1;
        for (number, value) in values.into_iter().enumerate() {
            // Steps inside the group are marked by places beyond all others.
            let next = if number == last { no } else { Target::Step(steps.len() + result.len() + 1) };
            result.push(Step { value, targets: [next, step.yes()], ..*step });
        }
    }
    let renumber = |target| match target {
        Target::Step(step) if step >= steps.len() => Target::Step(step - steps.len()),
        Target::Step(step) => Target::Step(places.get(&step).copied().unwrap_or(0)),
        other => other,
    };
    for step in &mut result {
        step.targets = step.targets.map(renumber);
    }
    result
}

fn text(program: &Steps) -> String {
    let mut text: String = program.steps.iter().enumerate().map(|(number, step)| step.line(number)).collect();
    if program.steps.is_empty() {
        text = match program.everything {
            Some(Target::Output(output)) => format!("all->[{output}]\n"),
            _ => format!("all->[{}]\n", i32::MAX),
        };
    }
    let safe = program.steps.iter().map(Step::reach).max().unwrap_or(0);
    text + &format!("safe length {safe}\nalignment offset 0\n")
}
