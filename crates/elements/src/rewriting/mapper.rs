//! Mappers: elements that choose a pattern for a rewriter.

use core::cell::RefCell;

use element::prelude::*;

use super::pattern::Target;
use flow::Ip4Flow;

/// What a mapper element exports: its patterns, and which of them a flow tries.
pub(crate) struct Mapper {
    /// How the element is declared, for messages.
    pub(crate) declaration: String,
    /// Its patterns.
    pub(crate) targets: Vec<Target>,
    /// The order in which a flow tries them.
    pub(crate) order: RefCell<Box<dyn Order>>,
}

/// The order in which a flow tries the patterns of a mapper.
pub(crate) trait Order {
    /// The place of the pattern for the `attempt`-th attempt of a flow, from 0 on; `None` to give up.
    fn next(&mut self, flow: Ip4Flow, attempt: usize) -> Option<usize>;
}

impl Mapper {
    /// Rewrites a flow by the first pattern that can, which `rewrite` finds out.
    pub(crate) fn map(
        &self,
        flow: Ip4Flow,
        mut rewrite: impl FnMut(&Target) -> Option<Ip4Flow>,
    ) -> Option<(Ip4Flow, [u16; 2])> {
        for attempt in 0.. {
            let target = self.targets.get(self.order.borrow_mut().next(flow, attempt)?)?;
            if let Some(rewritten) = rewrite(target) {
                return Some((rewritten, target.outputs));
            }
        }
        None
    }

    /// Says which patterns name outputs beyond those of a rewriter with so many.
    pub(crate) fn check(&self, outputs: usize) -> impl Iterator<Item = String> {
        self.targets.iter().enumerate().filter_map(move |(place, target)| {
            let beyond = target.outputs.iter().any(|port| usize::from(*port) >= outputs);
            beyond.then(|| format!("output port out of range in {} pattern {place}", self.declaration))
        })
    }
}

/// Reads the patterns of a mapper, or says everything that is wrong with them.
pub(crate) fn targets<'t>(
    texts: impl Iterator<Item = &'t str>,
    setup: &Setup,
) -> Result<Vec<Target>, SetupError> {
    let mut problems = SetupError::default();
    let mut targets = Vec::new();
    for text in texts {
        match Target::parse(&element::text::words(text), setup) {
            Ok(target) => targets.push(target),
            Err(text) => problems.merge(SetupError::new(text)),
        }
    }
    problems.into_result().map(|()| targets)
}
