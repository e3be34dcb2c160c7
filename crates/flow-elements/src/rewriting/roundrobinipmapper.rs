//! `RoundRobinIPMapper`: assigns patterns to a rewriter's flows in turn.

use core::cell::RefCell;

use element::arguments::Raw;
use element::prelude::*;

use super::mapper::{Mapper, PatternOrder, targets};
use flow::Ip4Flow;

/// Assigns its patterns in turn to the flows of an `IPRewriter`, for example to balance load.
///
/// Each argument is a pattern with two outputs, `SADDR SPORT DADDR DPORT FOUTPUT ROUTPUT`, as after `pattern` in an
/// `IPRewriter`. Use the name of this element as the rewriter's input specification. A pattern without a free port is
/// skipped.
/// ```click
/// m :: RoundRobinIPMapper(- - 5.0.0.1 - 0 1, - - 5.0.0.2 - 0 1);
/// rw :: IPRewriter(m, drop);
/// InfiniteSource(LENGTH 20, LIMIT 3) -> UDPIPEncap(10.0.0.1, 1000, 9.9.9.9, 53) -> rw;
/// InfiniteSource(LENGTH 20, LIMIT 3, STOP true) -> UDPIPEncap(10.0.0.2, 1000, 9.9.9.9, 53) -> rw;
/// Idle -> [1]rw[1] -> Discard;
/// rw[0] -> to :: IPClassifier(dst host 5.0.0.1, dst host 5.0.0.2);
/// to[0] -> one :: Counter -> Discard;
/// to[1] -> two :: Counter -> Discard;
/// ```
/// ```expect
/// one.count = 3
/// two.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "RoundRobinIPMapper",
    group = "rewriting",
    ports = "0/0",
    phase = "early",
    see = "IPRewriter, TCPRewriter, IPRewriterPatterns, SourceIPHashMapper"
)]
pub(crate) struct RoundRobinIPMapperArgs {
    /// Patterns, each with two outputs.
    #[arg(rest)]
    patterns: Vec<Raw>,
}

pub(crate) struct RoundRobinIPMapper {
    mapper: Rc<Mapper>,
}

/// Round-robin order.
struct RoundRobin {
    count: usize,
    next: usize,
}

impl PatternOrder for RoundRobin {
    fn next(&mut self, _: Ip4Flow, attempt: usize) -> Option<usize> {
        let index = self.next;
        if attempt >= self.count {
            return None;
        }
        self.next = (index + 1) % self.count;
        Some(index)
    }
}

impl Element for RoundRobinIPMapper {
    type Args = RoundRobinIPMapperArgs;

    fn new(args: RoundRobinIPMapperArgs, setup: &mut Setup) -> Result<RoundRobinIPMapper, SetupError> {
        match args.patterns.len() {
            0 => return Err(SetupError::new("no patterns given")),
            1 => setup.warn("only one pattern given"),
            _ => {}
        }
        let targets = targets(args.patterns.iter().map(|Raw(text)| text.as_str()), setup)?;
        let order = RoundRobin { count: targets.len(), next: 0 };
        let declaration = format!("{} :: RoundRobinIPMapper", setup.name());
        let mapper = Mapper { declaration, targets, order: RefCell::new(Box::new(order)) };
        Ok(RoundRobinIPMapper { mapper: Rc::new(mapper) })
    }

    fn export(&self) -> Option<Rc<dyn core::any::Any>> {
        Some(self.mapper.clone())
    }
}
