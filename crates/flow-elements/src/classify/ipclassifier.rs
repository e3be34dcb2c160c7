//! `IPClassifier`: sends IP packets to the output of the first expression that they match.

use classify::{Layout, Program, classifier_rule, classifier_rules};
use element::arguments::Raw;
use element::prelude::*;
use element::{LongWork, text};

use super::ipfilter::ip_headers;
use super::names::ElementNames;
use super::rule_set::RuleSet;
use super::split::{budget, report, split, warn_of_shadowed_rules, warn_of_unused_outputs};
use super::update::Language;

/// Classifies IP packets by expressions in the style of tcpdump: sends each to the output of the first match.
///
/// There is one expression per output. Expressions consist of primitives, `and`, `or`, `not` (also `&&`, `||`, `!`),
/// `CONDITION ? THIS : THAT` and parentheses. Adjacent primitives are joined by `and`. Packets that match no expression
/// are dropped as `no_match`. The network header must be marked.
///
/// - Addresses: `[src|dst|src and dst|src or dst] host ADDR`, `... net ADDR/BITS`, `... net ADDR mask MASK`, `... ether
///   host ADDR`. Without a direction, either address may match.
/// - Ports: `[src|dst|...] [tcp|udp] port PORT`.
/// - Protocols: `ip proto PROTOCOL`, or the protocol alone.
/// - IP header: `ip vers|hl|tos|dscp|len|id|ttl VALUE`, `ip ect`, `ip ce`, `ip frag`, `ip unfrag`.
/// - TCP and ICMP: `tcp opt syn|fin|ack|rst|psh|urg`, `tcp win VALUE`, `icmp type TYPE`.
/// - Bytes of a header: `ip[POS:LEN] VALUE`, `tcp[POS:LEN] VALUE`, `transp[POS:LEN] VALUE`.
/// - Constants: `true`, `false`, and as the whole expression `-`, `any` and `all`.
///
/// A value may follow one of `== != < > <= >=`, and before that `& MASK`. Words that the value implies, or that repeat
/// those of the previous primitive, may be omitted: `tcp syn`, `src port 80 or 443`, `10.0.0.0/8`.
///
/// Tests of ports, flags and transport headers fail for all fragments except the first. A test of bytes beyond the end
/// of the packet fails, with `!=` as well as with `==`.
///
/// The expressions run in a fast or a compact form, which `IPFilter` describes. The fast form runs if it needs at most MEMORY
/// bytes. The handler `form` says which one runs. Many expressions that are written are compiled in steps, as those of
/// `IPFilter` are.
///
/// ## Differences
/// `program` shows the decision program as Clickbox compiles it. A step reads the 32-bit word at an offset from a header,
/// masks it and compares it with a value or a range, all in hexadecimal. A packet that passes goes where the arrow
/// points; any other goes on to the next step. A large rule set shows the fields that it looks up.
///
/// `ip[POS]` beyond byte 255 reads that byte of the packet; Click reads a byte of the transport header. `& MASK >
/// VALUE` is exact for every mask; Click ignores it if only the lowest bit of the value is outside the mask. A test of
/// bytes behind the end of the packet fails; for `ip[POS]`, Click reads whatever follows the packet.
/// ```click
/// InfiniteSource(LIMIT 5, STOP true)
///     -> UDPIPEncap(10.1.2.3, 1234, 10.9.9.9, 53)
///     -> c :: IPClassifier(tcp syn, src net 10.1.0.0/16 and dst port 53 or 123, -);
/// c[0] -> opens :: Counter -> Discard;
/// c[1] -> names :: Counter -> Discard;
/// c[2] -> others :: Counter -> Discard;
/// ```
/// ```expect
/// opens.count = 0
/// names.count = 5
/// others.count = 0
/// c.pattern0 = tcp syn
/// ```
#[derive(Args)]
#[element(
    name = "IPClassifier",
    group = "classify",
    ports = "1/-",
    processing = "h/h",
    order_insensitive,
    shards = "independent",
    see = "IPFilter, Classifier, CheckIPHeader",
    drops = "no_match"
)]
pub struct IPClassifierArgs {
    /// Bytes that the lookup structures may take. If the fast form needs more, the compact form runs.
    memory: Option<u32>,
    /// Expressions, one per output.
    #[arg(rest)]
    patterns: Vec<Raw>,
}

pub struct IPClassifier(RuleSet);

static LANGUAGE: Language = Language {
    layout: Layout::Ip,
    is_classifier: true,
    has_patterns: true,
    read: |number, text, setup, problems| {
        Some(classifier_rule(number, text, &ElementNames(setup), &mut problems.of_rules))
    },
};

impl IPClassifier {
    fn compile(
        patterns: Vec<Raw>,
        memory: Option<u32>,
        setup: &mut Setup,
    ) -> Result<IPClassifier, SetupError> {
        let count = setup.outputs();
        if patterns.len() != count {
            return Err(SetupError::ports(format_args!("need {count} arguments, one per output port")));
        }
        let texts: Vec<String> = patterns.iter().map(|pattern| text::unquote(&pattern.0)).collect();
        let (rules, problems) = classifier_rules(&texts, &ElementNames(setup));
        report(&problems, &patterns, setup)?;
        let program = Program::with_budget(rules, Layout::Ip, budget(memory, setup));
        warn_of_shadowed_rules(&program, &texts, setup);
        Ok(IPClassifier(RuleSet::new(&LANGUAGE, program, patterns, memory)))
    }

    /// Gives an output another expression.
    fn replace(&mut self, cx: &mut Context, output: usize, value: &str) -> Result<(), HandlerError> {
        let mut patterns = self.0.texts.clone();
        patterns[output] = Raw(value.trim().to_string());
        let name = cx.name();
        let mut new = IPClassifier::compile(patterns, self.0.memory, &mut cx.setup(&name))?;
        new.0.program.discard_analysis();
        self.0.replace(new.0);
        cx.record_owned_configuration(self.0.configuration());
        Ok(())
    }
}

impl Element for IPClassifier {
    type Args = IPClassifierArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("form", "The form in which the expressions run, and its size.", |classifier| {
            classifier.0.program.form()
        }),
        Handler::read(
            "program",
            "The decision program: numbered steps, or look-ups of fields.",
            |classifier| classifier.0.program.text(),
        ),
    ];
    const NUMBERED: Option<NumberedHandlers<Self>> = Some(NumberedHandlers {
        prefix: "pattern",
        summary: "The expression of output N.",
        count: |classifier| classifier.0.texts.len(),
        read: |classifier, output| classifier.0.texts[output].0.clone(),
        write: IPClassifier::replace,
    });
    const LIVE_RECONFIGURE: bool = true;
    const BEGIN: Option<fn(&str) -> Option<IPClassifier>> =
        Some(|configuration| RuleSet::begin(&LANGUAGE, configuration).map(IPClassifier));

    fn new(args: IPClassifierArgs, setup: &mut Setup) -> Result<IPClassifier, SetupError> {
        let mut classifier = IPClassifier::compile(args.patterns, args.memory, setup)?;
        let program = &classifier.0.program;
        warn_of_unused_outputs(program.rules(), &program.unreachable(), setup);
        classifier.0.program.discard_analysis();
        Ok(classifier)
    }

    fn long_work(&mut self) -> Option<&mut dyn LongWork> {
        Some(&mut self.0)
    }

    fn reconfigure(&mut self, args: IPClassifierArgs, setup: &mut Setup) -> Result<(), SetupError> {
        self.0.replace(IPClassifier::new(args, setup)?.0);
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        split(cx, batch, Reason::NO_MATCH, (&self.0.program, &mut self.0.columns), ip_headers);
    }
}
