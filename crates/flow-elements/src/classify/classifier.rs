//! `Classifier`: sends packets to the output of the first byte pattern that they match.

use classify::{Headers, Layout, Program, pattern_rule, pattern_rules};
use element::arguments::Raw;
use element::prelude::*;
use element::{LongWork, text};

use super::rule_set::RuleSet;
use super::split::{budget, report_patterns, split, warn_of_shadowed_rules, warn_of_unused_outputs};
use super::update::Language;

/// Classifies packets by byte patterns: sends each to the output of the first pattern that it matches.
///
/// There is one pattern per output. A pattern is a list of clauses `OFFSET/VALUE` or `OFFSET/VALUE%MASK`, separated by
/// spaces; all must match. The offset is decimal and counts from the start of the packet. Value and mask are
/// hexadecimal with an even number of digits; the digit `?` matches anything. `!` before a clause negates it. The
/// pattern `-` matches every packet. A clause about bytes beyond the end of the packet does not match. Packets that
/// match no pattern are dropped as `no_match`.
///
/// The patterns run in a fast or a compact form, which `IPFilter` describes. The fast form runs if it needs at most MEMORY
/// bytes. The handler `form` says which one runs. Many patterns that are written are compiled in steps, as the rules of
/// `IPFilter` are.
///
/// ## Differences
/// `program` shows the decision program as Clickbox compiles it. A step reads the 32-bit word at an offset from a header,
/// masks it and compares it with a value or a range, all in hexadecimal. A packet that passes goes where the arrow
/// points; any other goes on to the next step. A large rule set shows the fields that it looks up.
/// ```click
/// InfiniteSource(DATA \<000000000001 000000000002 0800>, LIMIT 4, STOP true)
///     -> c :: Classifier(12/0806 20/0001, 12/0800, -);
/// c[0] -> requests :: Counter -> Discard;
/// c[1] -> ip :: Counter -> Discard;
/// c[2] -> others :: Counter -> Discard;
/// ```
/// ```expect
/// requests.count = 0
/// ip.count = 4
/// others.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "Classifier",
    group = "classify",
    ports = "1/-",
    processing = "h/h",
    order_insensitive,
    shards = "independent",
    see = "IPClassifier, IPFilter",
    drops = "no_match"
)]
pub struct ClassifierArgs {
    /// Bytes that the lookup structures may take. If the fast form needs more, the compact form runs.
    memory: Option<u32>,
    /// Patterns, one per output.
    #[arg(rest)]
    patterns: Vec<Raw>,
}

pub struct Classifier(RuleSet);

static LANGUAGE: Language = Language {
    layout: Layout::Bytes,
    is_classifier: true,
    has_patterns: false,
    read: |number, text, _, problems| Some(pattern_rule(number, text, &mut problems.of_patterns)),
};

impl Element for Classifier {
    type Args = ClassifierArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("form", "The form in which the patterns run, and its size.", |classifier| {
            classifier.0.program.form()
        }),
        Handler::read(
            "program",
            "The decision program: numbered steps, or look-ups of fields.",
            |classifier| classifier.0.program.text(),
        ),
    ];
    const LIVE_RECONFIGURE: bool = true;
    const BEGIN: Option<fn(&str) -> Option<Classifier>> =
        Some(|configuration| RuleSet::begin(&LANGUAGE, configuration).map(Classifier));

    fn new(args: ClassifierArgs, setup: &mut Setup) -> Result<Classifier, SetupError> {
        let count = setup.outputs();
        if args.patterns.len() != count {
            return Err(SetupError::ports(format_args!("need {count} arguments, one per output port")));
        }
        let texts: Vec<String> = args.patterns.iter().map(|pattern| text::unquote(&pattern.0)).collect();
        let (rules, problems) = pattern_rules(&texts);
        report_patterns(&problems, &args.patterns)?;
        let mut program = Program::with_budget(rules, Layout::Bytes, budget(args.memory, setup));
        warn_of_shadowed_rules(&program, &texts, setup);
        warn_of_unused_outputs(program.rules(), &program.unreachable(), setup);
        program.discard_analysis();
        Ok(Classifier(RuleSet::new(&LANGUAGE, program, Vec::new(), args.memory)))
    }

    fn long_work(&mut self) -> Option<&mut dyn LongWork> {
        Some(&mut self.0)
    }

    fn reconfigure(&mut self, args: ClassifierArgs, setup: &mut Setup) -> Result<(), SetupError> {
        self.0.replace(Classifier::new(args, setup)?.0);
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        split(cx, batch, Reason::NO_MATCH, (&self.0.program, &mut self.0.columns), |packet| {
            Headers::data(packet.data())
        });
    }
}
