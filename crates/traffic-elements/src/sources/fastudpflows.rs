//! `FastUDPFlows`: a benchmark source of many UDP flows.

use element::prelude::*;

use super::frame::{self, Frame, ReceiverArguments, SenderArguments};
use super::metered::{self, RateControl};
use super::production;

/// Maximum number of flows; each holds a packet.
const MAX_FLOWS: u32 = 1 << 20;

/// Benchmark source of UDP frames in FLOWS concurrent flows, for pull paths.
///
/// Each pull returns the next packet of a random flow, at RATE packets a second (0 for as fast as they are pulled),
/// until LIMIT packets have been sent. Ports are random; after FLOWSIZE packets a flow gets new ones. LENGTH is the
/// frame length, at least 60. After the last packet, `rate` returns the achieved rate.
/// ```click
/// FastUDPFlows(0, 20, 60, 0:0:0:0:0:1, 1.0.0.1, 0:0:0:0:0:2, 2.0.0.2, 4, 3) -> Unqueue
///   -> c :: Counter(COUNT_CALL 20 stop) -> Discard;
/// ```
/// ```expect
/// c.byte_count = 1200
/// c.count = 20
/// ```
#[derive(Args)]
#[element(
    name = "FastUDPFlows",
    group = "sources",
    ports = "0/1",
    processing = "/l",
    shards = "first",
    see = "FastUDPSource, FastTCPFlows",
    fates = "made"
)]
pub struct FastUDPFlowsArgs {
    #[arg(flatten)]
    from: SenderArguments,
    #[arg(flatten)]
    to: ReceiverArguments,
    /// Concurrent flows.
    #[arg(position)]
    flows: u32,
    /// Packets per flow.
    #[arg(position)]
    flowsize: u32,
    /// Fill in the UDP checksum.
    #[arg(position, default = "true")]
    checksum: bool,
    /// Whether it sends packets.
    #[arg(position, default = "true")]
    active: bool,
}

/// A flow: its packet, and how often it was sent.
struct Flow {
    packet: Packet,
    sent: u32,
}

pub struct FastUDPFlows {
    frame: Frame,
    count: u32,
    size: u32,
    pace: RateControl,
    flows: Vec<Flow>,
}

impl FastUDPFlows {
    fn make_flows(&mut self, cx: &Context) -> Option<()> {
        self.flows.clear();
        for _ in 0..self.count {
            self.flows.push(Flow { packet: self.frame.udp(cx, frame::random_ports(cx))?, sent: 0 });
        }
        Some(())
    }

    /// The next packet of a random flow.
    fn next(&mut self, cx: &Context) -> Option<&Packet> {
        let index = (cx.random() >> 2) as usize % self.flows.len().max(1);
        let flow = self.flows.get_mut(index)?;
        if flow.sent == self.size {
            *flow = Flow { packet: self.frame.udp(cx, frame::random_ports(cx))?, sent: 0 };
        }
        flow.sent += 1;
        Some(&flow.packet)
    }
}

impl Element for FastUDPFlows {
    type Args = FastUDPFlowsArgs;
    const HANDLERS: &'static [Handler<Self>] = metered::handlers!(
        |source| {};
        Handler::read("length", "Frame length in bytes.", |source| source.frame.length.to_string()),
        Handler::setting(
            "length",
            "Sets the frame length and creates new flows.",
            |source, cx, value| {
                let length =
                    cx.argument(value).map_err(|_| HandlerError::new("length parameter must be integer"))?;
                source.frame.length = frame::clamp_length(length);
                source.pace.quota.count = 0;
                source.make_flows(cx).ok_or_else(|| HandlerError::new("out of memory"))
            },
        ),
    );

    fn new(args: FastUDPFlowsArgs, setup: &mut Setup) -> Result<FastUDPFlows, SetupError> {
        if !(1..=MAX_FLOWS).contains(&args.flows) {
            return Err(SetupError::argument("FLOWS", format!("must be between 1 and {MAX_FLOWS}")));
        }
        Ok(FastUDPFlows {
            frame: Frame::new(&args.from, &args.to, args.checksum, setup),
            count: args.flows,
            size: args.flowsize,
            pace: RateControl::new(&args.from, args.active),
            flows: Vec::new(),
        })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.make_flows(cx).ok_or_else(|| SetupError::new("out of memory"))
    }

    fn waiting(&self, waiting: &mut Waiting) {
        waiting.add_templates(self.flows.len());
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        for _ in 0..most {
            if !self.pace.active || self.pace.quota.is_used_up() || !self.pace.is_due(cx.now()) {
                return;
            }
            match self.next(cx) {
                Some(packet) if production::replicate(cx, packet, 1, into) == 1 => {}
                Some(_) => return,
                None => return cx.count_begun(Fate::Made, 1, 0),
            }
            self.pace.count(cx.steady());
        }
    }
}
