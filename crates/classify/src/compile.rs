//! Compiles rules into a program, at once or in short steps.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use crate::cover::Unreachable;
use crate::diagram::{Diagram, MAX_STEPS};
use crate::expression::{DROP, Expression, Rule};
use crate::index::Index;
use crate::merge::RuleTerms;
use crate::pace::{FREED, Pace, complete, sort_few};
use crate::program::{Layout, MAX_INDEXES, Program};
use crate::slots::{NONE, Slots};
use crate::spans::Field;
use crate::tables::Tables;
use crate::terms::{Lowering, Term};
use crate::words::Words;

/// Bytes that the lookup structures of a rule set may take if the caller sets no other budget.
pub const RULE_MEMORY: usize = 4 << 20;
/// Maximum terms of a program, against hostile rule sets with many wide rules. Further rules are evaluated by their
/// expressions.
const MAX_TERMS: usize = 1 << 18;
/// A diagram of more steps is slower than tables for batches whose packets take different paths.
const MAX_STEPS_WITHOUT_TABLES: usize = 64;
/// The work of breaking a usual rule into terms.
const LOWERED: usize = 300;

/// A computation in steps of some ten microseconds, for callers that have other things to do in between.
pub struct Steps<T>(Pin<Box<dyn Future<Output = T>>>);

impl<T> Steps<T> {
    /// Performs the next step. Returns the result after the last one; then it must not be called again.
    pub fn step(&mut self) -> Option<T> {
        match self.0.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }
}

/// Frees a long list of rules, or of texts, in steps.
#[must_use]
pub fn free_in_steps<T: 'static>(list: Vec<T>) -> Steps<()> {
    Steps(Box::pin(async move { Pace::new().free(list).await }))
}

impl Program {
    /// Compiles `rules` within [`RULE_MEMORY`].
    #[must_use]
    pub fn new(rules: Vec<Rule>, layout: Layout) -> Self {
        Self::with_budget(rules, layout, RULE_MEMORY)
    }

    /// Compiles `rules` into lookup structures of at most `budget` bytes: into the fast form if it fits, otherwise into the
    /// compact form, which may be larger. The sizes are counted before memory is allocated.
    #[must_use]
    pub fn with_budget(rules: Vec<Rule>, layout: Layout, budget: usize) -> Self {
        complete(compile(rules, layout, budget, &Pace::new()))
    }

    /// Like [`with_budget`](Self::with_budget), in steps. The program has no memory that only
    /// [`unreachable`](Self::unreachable) needs; the result of that is found before, if it is wanted.
    #[must_use]
    pub fn in_steps(
        rules: Vec<Rule>,
        layout: Layout,
        budget: usize,
        wants_unreachable: bool,
    ) -> Steps<(Self, Vec<(usize, Unreachable)>)> {
        Steps(Box::pin(async move {
            let pace = Pace::new();
            let mut program = compile(rules, layout, budget, &pace).await;
            let unreachable =
                if wants_unreachable { program.find_unreachable(&pace).await } else { Vec::new() };
            program.discard(&pace).await;
            (program, unreachable)
        }))
    }

    /// Frees the memory that only `unreachable` needs. Afterwards `unreachable` reports contradictions only, and
    /// `summary` no terms.
    pub fn discard_analysis(&mut self) {
        complete(self.discard(&Pace::new()));
    }

    async fn discard(&mut self, pace: &Pace) {
        self.slots.clear(pace).await;
        self.indexes.iter_mut().for_each(|index| index.parts = Vec::new());
        for rule in &mut self.rules {
            pace.spend(FREED).await;
            rule.condition.shrink();
        }
    }

    /// Frees the program in steps: many rules take long.
    #[must_use]
    pub fn free_in_steps(self) -> Steps<()> {
        Steps(Box::pin(async move {
            let pace = Pace::new();
            let Self { rules, mut slots, indexes, .. } = self;
            pace.free(rules).await;
            slots.clear(&pace).await;
            pace.free(indexes).await;
        }))
    }
}

async fn compile(rules: Vec<Rule>, layout: Layout, budget: usize, pace: &Pace) -> Program {
    let LoweredRules { mut terms, fields, fallback, live } = lower_rules(&rules, layout, pace).await;
    let mut wanted = most_used(&terms, fields.len(), pace).await;
    loop {
        let slots = Slots::new(terms, &wanted, pace).await;
        let mut indexes = Vec::with_capacity(wanted.len());
        let mut failed = None;
        for (place, number) in wanted.iter().enumerate() {
            let index = match fields.get(usize::from(*number)) {
                Some(field) => Index::new(*field, *number, &slots, pace).await,
                None => None,
            };
            match index {
                Some(index) => indexes.push(index),
                None => {
                    failed = Some(place);
                    break;
                }
            }
        }
        match failed {
            Some(place) => {
                wanted.remove(place);
                terms = slots.into_terms();
            }
            None => {
                sort_few(&mut indexes, |one, other| one.typical() < other.typical());
                return assemble(rules, indexes, slots, (fallback, live), budget, pace).await;
            }
        }
    }
}

async fn assemble(
    rules: Vec<Rule>,
    indexes: Vec<Index>,
    slots: Slots,
    (fallback, live): (u32, Vec<bool>),
    budget: usize,
    pace: &Pace,
) -> Program {
    let mut slot_rules = Vec::with_capacity(slots.len());
    let mut checked = vec![0u64; slots.len().div_ceil(64)];
    for (slot, entry) in slots.iter().enumerate() {
        pace.spend(4).await;
        slot_rules.push(entry.map_or(NONE, |(rule, _)| rule));
        let is_indexed = |number: &u16| indexes.iter().any(|index| index.number == *number);
        if entry
            .is_some_and(|(_, term)| !term.exact || !term.sets.iter().all(|(number, _)| is_indexed(number)))
        {
            checked[slot / 64] |= 1 << (slot % 64);
        }
    }
    let first_rules =
        slot_rules.chunks(64).map(|rules| rules.iter().copied().min().unwrap_or(NONE)).collect();
    let exact = checked.iter().all(|word| *word == 0);
    let mut diagram = exact.then(|| Diagram::new(&indexes, &slots, &rules, fallback)).flatten();
    let mut tables = None;
    let compact =
        indexes.iter().map(Index::bytes).sum::<usize>() + diagram.as_ref().map_or(0, Diagram::bytes);
    let is_short = diagram.as_ref().is_some_and(|diagram| diagram.steps.len() <= MAX_STEPS_WITHOUT_TABLES);
    if let Some(budget) = budget.checked_sub(compact).filter(|_| exact && !indexes.is_empty() && !is_short) {
        let output = |rule: u32| rules.get(rule as usize).and_then(|rule| rule.output).unwrap_or(DROP);
        let (indexes, slots, slot_rules) = (&indexes[..], &slots, &slot_rules[..]);
        let terms = RuleTerms { indexes, slots, slot_rules, fallback, output: &output };
        tables = Tables::new(&terms, budget, pace).await;
    }
    // A diagram of more steps would be slower than the compact form, because each step takes a pass over a batch.
    diagram = diagram.filter(|diagram| tables.is_some() || diagram.steps.len() <= MAX_STEPS);
    let in_diagram = diagram.iter().flat_map(Diagram::words);
    let words = Words::new(in_diagram.chain(tables.iter().flat_map(Tables::words)));
    diagram.iter_mut().for_each(|diagram| diagram.number(&words));
    tables.iter_mut().for_each(|tables| tables.number_words(&words));
    Program {
        rules,
        indexes,
        slots,
        slot_rules,
        checked,
        first_rules,
        fallback,
        live,
        diagram,
        tables,
        words,
    }
}

/// Rules lowered into terms.
struct LoweredRules {
    /// The terms, each with its rule.
    terms: Vec<(u32, Term)>,
    /// The fields that the terms number.
    fields: Vec<Field>,
    /// The first rule that matches every packet.
    fallback: u32,
    /// Which rules up to the fallback have terms.
    live: Vec<bool>,
}

/// Breaks the rules into terms, up to the first rule that matches every packet.
async fn lower_rules(rules: &[Rule], layout: Layout, pace: &Pace) -> LoweredRules {
    let mut lowering = Lowering::new(layout == Layout::Ip);
    let mut terms = Vec::with_capacity(rules.len());
    let mut live = Vec::with_capacity(rules.len());
    let mut fallback = NONE;
    for (number, rule) in (0..NONE).zip(rules) {
        let found = if terms.len() < MAX_TERMS {
            lowering.terms(&rule.condition)
        } else if rule.condition == Expression::Constant(true) {
            Vec::from([Term { sets: Vec::new(), exact: true }])
        } else {
            Vec::from([Term { sets: Vec::new(), exact: false }])
        };
        pace.spend(LOWERED + FREED * found.len()).await;
        live.push(!found.is_empty());
        if found.iter().any(|term| term.exact && term.sets.is_empty()) {
            fallback = number;
            break;
        }
        terms.extend(found.into_iter().map(|term| (number, term)));
    }
    LoweredRules { terms, fields: lowering.into_fields(pace).await, fallback, live }
}

/// The fields to index: those that the most terms test.
async fn most_used(terms: &[(u32, Term)], fields: usize, pace: &Pace) -> Vec<u16> {
    let mut uses: Vec<(usize, u16)> = vec![(0, 0); fields];
    for (number, used) in (0..).zip(&mut uses) {
        used.1 = number;
    }
    for (_, term) in terms {
        pace.spend(1 + term.sets.len()).await;
        for (number, _) in &term.sets {
            if let Some((count, _)) = uses.get_mut(usize::from(*number)) {
                *count += 1;
            }
        }
    }
    // The most used are looked for one after the other, because they are few.
    let most_used = core::iter::from_fn(|| {
        let most = uses.iter_mut().max().filter(|(count, _)| *count > 0)?;
        Some(core::mem::take(most).1)
    });
    most_used.take(MAX_INDEXES).collect()
}
