//! `IPFilter`: a firewall; the first matching rule decides about an IP packet.

use classify::{Columns, Headers, Layout, Program, filter_rule, filter_rules};
use element::arguments::Raw;
use element::prelude::*;
use element::{LongWrites, text};

use super::names::ElementNames;
use super::split::{budget, report, split, warn_of_shadowed_rules};
use super::update::RuleUpdate;

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

pub struct IPFilter {
    program: Program,
    columns: Columns,
    /// New rules that are being compiled.
    update: Option<Box<RuleUpdate>>,
}

impl Element for IPFilter {
    type Args = IPFilterArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("program", "The decision program: numbered steps, or look-ups of fields.", |filter| {
            filter.program.text()
        }),
        Handler::read("form", "The form in which the rules run, and its size.", |filter| {
            filter.program.form()
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

    fn new(args: IPFilterArgs, setup: &mut Setup) -> Result<IPFilter, SetupError> {
        let texts: Vec<String> = args.rules.iter().map(|rule| text::unquote(&rule.0)).collect();
        let (rules, problems) = filter_rules(&texts, setup.outputs(), &ElementNames(setup));
        report(&problems, &args.rules, setup)?;
        let mut program = Program::with_budget(rules, Layout::Ip, budget(args.memory, setup));
        warn_of_shadowed_rules(&program, &texts, setup);
        program.discard_analysis();
        Ok(IPFilter { program, columns: Columns::default(), update: None })
    }

    fn long_writes(&mut self) -> Option<&mut dyn LongWrites> {
        Some(self)
    }

    /// Keeps an update that has begun: a write at once does not end it.
    fn reconfigure(&mut self, args: IPFilterArgs, setup: &mut Setup) -> Result<(), SetupError> {
        let new = IPFilter::new(args, setup)?;
        *self = IPFilter { update: self.update.take(), ..new };
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        split(cx, batch, Reason::DENIED, (&self.program, &mut self.columns), ip_headers);
    }
}

impl LongWrites for IPFilter {
    /// A write that comes meanwhile is executed at once.
    fn begin_write(&mut self, _: &mut Context, handler: &str, value: &mut String) -> bool {
        let is_update = matches!(handler, "rules" | "config") && self.update.is_none();
        if is_update {
            self.update = RuleUpdate::new(value).map(Box::new);
        }
        is_update && self.update.is_some()
    }

    fn continue_write(&mut self, cx: &mut Context) -> Option<Result<(), HandlerError>> {
        let result = self.update.as_mut()?.step(cx, &mut self.program, filter_rule);
        if result.is_some() {
            self.update = None;
        }
        result
    }
}

/// The headers of an IP packet.
#[inline]
pub(super) fn ip_headers(packet: &Packet) -> Headers<'_> {
    Headers { link: packet.mac(), network: packet.network(), transport: packet.transport() }
}
