//! `IPFilter`: a firewall; the first matching rule decides about an IP packet.

use classify::{Headers, Layout, Program, filter_rule, filter_rules};
use element::arguments::Raw;
use element::prelude::*;
use element::{LongWork, text};

use super::names::ElementNames;
use super::rule_set::RuleSet;
use super::split::{budget, report, split, warn_of_shadowed_rules};
use super::update::Language;

/// Firewall: filters IP packets by an ordered list of rules. The first matching rule decides.
///
/// A rule is an action and an expression. The action is `allow` (output 0), `deny` or `drop`, or the number of an
/// output. Expressions are those of `IPClassifier`; `all`, `any`, `-` or an empty expression match every packet. Denied
/// packets, and packets that match no rule, are dropped as `denied`. The network header must be marked, for example by
/// `CheckIPHeader`.
///
/// Rules are compiled, so the time per packet grows slowly with their number. Write the handler `rules` to change the
/// rules under traffic. Many rules are compiled in steps between batches: the old ones decide until the new ones replace
/// them whole, and the reply to the write follows then. Writes by elements of the same configuration take effect at once.
///
/// A rule set has one of two forms. The fast form looks up each field of a packet once, and combines the results by
/// tables, so that a thousand rules take about twice as long as ten. The compact form intersects rows of bits, one
/// for each field; it takes about three times as long as the fast form, and a tenth of the memory. The fast form runs if
/// it needs at most MEMORY bytes. The default is 4 MB; in a box it is an eighth of the heap, if that is less. The size is
/// counted before memory is allocated, so a large rule set never fails for lack of it. The handler `form` says which
/// form runs.
///
/// ## Differences
/// `program` shows the decision program as Clickbox compiles it. A step reads the 32-bit word at an offset from a header,
/// masks it and compares it with a value or a range, all in hexadecimal. A packet that passes goes where the arrow
/// points; any other goes on to the next step. A large rule set shows the fields that it looks up.
/// ```click
/// InfiniteSource(LIMIT 5, STOP true)
///     -> UDPIPEncap(10.1.2.3, 1234, 10.9.9.9, 53)
///     -> filter :: IPFilter(deny src 10.2.0.0/16, 1 udp dst port dns, allow all);
/// filter[0] -> others :: Counter -> Discard;
/// filter[1] -> names :: Counter -> Discard;
/// ```
/// ```expect
/// others.count = 0
/// names.count = 5
/// ```
#[derive(Args)]
#[element(
    name = "IPFilter",
    group = "classify",
    ports = "1/-",
    processing = "h/h",
    order_insensitive,
    shards = "independent",
    see = "IPClassifier, Classifier, CheckIPHeader",
    drops = "denied"
)]
pub struct IPFilterArgs {
    /// Bytes that the lookup structures may take. If the fast form needs more, the compact form runs.
    memory: Option<u32>,
    /// Rules: `ACTION EXPRESSION`.
    #[arg(rest)]
    rules: Vec<Raw>,
}

pub struct IPFilter(RuleSet);

static LANGUAGE: Language = Language {
    layout: Layout::Ip,
    is_classifier: false,
    has_patterns: false,
    read: |number, text, setup, problems| {
        filter_rule(number, text, setup.outputs(), &ElementNames(setup), &mut problems.of_rules)
    },
};

impl Element for IPFilter {
    type Args = IPFilterArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("program", "The decision program: numbered steps, or look-ups of fields.", |filter| {
            filter.0.program.text()
        }),
        Handler::read("form", "The form in which the rules run, and its size.", |filter| {
            filter.0.program.form()
        }),
        Handler::read_with("rules", "The rules, in the format of `config`.", |_, cx, _| {
            Ok(cx.configuration())
        }),
        Handler::setting(
            "rules",
            "Replaces the rules; if one is invalid, all stay unchanged.",
            |filter, cx, value| cx.reconfigure(filter, value),
        ),
    ];
    const LIVE_RECONFIGURE: bool = true;
    const BEGIN: Option<fn(&str) -> Option<IPFilter>> =
        Some(|configuration| RuleSet::begin(&LANGUAGE, configuration).map(IPFilter));

    fn new(args: IPFilterArgs, setup: &mut Setup) -> Result<IPFilter, SetupError> {
        let texts: Vec<String> = args.rules.iter().map(|rule| text::unquote(&rule.0)).collect();
        let (rules, problems) = filter_rules(&texts, setup.outputs(), &ElementNames(setup));
        report(&problems, &args.rules, setup)?;
        let mut program = Program::with_budget(rules, Layout::Ip, budget(args.memory, setup));
        warn_of_shadowed_rules(&program, &texts, setup);
        program.discard_analysis();
        Ok(IPFilter(RuleSet::new(&LANGUAGE, program, Vec::new(), args.memory)))
    }

    fn long_work(&mut self) -> Option<&mut dyn LongWork> {
        Some(&mut self.0)
    }

    fn reconfigure(&mut self, args: IPFilterArgs, setup: &mut Setup) -> Result<(), SetupError> {
        self.0.replace(IPFilter::new(args, setup)?.0);
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        split(cx, batch, Reason::DENIED, (&self.0.program, &mut self.0.columns), ip_headers);
    }
}

/// The headers of an IP packet.
#[inline]
pub(super) fn ip_headers(packet: &Packet) -> Headers<'_> {
    Headers { link: packet.mac(), network: packet.network(), transport: packet.transport() }
}
