//! Shortens listings as Click does, so that they read the same: sorts chained tests, skips tests whose outcome is
//! certain, and joins tests of one word.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::step::{Step, Target};

/// Most ways to a step that are looked at one by one; of more only what they share.
const MAX_PATHS: usize = 4;

/// A way to a step: tests, by their number, with their outcomes.
type Path = Vec<(usize, bool)>;

/// Steps that are being shortened. Every step leads to later ones only.
pub(super) struct Steps {
    pub(super) steps: Vec<Step>,
    /// Where every packet goes, when no step is needed.
    pub(super) everything: Option<Target>,
}

impl Steps {
    pub(super) fn new(steps: Vec<Step>) -> Self {
        Self { steps, everything: None }
    }

    /// Appends what is done with packets that this leaves for what follows.
    pub(super) fn append(&mut self, next: Steps) {
        if self.everything.is_some_and(|target| target != Target::Next) {
            return;
        }
        let start = self.steps.len();
        let follow = next.everything.unwrap_or(Target::Step(start));
        self.replace_next(follow);
        let moved =
            |target| if let Target::Step(step) = target { Target::Step(step + start) } else { target };
        self.steps.extend(next.steps.iter().map(|step| Step { targets: step.targets.map(moved), ..*step }));
    }

    /// Replaces the target of packets that no rule has matched.
    pub(super) fn replace_next(&mut self, target: Target) {
        if self.everything == Some(Target::Next) {
            self.everything = (!matches!(target, Target::Step(_))).then_some(target);
        }
        for step in &mut self.steps {
            step.targets = step.targets.map(|old| if old == Target::Next { target } else { old });
        }
    }

    /// Shortens them.
    pub(super) fn optimize(&mut self) {
        self.sort_chains();
        Paths::new(&self.steps).shorten(&mut self.steps);
        self.join();
        self.compact();
    }

    /// Orders tests that are chained on one outcome and agree on the other: the protocol before the rest, then by
    /// offset, mask and value.
    pub(super) fn sort_chains(&mut self) {
        // The step that alone leads to a step; those of step 0 stay where they are.
        let mut single: Vec<Option<usize>> = vec![None; self.steps.len()];
        let mut seen = vec![false; self.steps.len()];
        for (index, step) in self.steps.iter().enumerate() {
            for target in step.targets {
                if let Target::Step(next) = target {
                    single[next] = (!seen[next] && index > 0).then_some(index);
                    seen[next] = true;
                }
            }
        }
        let rank = |step: &Step| (if step.offset == 264 { 259 } else { step.offset }, step.mask, step.value);
        let mut index = 0;
        while let Some(&first) = self.steps.get(index) {
            let swap = [0, 1].into_iter().find_map(|way| {
                let Target::Step(next) = first.targets[way] else { return None };
                let second = self.steps[next];
                let chained = single[next].is_some() && first.targets[1 - way] == second.targets[1 - way];
                (chained && rank(&first) > rank(&second)).then_some((way, next, second))
            });
            let Some((way, next, second)) = swap else {
                index += 1;
                continue;
            };
            self.steps[next] = first;
            self.steps[next].targets[way] = second.targets[way];
            self.steps[index] = second;
            self.steps[index].targets[way] = Target::Step(next);
            // The step before may now be out of order.
            index = single[index].unwrap_or(index);
        }
    }

    /// Joins a step with the one it leads to when one test can stand for both.
    fn join(&mut self) {
        for index in (0..self.steps.len()).rev() {
            while self.join_step(index) {}
        }
    }

    /// Joins once; whether there may be more to join.
    fn join_step(&mut self, index: usize) -> bool {
        if let Target::Step(next) = self.steps[index].no() {
            let next = self.steps[next];
            let turned = next.is_compatible(&self.steps[index], false) && self.steps[index].turn_round();
            let joined = if turned { None } else { self.steps[index].either(&next) };
            if let Some(joined) = joined {
                self.steps[index] = joined;
                return true;
            }
        }
        let Target::Step(next) = self.steps[index].yes() else { return false };
        if self.steps[index].no() == self.steps[next].yes() {
            self.steps[next].turn_round();
        }
        let second = self.steps[next];
        let first = &mut self.steps[index];
        if first.no() != second.no() || !second.is_compatible(first, true) {
            return false;
        }
        first.targets[1] = second.yes();
        if first.mask == 0 {
            first.offset = second.offset;
        }
        first.value |= second.value;
        first.mask |= second.mask;
        true
    }

    /// Leaves out steps that decide nothing and steps that nothing leads to.
    fn compact(&mut self) {
        let count = self.steps.len();
        let mut real: Vec<Target> = vec![Target::Next; count];
        for index in (0..count).rev() {
            let follow = |target| if let Target::Step(step) = target { real[step] } else { target };
            let targets = self.steps[index].targets.map(follow);
            self.steps[index].targets = targets;
            let decides = targets[0] != targets[1] && self.steps[index].mask != 0;
            real[index] = if decides { Target::Step(index) } else { targets[1] };
        }
        self.everything = match real.first() {
            Some(Target::Step(first)) => {
                self.steps[0] = self.steps[*first];
                None
            }
            Some(target) => Some(*target),
            None => self.everything,
        };
        if self.everything.is_some() {
            self.steps.clear();
            return;
        }
        let mut number: Vec<Option<usize>> = vec![None; count];
        let mut kept: Vec<Step> = Vec::new();
        if let Some(first) = number.first_mut() {
            *first = Some(0);
        }
        for (index, step) in self.steps.iter().enumerate() {
            if number[index].is_none() {
                continue;
            }
            number[index] = Some(kept.len());
            kept.push(*step);
            for target in step.targets {
                if let Target::Step(next) = target {
                    number[next] = Some(0);
                }
            }
        }
        let renumber = |target| match target {
            Target::Step(step) => Target::Step(number[step].unwrap_or(0)),
            other => other,
        };
        for step in &mut kept {
            step.targets = step.targets.map(renumber);
        }
        self.steps = kept;
    }
}

/// What is known on the ways to each step.
struct Paths {
    /// Steps with equal tests share the number of one of them.
    numbers: Vec<usize>,
    /// Bytes that a packet certainly has when it comes to a step.
    known: Vec<u32>,
    /// The ways to each step that was passed; none means that no packet comes there.
    paths: Vec<Vec<Path>>,
    /// The outcomes that lead to each step.
    leading: Vec<Vec<(usize, bool)>>,
}

impl Paths {
    fn new(steps: &[Step]) -> Self {
        let mut first: BTreeMap<(u32, u32, u32, bool), usize> = BTreeMap::new();
        let numbers =
            steps.iter().enumerate().map(|(index, step)| *first.entry(step.test()).or_insert(index));
        let numbers = numbers.collect();
        let mut known = vec![u32::MAX; steps.len()];
        let mut leading = vec![Vec::new(); steps.len()];
        if let Some(start) = known.first_mut() {
            *start = 0;
        }
        for (index, step) in steps.iter().enumerate() {
            for outcome in [false, true] {
                if let Target::Step(next) = step.targets[usize::from(outcome)] {
                    let tested = if step.short == outcome { 0 } else { step.reach() };
                    known[next] = known[next].min(known[index].max(tested));
                    leading[next].push((index, outcome));
                }
            }
        }
        Self { numbers, known, paths: Vec::new(), leading }
    }

    /// Leads every outcome as far on as what is known then decides, step by step from the first.
    fn shorten(mut self, steps: &mut [Step]) {
        for index in 0..steps.len() {
            let paths = self.incoming(index, steps);
            self.paths.push(paths);
            for outcome in [false, true] {
                if let Some(target) = self.led_on(index, outcome, steps) {
                    self.redirect(steps, index, outcome, target);
                }
            }
        }
    }

    /// The possible ways to step `index`. When they all decide its test, the steps before skip it.
    fn incoming(&mut self, index: usize, steps: &mut [Step]) -> Vec<Path> {
        if index == 0 {
            return vec![Vec::new()];
        }
        let leading = self.leading[index].clone();
        let mut ways: Vec<Path> = Vec::new();
        for &(before, outcome) in &leading {
            let both = leading.contains(&(before, !outcome));
            if both && outcome {
                continue;
            }
            let test = (self.numbers[before], outcome);
            for path in &self.paths[before] {
                if both {
                    ways.push(path.clone());
                } else if !path.contains(&(test.0, !outcome)) {
                    let mut way: Path = path.iter().copied().filter(|known| *known != test).collect();
                    way.push(test);
                    ways.push(way);
                }
            }
        }
        let mut drop_step = ways.is_empty();
        if ways.len() > MAX_PATHS {
            ways = vec![shared(&ways)];
        } else if !ways.is_empty() {
            let number = self.numbers[index];
            let outcome =
                |way: &Path| way.iter().find(|(test, _)| *test == number).map(|(_, outcome)| *outcome);
            let first = outcome(&ways[0]);
            if let Some(certain) = first
                && ways.iter().all(|way| outcome(way) == first)
            {
                let target = steps[index].targets[usize::from(certain)];
                for (before, outcome) in leading {
                    self.redirect(steps, before, outcome, target);
                }
                drop_step = true;
            }
        }
        if drop_step {
            for outcome in [false, true] {
                self.redirect(steps, index, outcome, Target::Drop);
            }
            return Vec::new();
        }
        ways
    }

    /// Where an outcome of step `index` leads in the end; none when there is nothing to change.
    fn led_on(&self, index: usize, outcome: bool, steps: &[Step]) -> Option<Target> {
        let start = steps[index].targets[usize::from(outcome)];
        let (Target::Step(_), false) = (start, self.paths[index].is_empty()) else { return None };
        let own = (self.numbers[index], outcome);
        let routes: Vec<Vec<Target>> = self.paths[index]
            .iter()
            .map(|path| {
                let mut route = vec![start];
                while let Some(Target::Step(next)) = route.last().copied() {
                    let facts = path.iter().chain([&own]).rev();
                    let decided = facts.copied().find_map(|(fact, outcome)| {
                        steps[fact].decides(outcome, &steps[next], self.known[fact])
                    });
                    let Some(decided) = decided else { break };
                    route.push(steps[next].targets[usize::from(decided)]);
                }
                route
            })
            .collect();
        let (first, others) = routes.split_first()?;
        first.iter().rev().find(|target| others.iter().all(|route| route.contains(target))).copied()
    }

    fn redirect(&mut self, steps: &mut [Step], index: usize, outcome: bool, target: Target) {
        let place = &mut steps[index].targets[usize::from(outcome)];
        if let Target::Step(old) = *place {
            self.leading[old].retain(|lead| *lead != (index, outcome));
        }
        *place = target;
        if let Target::Step(new) = target {
            self.leading[new].push((index, outcome));
            self.leading[new].sort_unstable();
        }
    }
}

/// What all ways share, in the order of the first.
fn shared(ways: &[Path]) -> Path {
    let Some((first, others)) = ways.split_first() else { return Path::new() };
    let mut others: Vec<Path> = others.to_vec();
    others.iter_mut().for_each(|way| way.sort_unstable());
    let everywhere = |known: &(usize, bool)| others.iter().all(|way| way.binary_search(known).is_ok());
    first.iter().copied().filter(everywhere).collect()
}
