//! `FastUDPSource`: a benchmark source of one UDP flow.

use element::arguments::UdpPort;
use element::prelude::*;

use super::frame::{Frame, ReceiverArguments, SenderArguments};
use super::metered::{self, RateControl};
use super::production;

/// Benchmark source of UDP frames with identical headers, for pull paths.
///
/// It answers pulls at RATE packets a second (0 for as fast as they are pulled), until LIMIT packets have been sent.
/// LENGTH is the frame length, at least 60. After every INTERVAL packets (0 for never), both ports increase by one.
/// After the last packet, `rate` returns the achieved rate.
/// ```click
/// FastUDPSource(0, 10, 60, 0:0:0:0:0:1, 1.0.0.1, 1234, 0:0:0:0:0:2, 2.0.0.2, 1234) -> Unqueue
///   -> c :: Counter(COUNT_CALL 10 stop) -> Discard;
/// ```
/// ```expect
/// c.byte_count = 600
/// c.count = 10
/// ```
#[derive(Args)]
#[element(
    name = "FastUDPSource",
    group = "sources",
    ports = "0/1",
    processing = "/l",
    shards = "first",
    see = "FastUDPFlows, FastTCPFlows, InfiniteSource",
    fates = "made"
)]
pub struct FastUDPSourceArgs {
    #[arg(flatten)]
    from: SenderArguments,
    /// Source port.
    #[arg(position)]
    sport: UdpPort,
    #[arg(flatten)]
    to: ReceiverArguments,
    /// Destination port.
    #[arg(position)]
    dport: UdpPort,
    /// Fill in the UDP checksum.
    #[arg(position, default = "true")]
    checksum: bool,
    /// Packets between port changes; 0 for no changes.
    #[arg(position, default = "0")]
    interval: u32,
    /// Whether it sends packets.
    #[arg(position, default = "true")]
    active: bool,
}

pub struct FastUDPSource {
    frame: Frame,
    ports: (u16, u16),
    interval: u64,
    /// Number of port changes so far.
    changes: u16,
    pace: RateControl,
    template: Option<Packet>,
}

impl FastUDPSource {
    fn make_template(&mut self, cx: &Context) {
        let ports = (self.ports.0.wrapping_add(self.changes), self.ports.1.wrapping_add(self.changes));
        self.template = self.frame.udp(cx, ports);
    }
}

impl Element for FastUDPSource {
    type Args = FastUDPSourceArgs;
    const HANDLERS: &'static [Handler<Self>] = metered::handlers!(|source| { source.changes = 0; };);

    fn new(args: FastUDPSourceArgs, setup: &mut Setup) -> Result<FastUDPSource, SetupError> {
        Ok(FastUDPSource {
            frame: Frame::new(&args.from, &args.to, args.checksum, setup),
            ports: (args.sport.0, args.dport.0),
            interval: args.interval.into(),
            changes: 0,
            pace: RateControl::new(&args.from, args.active),
            template: None,
        })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.make_template(cx);
        Ok(())
    }

    fn waiting(&self, waiting: &mut Waiting) {
        waiting.add_templates(usize::from(self.template.is_some()));
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        for _ in 0..most {
            if !self.pace.active || self.pace.quota.is_used_up() || !self.pace.is_due(cx.now()) {
                return;
            }
            match &self.template {
                Some(template) if production::replicate(cx, template, 1, into) == 1 => {}
                Some(_) => return,
                None => return cx.count_begun(Fate::Made, 1, 0),
            }
            self.pace.count(cx.steady());
            if self.interval > 0 && self.pace.quota.count.is_multiple_of(self.interval) {
                self.changes = self.changes.wrapping_add(1);
                self.make_template(cx);
            }
        }
    }
}
