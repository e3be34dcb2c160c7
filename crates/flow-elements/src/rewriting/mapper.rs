//! Mappers: elements that choose a pattern for a rewriter.

use core::cell::RefCell;

use element::prelude::*;

use super::pattern::Target;
use flow::Ip4Flow;

/// The patterns that a mapper element exports, and the order in which a flow tries them.
pub(crate) struct Mapper {
    /// The element's declaration, for messages.
    pub(crate) declaration: String,
    pub(crate) targets: Vec<Target>,
    /// The order in which a flow tries them.
    pub(crate) order: RefCell<Box<dyn PatternOrder>>,
}

/// The order in which a flow tries a mapper's patterns.
pub(crate) trait PatternOrder {
    /// The index of the pattern for a flow's `attempt`-th attempt, counted from 0; `None` to give up.
    fn next(&mut self, flow: Ip4Flow, attempt: usize) -> Option<usize>;
}

impl Mapper {
    /// Rewrites a flow by the first pattern for which `rewrite` succeeds.
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

    /// Reports the patterns whose outputs a rewriter with this number of outputs does not have.
    pub(crate) fn check(&self, outputs: usize) -> impl Iterator<Item = String> {
        self.targets.iter().enumerate().filter_map(move |(index, target)| {
            let beyond = target.outputs.iter().any(|port| usize::from(*port) >= outputs);
            beyond.then(|| format!("output port out of range in {} pattern {index}", self.declaration))
        })
    }
}

/// Parses the patterns of a mapper, or reports all their errors.
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
