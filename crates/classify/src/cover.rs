//! Finds the rules that no packet can reach.

use alloc::vec;
use alloc::vec::Vec;

use crate::index::Index;
use crate::pace::{Pace, complete};
use crate::program::Program;
use crate::slots::NONE;
use crate::terms::Term;

/// Maximum steps of the search for unreachable rules, per term: words of rows read, and terms compared. Whether a box
/// contains another cannot be found faster than with the square of their number in the worst case, but 64 terms take one
/// step for each tested field. Against rule sets in which each of ten thousand rules overlaps all others.
const MAX_COVER_STEPS: usize = 1 << 10;

/// Maximum samples of a field's set in that search. A span has two, which decide exactly whether another span contains it.
const MAX_SAMPLES: usize = 8;

/// The reason why no packet reaches a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// The rule's condition contradicts itself.
    Contradiction,
    /// This earlier rule, possibly with others, takes all its packets.
    Shadowed(usize),
}

impl Program {
    /// The rules that no packet can reach, with the reasons. Finds every contradiction, and every rule whose terms are
    /// each contained in a single earlier term. Does not find rules that only a union of earlier terms covers, nor all
    /// in a rule set whose rules overlap so much that the search takes too long.
    #[must_use]
    pub fn unreachable(&self) -> Vec<(usize, Unreachable)> {
        complete(self.find_unreachable(&Pace::new()))
    }

    pub(crate) async fn find_unreachable(&self, pace: &Pace) -> Vec<(usize, Unreachable)> {
        let mut covered: Vec<Option<Option<u32>>> = vec![None; self.rules.len()];
        // The terms by their rules, each as the numbers of its rule and its slot.
        let mut terms = Vec::with_capacity(self.slots.len());
        for (slot, entry) in self.slots.iter().enumerate() {
            pace.spend(1).await;
            terms.extend(entry.as_ref().map(|(rule, _)| u128::from(*rule) << 64 | slot as u128));
        }
        pace.sort(&mut terms).await;
        let mut steps = MAX_COVER_STEPS * terms.len();
        for group in terms.chunk_by(|a, b| a >> 64 == b >> 64) {
            if steps == 0 {
                break;
            }
            let mut last: Option<Option<u32>> = None;
            for number in group {
                let Some((rule, term)) = self.slots.get(*number as u64 as usize) else { continue };
                let before = steps;
                let cover = self.cover(rule, term, &mut steps);
                pace.spend(self.first_rules.len() + 2 * (before - steps)).await;
                last = Some(last.map_or(cover, |last| Some(last?.max(cover?))));
            }
            covered[(group[0] >> 64) as usize] = Some(last.flatten());
        }
        let describe = |rule: usize| {
            if self.fallback != NONE && rule > self.fallback as usize {
                return Some(Unreachable::Shadowed(self.fallback as usize));
            }
            match (self.live.get(rule), covered[rule]) {
                (Some(false), _) => Some(Unreachable::Contradiction),
                (_, Some(Some(by))) => Some(Unreachable::Shadowed(by as usize)),
                _ => None,
            }
        };
        (0..self.rules.len()).filter_map(|rule| Some((rule, describe(rule)?))).collect()
    }

    /// The lowest rule before `rule` with an exact term that contains `term`. `None` if it takes more than the `steps`
    /// that are left.
    fn cover(&self, rule: u32, term: &Term, steps: &mut usize) -> Option<u32> {
        // A term that contains this one accepts all its values, in particular the ends of its spans, and tests no other
        // fields.
        let mut top = u64::MAX;
        let mut rows: Vec<(&Index, Option<u32>)> = Vec::with_capacity(2 * self.indexes.len());
        for index in &self.indexes {
            match term.set(index.number) {
                Some(spans) => {
                    let ends = spans.iter().flat_map(|(first, last)| [first, last]);
                    let classes = ends.take(MAX_SAMPLES).map(|sample| index.class_at(sample));
                    for class in classes {
                        if rows
                            .last()
                            .is_none_or(|(last, row)| last.number != index.number || *row != Some(class))
                        {
                            top &= index.top(class);
                            rows.push((index, Some(class)));
                        }
                    }
                }
                None => rows.push((index, None)),
            }
        }
        let granule = self.slots.granule();
        let mut best: Option<u32> = None;
        for (word, first_rule) in self.first_rules.iter().enumerate() {
            let limit = best.unwrap_or(rule);
            if *first_rule >= limit || (granule > 0 && top & word_granules(word, granule) == 0) {
                continue;
            }
            let bits = rows.iter().map(|(index, class)| match class {
                Some(class) => index.rows.word(*class, word),
                None => index.rows.free(word),
            });
            let mut found = bits.fold(u64::MAX, |all, bits| all & bits);
            *steps = steps.saturating_sub(1 + rows.len());
            while found != 0 {
                *steps = steps.saturating_sub(1);
                let slot = 64 * word + found.trailing_zeros() as usize;
                found &= found - 1;
                let Some((other_rule, other)) = self.slots.get(slot) else { continue };
                if other_rule < best.unwrap_or(rule) && other.exact && other.contains(term) {
                    best = Some(other_rule);
                }
            }
            if *steps == 0 {
                return None;
            }
        }
        best
    }
}

/// The granules of `1 << granule` slots that row word `word` has a part of.
fn word_granules(word: usize, granule: u32) -> u64 {
    if granule >= 6 {
        return 1 << (word >> (granule - 6) & 63);
    }
    let per_word = 64 >> granule;
    let all = if per_word == 64 { u64::MAX } else { (1 << per_word) - 1 };
    all << ((word * per_word) & 63)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::filter_rules;
    use crate::{Layout, NoNames};
    use alloc::format;
    use alloc::string::String;

    /// The result for rules of one term each, by comparing each term with all earlier ones.
    fn compared(program: &Program) -> Vec<(usize, Unreachable)> {
        let terms: Vec<(u32, &Term)> = program.slots.iter().flatten().collect();
        let covers = |rule: u32, term: &Term| {
            let earlier = terms.iter().filter(|(other, _)| *other < rule);
            earlier.filter(|(_, other)| other.exact && other.contains(term)).map(|(other, _)| *other).min()
        };
        let mut found: Vec<(usize, Unreachable)> = Vec::new();
        for rule in 0..program.rules.len() as u32 {
            let own = terms.iter().filter(|(other, _)| *other == rule);
            let last = own.map(|(_, term)| covers(rule, term)).reduce(|a, b| Some(a?.max(b?)));
            if let Some(Some(by)) = last {
                found.push((rule as usize, Unreachable::Shadowed(by as usize)));
            }
        }
        found
    }

    #[test]
    fn the_result_is_that_of_comparing_all_terms() {
        let mut state = 1_u32;
        let mut random = move |bound: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % bound
        };
        for count in [3, 20, 64, 65, 100, 700] {
            for _ in 0..if count < 100 { 50 } else { 3 } {
                let mut primitive = || match random(9) {
                    0 => format!("src net 10.{}.0.0/{}", random(4), 12 + random(10)),
                    1 => format!("dst host 10.0.0.{}", random(4)),
                    2 => format!("src port > {}", random(1000)),
                    3 => format!("dst port < {}", 60000 + random(1000)),
                    4 => format!("src port {} or {}", random(20), random(20)),
                    5 => format!("not ip tos {}", random(5)),
                    6 => String::from("tcp"),
                    7 => format!("ip ttl {}", random(3)),
                    _ => format!("tcp[4:4] > {}", 70000 + random(9)),
                };
                let mut texts = Vec::new();
                for _ in 0..count {
                    let parts: Vec<String> = (0..1 + texts.len() % 3).map(|_| primitive()).collect();
                    texts.push(format!(
                        "allow ({})",
                        parts.join(if texts.len() % 7 == 0 { ") or (" } else { ") and (" })
                    ));
                }
                let (rules, problems) = filter_rules(&texts, 1, &NoNames);
                assert!(problems.is_empty(), "{problems:?}");
                let program = Program::new(rules, Layout::Ip);
                let mut found = program.unreachable();
                found.retain(|(_, reason)| *reason != Unreachable::Contradiction);
                assert_eq!(found, compared(&program), "{texts:?}");
            }
        }
    }
}
