//! `FastTCPFlows`: a benchmark source of many TCP flows.

use element::prelude::*;
use packet::view::tcp::flag;

use super::frame::{self, Frame, ReceiverArguments, SenderArguments};
use super::metered::{self, RateControl};
use super::production;

/// Packets that each flow repeats: the first, the last, and those between.
const PACKETS_PER_FLOW: usize = 3;
/// Maximum number of flows.
const MAX_FLOWS: u32 = 1 << 18;
/// Minimum flow length: a SYN, a data segment and a FIN.
const MIN_FLOW_LENGTH: u32 = 3;

/// Benchmark source of TCP frames in FLOWS concurrent flows, for pull paths.
///
/// Each pull returns the next packet of a random flow, at RATE packets a second (0 for as fast as they are pulled),
/// until LIMIT packets have been sent. A flow consists of a SYN, data segments and a FIN, FLOWSIZE packets in all (at
/// least 3); then it restarts with new random ports. After LIMIT packets, flows still open get their FIN. LENGTH is the
/// frame length, at least 60. After the last packet, `rate` returns the achieved rate.
/// ```click
/// FastTCPFlows(0, 20, 60, 0:0:0:0:0:1, 1.0.0.1, 0:0:0:0:0:2, 2.0.0.2, 1, 10) -> Unqueue
///   -> c :: Counter(COUNT_CALL 20 stop) -> Discard;
/// ```
/// ```expect
/// c.byte_count = 1200
/// c.count = 20
/// ```
#[derive(Args)]
#[element(
    name = "FastTCPFlows",
    group = "sources",
    ports = "0/1",
    processing = "/l",
    shards = "first",
    see = "FastUDPSource, FastUDPFlows",
    fates = "made"
)]
pub struct FastTCPFlowsArgs {
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
    /// Whether it sends packets.
    #[arg(position, default = "true")]
    active: bool,
}

/// Sequence and acknowledgement numbers of SYN, data and FIN.
type Numbers = [(u32, u32); 3];

/// A flow: its three packets with their numbers, and how many were sent.
struct Flow {
    numbers: Numbers,
    open: Packet,
    data: Packet,
    close: Packet,
    sent: u32,
}

pub struct FastTCPFlows {
    frame: Frame,
    count: u32,
    size: u32,
    pace: RateControl,
    flows: Vec<Flow>,
    /// Whether all flows were closed after the last packet.
    closed: bool,
}

impl FastTCPFlows {
    /// Creates a flow with random ports. The numbers are those given, or random.
    fn flow(&self, cx: &Context, numbers: Option<Numbers>) -> Option<Flow> {
        let ports = frame::random_ports(cx);
        // Numbers count from their lowest byte, as Click writes them.
        let number = || cx.random().swap_bytes();
        let numbers = numbers.unwrap_or_else(|| core::array::from_fn(|_| (number(), number())));
        let [open, data, close] = numbers;
        Some(Flow {
            open: self.frame.tcp(cx, ports, flag::SYN, open)?,
            data: self.frame.tcp(cx, ports, flag::PSH | flag::ACK, data)?,
            close: self.frame.tcp(cx, ports, flag::FIN, close)?,
            numbers,
            sent: 0,
        })
    }

    /// The next packet: of a random flow, or, after the last one, the FIN of an open flow.
    fn next(&mut self, cx: &Context) -> Option<&Packet> {
        let size = self.size;
        if self.pace.quota.is_used_up() {
            let open = self.flows.iter_mut().find(|flow| flow.sent != size);
            self.closed = open.is_none();
            let flow = open?;
            flow.sent = size;
            return Some(&flow.close);
        }
        let index = (cx.random() >> 2) as usize % self.flows.len().max(1);
        let last = self.flows.get(index)?;
        if last.sent == size {
            let new = self.flow(cx, Some(last.numbers))?;
            *self.flows.get_mut(index)? = new;
        }
        let flow = self.flows.get_mut(index)?;
        flow.sent += 1;
        Some(match flow.sent {
            1 => &flow.open,
            sent if sent == size => &flow.close,
            _ => &flow.data,
        })
    }
}

impl Element for FastTCPFlows {
    type Args = FastTCPFlowsArgs;
    const HANDLERS: &'static [Handler<Self>] = metered::handlers!(|source| { source.closed = false; };);

    fn new(args: FastTCPFlowsArgs, setup: &mut Setup) -> Result<FastTCPFlows, SetupError> {
        if args.flowsize < MIN_FLOW_LENGTH {
            setup.warn("warning: flow size < 3, defaulting to 3");
        }
        if !(1..=MAX_FLOWS).contains(&args.flows) {
            return Err(SetupError::argument("FLOWS", format!("must be between 1 and {MAX_FLOWS}")));
        }
        Ok(FastTCPFlows {
            frame: Frame::new(&args.from, &args.to, true, setup),
            count: args.flows,
            size: args.flowsize.max(MIN_FLOW_LENGTH),
            pace: RateControl::new(&args.from, args.active),
            flows: Vec::new(),
            closed: false,
        })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        for _ in 0..self.count {
            let flow = self.flow(cx, None).ok_or_else(|| SetupError::new("out of memory"))?;
            self.flows.push(flow);
        }
        Ok(())
    }

    fn waiting(&self, waiting: &mut Waiting) {
        waiting.add_templates(self.flows.len() * PACKETS_PER_FLOW);
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        for _ in 0..most {
            let over = self.pace.quota.is_used_up() && self.closed;
            if !self.pace.active || over || !self.pace.is_due(cx.now()) {
                return;
            }
            match self.next(cx).map(|packet| production::replicate(cx, packet, 1, into)) {
                Some(1) => {}
                Some(_) => return,
                None if self.closed => return,
                None => return cx.count_begun(Fate::Made, 1, 0),
            }
            self.pace.count(cx.steady());
        }
    }
}
