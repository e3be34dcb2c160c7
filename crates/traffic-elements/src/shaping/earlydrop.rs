//! The element behind `RED` and `AdaptiveRED`.

use core::any::Any;
use core::marker::PhantomData;

use element::arguments::Raw;
use element::prelude::*;

use super::dropping::{discard, pull_survivors, push_survivors};
use super::early::{RandomEarlyDetection, RedParameters};
use super::watched::WatchedQueues;

/// Arguments that RED and AdaptiveRED share.
#[derive(ArgumentGroup)]
pub(super) struct WatchArguments {
    /// Names of the queues to watch. By default the nearest ones.
    pub(super) queues: Option<Raw>,
    /// The average queue length is an EWMA with weight 2^-STABILITY; 0 uses the current length, and drops nothing
    /// between the thresholds.
    #[arg(default = "4")]
    pub(super) stability: u32,
}

/// The arguments of RED or AdaptiveRED, which select the variant.
pub trait RedVariant: Args + 'static {
    /// Handlers of the variant.
    const HANDLERS: &'static [Handler<EarlyDrop<Self>>];
    /// Interval between adjustments of the probability, for a variant that tunes itself.
    const INTERVAL: Option<Timestamp> = None;

    /// The RED parameters and the names of queues.
    fn parameters(self) -> (RedParameters, Option<Raw>);

    /// Adjusts the probability for a given queue length.
    fn adapt(_early: &mut RandomEarlyDetection, _length: usize) {}
}

/// The element behind RED and AdaptiveRED.
pub struct EarlyDrop<K> {
    pub(super) early: RandomEarlyDetection,
    names: Option<Raw>,
    pub(super) watched: WatchedQueues,
    pub(super) drops: u64,
    next: Timestamp,
    kind: PhantomData<K>,
}

/// Handlers of both variants: takes the sentence for `config`, and additional handlers.
macro_rules! handlers {
    ($config:literal $(, $own:expr)* $(,)?) => {
        &[
            Handler::read("drops", "Packets dropped.", |red| red.drops.to_string()),
            Handler::read("min_thresh", "The lower threshold.", |red| {
                red.early.parameters().min_threshold.to_string()
            }),
            Handler::read("max_thresh", "The upper threshold.", |red| {
                red.early.parameters().max_threshold.to_string()
            }),
            Handler::read("max_p", "Drop probability at the upper threshold.", |red| {
                red.early.parameters().max_p.text()
            }),
            $($own,)*
            Handler::read("avg_queue_size", "Average queue length.", |red| red.early.average().text()),
            Handler::read("stats", "Queue lengths and drops.", |red| {
                let average = red.early.average().text();
                format!("{} current queue\n{average} avg queue\n{} drops\n", red.watched.length(), red.drops)
            }),
            Handler::read("queues", "The queues that it watches.", |red| red.watched.names("\n")),
            Handler::read("config", $config, |red| red.early.parameters().text(&red.watched)),
        ]
    };
}
pub(super) use handlers;

impl<K> EarlyDrop<K> {
    /// Changes the parameters and keeps the average.
    pub(super) fn set_parameters(&mut self, parameters: RedParameters) -> Result<(), SetupError> {
        let mut early = RandomEarlyDetection::new(parameters)?;
        early.take_average(&self.early);
        self.early = early;
        Ok(())
    }

    fn queue_names(&self) -> Option<&str> {
        self.names.as_ref().map(|Raw(names)| names.as_str())
    }

    /// Drops a packet or returns it, given the length of the queues.
    fn process(&mut self, cx: &mut Context, length: usize, packet: Packet) -> Option<Packet> {
        if self.early.should_drop(length, cx.steady(), || cx.random()) {
            self.drops += 1;
            discard(cx, packet);
            return None;
        }
        Some(packet)
    }
}

impl<K: RedVariant> Element for EarlyDrop<K> {
    type Args = K;
    const HANDLERS: &'static [Handler<Self>] = K::HANDLERS;
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: K, _: &mut Setup) -> Result<Self, SetupError> {
        let (parameters, names) = args.parameters();
        Ok(EarlyDrop {
            early: RandomEarlyDetection::new(parameters)?,
            names,
            watched: WatchedQueues::default(),
            drops: 0,
            next: Timestamp::ZERO,
            kind: PhantomData,
        })
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        WatchedQueues::resolve(cx, self.queue_names())?;
        // Each packet is judged by the queues as the one before has left them.
        if !WatchedQueues::change_only_by(cx, self.queue_names()) {
            cx.needs_single_packets();
        }
        Ok(())
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.watched = WatchedQueues::find(cx, self.queue_names(), cx.is_push_output(0))?;
        if let Some(interval) = K::INTERVAL {
            self.next = cx.steady() + interval;
            cx.set_timer(0, self.next);
        }
        Ok(())
    }

    fn reconfigure(&mut self, args: K, _: &mut Setup) -> Result<(), SetupError> {
        self.set_parameters(args.parameters().0)
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        K::adapt(&mut self.early, self.watched.length());
        self.next += K::INTERVAL.unwrap_or(Timestamp::ZERO);
        cx.set_timer(0, self.next);
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        let mut length = self.watched.length();
        // A batch of several packets goes to one queue, which has them after this call.
        let capacity = self.watched.capacity();
        push_survivors(cx, batch, |cx, packet| {
            let packet = self.process(cx, length, packet)?;
            length += usize::from(length < capacity);
            Some(packet)
        });
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        pull_survivors(cx, most, into, |cx, packet| self.process(cx, self.watched.length(), packet));
    }

    fn inherit(&mut self, old: &mut Self, _: &mut Context) {
        self.early.take_average(&old.early);
    }

    fn swap_state(&mut self) -> Option<&mut dyn Any> {
        Some(&mut self.early)
    }

    fn inherit_swap_state(&mut self, state: &mut dyn Any, _: &mut Context) {
        if let Some(old) = state.downcast_ref::<RandomEarlyDetection>() {
            self.early.take_average(old);
        }
    }
}
