//! `PI`: active queue management by a proportional-integral controller.

use element::arguments::Raw;
use element::number_format;
use element::prelude::*;

use super::dropping::{discard, pull_survivors, push_survivors};
use super::watched::WatchedQueues;

/// Highest target queue length.
const MAX_TARGET: u32 = 0xffff;

/// Active queue management by a proportional-integral controller: drops packets at random to keep queues near TARGET.
///
/// Every W seconds the drop probability grows by A times the current excess of the queue length over TARGET, and
/// shrinks by B times the previous excess. By default it watches the nearest queues: downstream on a push path,
/// upstream on a pull path. Dropped packets go to output 1 if it exists.
///
/// ## Differences
///
/// Click does not build this element by default. Click's version drops a packet unless a random number is below the
/// probability, never stores the previous length, and uses the average length. Here, the probability is that of a
/// drop, and the current length is used.
/// ```click
/// InfiniteSource(LIMIT 20, STOP true) -> p :: PI(0.01, 0.00002, 0.00001, 10) -> q :: Queue(100) -> Idle;
/// ```
/// ```expect
/// p.queues = q
/// p.drops = 0
/// q.length = 20
/// ```
#[derive(Args)]
#[element(
    name = "PI",
    group = "shaping",
    ports = "1/1-2",
    processing = "a/ah",
    pulls_again,
    upkeep,
    see = "RED, CoDel",
    drops = "early_drop"
)]
pub struct PiArgs {
    /// Seconds between adjustments.
    #[arg(position)]
    w: f64,
    /// Weight of the current excess.
    #[arg(position)]
    a: f64,
    /// Weight of the previous excess.
    #[arg(position)]
    b: f64,
    /// Queue length to aim for.
    #[arg(position)]
    target: u32,
    /// Names of the queues to watch. By default the nearest ones.
    #[arg(position)]
    queues: Option<Raw>,
    /// Older name of TARGET.
    qref: Option<u32>,
    /// Accepted for compatibility with Click; has no effect.
    #[arg(default = "4")]
    stability: u32,
}

pub struct Pi {
    args: PiArgs,
    watched: WatchedQueues,
    probability: f64,
    /// Excess over the target at the previous adjustment.
    before: f64,
    drops: u64,
    next: Timestamp,
}

impl PiArgs {
    fn check(mut self) -> Result<PiArgs, SetupError> {
        self.target = self.qref.unwrap_or(self.target);
        let problem = if self.target > MAX_TARGET {
            "TARGET must be <= 65535"
        } else if self.w < 0.001 {
            "w must be positive"
        } else if self.a < 0.0 {
            "a must be positive"
        } else if self.b < 0.0 {
            "b must be positive"
        } else if !(1..=16).contains(&self.stability) {
            "STABILITY parameter must be between 1 and 16"
        } else {
            return Ok(self);
        };
        Err(SetupError::new(problem))
    }
}

impl Pi {
    fn set_timer(&mut self, cx: &Context) {
        self.next += Timestamp::from_seconds(self.args.w);
        cx.set_timer(0, self.next);
    }

    /// Sends a packet on or drops it; returns whether it was sent.
    fn process(&mut self, cx: &mut Context, packet: Packet) -> Option<Packet> {
        if f64::from(cx.random()) < self.probability * f64::from(u32::MAX >> 1) {
            self.drops += 1;
            discard(cx, packet);
            return None;
        }
        Some(packet)
    }

    fn adapt(&mut self) {
        let above = self.watched.length() as f64 - f64::from(self.args.target);
        let probability = self.probability + self.args.a * above - self.args.b * self.before;
        self.probability = probability.clamp(0.0, 1.0);
        self.before = above;
    }
}

impl Element for Pi {
    type Args = PiArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("drops", "Packets dropped.", |pi| pi.drops.to_string()),
        Handler::read("w", "Seconds between adjustments.", |pi| pi.args.w.to_string()),
        Handler::read("a", "Weight of the current excess.", |pi| pi.args.a.to_string()),
        Handler::read("b", "Weight of the previous excess.", |pi| pi.args.b.to_string()),
        Handler::read("probability", "Current drop probability.", |pi| {
            number_format::fixed((pi.probability * 65_536.0) as u64, 16)
        }),
        Handler::read("stats", "Queue lengths and drops.", |pi| {
            format!("{} current queue\n{} drops\n", pi.watched.length(), pi.drops)
        }),
        Handler::read("queues", "The queues that it watches.", |pi| pi.watched.names("\n")),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: PiArgs, _: &mut Setup) -> Result<Pi, SetupError> {
        Ok(Pi {
            args: args.check()?,
            watched: WatchedQueues::default(),
            probability: 0.0,
            before: 0.0,
            drops: 0,
            next: Timestamp::ZERO,
        })
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        WatchedQueues::resolve(cx, self.args.queues.as_ref().map(|Raw(names)| names.as_str()))
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let names = self.args.queues.as_ref().map(|Raw(names)| names.as_str());
        self.watched = WatchedQueues::find(cx, names, cx.is_push_output(0))?;
        self.next = cx.steady();
        self.set_timer(cx);
        Ok(())
    }

    fn reconfigure(&mut self, args: PiArgs, _: &mut Setup) -> Result<(), SetupError> {
        self.args = args.check()?;
        Ok(())
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        self.adapt();
        self.set_timer(cx);
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        push_survivors(cx, batch, |cx, packet| self.process(cx, packet));
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        pull_survivors(cx, most, into, |cx, packet| self.process(cx, packet));
    }
}
