//! `IPRewriterPatterns`: names patterns that rewriters share.

use element::arguments::Raw;
use element::prelude::*;
use element::{NameKind, text};

use super::pattern::Pattern;

/// Defines named patterns for `IPRewriter` and similar elements. Each argument is `NAME SADDR SPORT DADDR DPORT`.
///
/// All users of a pattern share its state: a sequential choice continues where the last one ended. Defining a name
/// twice is an error.
/// ```click
/// IPRewriterPatterns(nat 1.0.0.1 2000-3000# - -);
/// rw :: IPRewriter(pattern nat 0 0, pattern nat 0 0);
/// InfiniteSource(LENGTH 20, LIMIT 2) -> UDPIPEncap(10.0.0.1, 1000, 5.0.0.5, 53) -> [0]rw;
/// InfiniteSource(LENGTH 20, LIMIT 2, STOP true) -> UDPIPEncap(10.0.0.2, 1000, 5.0.0.5, 53) -> [1]rw;
/// rw -> c :: Counter -> Discard;
/// ```
/// ```expect
/// rw.patterns = 1.0.0.1 2000-3000 - - [1]\n1.0.0.1 2000-3000 - - [1]
/// c.count = 4
/// ```
#[derive(Args)]
#[element(
    name = "IPRewriterPatterns",
    group = "rewriting",
    ports = "0/0",
    phase = "information",
    shards = "independent",
    see = "IPRewriter"
)]
pub(crate) struct IPRewriterPatternsArgs {
    /// Names, each followed by its pattern.
    #[arg(rest)]
    patterns: Vec<Raw>,
}

pub(crate) struct IPRewriterPatterns;

impl Element for IPRewriterPatterns {
    type Args = IPRewriterPatternsArgs;

    fn new(args: IPRewriterPatternsArgs, setup: &mut Setup) -> Result<IPRewriterPatterns, SetupError> {
        let mut problems = SetupError::default();
        for Raw(argument) in &args.patterns {
            let words = text::words(argument);
            let Some((name, words)) = words.split_first() else { continue };
            let (names, scope) = (setup.names(), setup.scope());
            // A number would be ambiguous as a name.
            let is_number = i32::from_argument(name, setup).is_ok();
            if is_number || names.shared::<Pattern>(NameKind::Pattern, scope, name).is_some() {
                problems.merge(SetupError::new(format!("pattern ‘{name}’ already defined")));
                continue;
            }
            match Pattern::parse(words, setup) {
                Ok(pattern) => names.share(NameKind::Pattern, scope, name, pattern),
                Err(text) => problems.merge(SetupError::new(text)),
            }
        }
        problems.into_result()?;
        Ok(IPRewriterPatterns)
    }
}
