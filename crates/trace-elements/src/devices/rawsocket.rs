//! `RawSocket`: sends and receives IP packets of one protocol over the host's network.

use element::arguments::{FromArgument, IpProtocol, Raw, TcpPort, UdpPort};
use element::prelude::*;
use element::{Descriptor, Device, DeviceRequest, IoError, Signal};

use crate::trace::link;
use capture::LinkType;

/// The timer of the next attempt.
const RETRY_TIMER: usize = 0;
/// Time between attempts.
const RETRY_DELAY: Timestamp = Timestamp::from_parts(0, 100_000);

/// Sends IP packets through a raw socket, and receives packets of one IP protocol addressed to this host.
///
/// A TCP or UDP PORT is reserved, so that the host does not answer on it. Packets for other ports are received too.
/// ```click
/// // The host receives its own requests, and answers them.
/// ICMPPingSource(127.0.0.1, 127.0.0.1, INTERVAL 0.1, LIMIT 3, VERBOSE false) -> Queue -> RawSocket(ICMP)
///     -> received :: IPClassifier(icmp type echo, icmp type echo-reply);
/// received[0] -> requests :: Counter -> Discard;
/// received[1] -> replies :: Counter -> Discard;
/// ```
/// ```expect
/// requests.count = 3
/// replies.count = 3
/// ```
/// ## Differences
/// PORT has no effect for other protocols. It had one only on PlanetLab's Linux.
#[derive(Args)]
#[element(
    name = "RawSocket",
    group = "devices",
    ports = "0-1/0-1",
    processing = "l/h",
    flow = "x/y",
    task,
    logs,
    see = "FromDevice",
    drops = "no_ip_header, not_sent",
    fates = "received, delivered, waiting"
)]
pub struct RawSocketArgs {
    /// IP protocol.
    #[arg(position)]
    r#type: IpProtocol,
    /// TCP or UDP port.
    #[arg(position)]
    port: Option<Raw>,
    /// Maximum bytes of a packet to keep.
    #[arg(default = "2048")]
    snaplen: u16,
    /// Headroom of packets in bytes.
    #[arg(default = "28")]
    headroom: u16,
}

pub struct RawSocket {
    protocol: u8,
    port: u16,
    snap: usize,
    device: Option<Box<dyn Device>>,
    waiting: Batch,
    /// Since when they wait.
    since: Timestamp,
    signal: Signal,
    last_error: Option<IoError>,
}

impl Element for RawSocket {
    type Args = RawSocketArgs;

    fn new(args: RawSocketArgs, setup: &mut Setup) -> Result<RawSocket, SetupError> {
        let wrong = |problem| SetupError::argument("PORT", problem);
        if args.headroom > 8190 {
            return Err(SetupError::new("HEADROOM out of range"));
        }
        let port = match (&args.port, args.r#type.0) {
            (Some(text), 6) => TcpPort::from_argument(&text.0, setup).map_err(wrong)?.0,
            (Some(text), 17) => UdpPort::from_argument(&text.0, setup).map_err(wrong)?.0,
            (Some(text), _) => u16::from_argument(&text.0, setup).map_err(wrong)?,
            (None, _) => 0,
        };
        let (device, waiting, signal) = (None, Batch::default(), Signal::BUSY);
        let snap = args.snaplen.into();
        Ok(RawSocket {
            protocol: args.r#type.0,
            port,
            snap,
            device,
            waiting,
            since: Timestamp::ZERO,
            signal,
            last_error: None,
        })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let request = DeviceRequest::Raw { protocol: self.protocol, port: self.port, snap: self.snap };
        let device = super::open(cx, "socket", &request)?;
        if let Some(descriptor) = device.descriptor().filter(|_| cx.outputs() > 0) {
            cx.watch(descriptor, true, false);
        }
        self.device = Some(device);
        if cx.inputs() > 0 {
            self.signal = cx.upstream_signal(0);
            cx.schedule();
        }
        Ok(())
    }

    fn ready(&mut self, cx: &mut Context, _: Descriptor) {
        let Some(device) = &mut self.device else { return };
        let (mut batch, most) = (cx.batch(), cx.batch_limit());
        let result = device.receive(cx.pool(), most, &mut batch);
        super::report(cx, "recv", result, &mut self.last_error);
        cx.count(Fate::Received, batch.len());
        for mut packet in batch.drain() {
            packet.set_timestamp(cx.now());
            match link::ip_header(LinkType::RAW, packet.data()) {
                Some((_, length)) => {
                    packet.set_network(0, length);
                    cx.send(0, packet);
                }
                None => cx.drop(packet, Reason::NO_IP_HEADER),
            }
        }
        cx.recycle(batch);
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        let Some(device) = &mut self.device else { return false };
        if self.waiting.is_empty() {
            cx.pull(0, cx.batch_limit(), &mut self.waiting);
            self.since = cx.steady();
        }
        let before = self.waiting.len();
        let result = device.send(&mut self.waiting);
        let failed = result.is_err();
        cx.count(Fate::Delivered, before - self.waiting.len());
        super::report(cx, "sendto", result, &mut self.last_error);
        if failed {
            let lost: Vec<Packet> = self.waiting.drain_front(1).collect();
            lost.into_iter().for_each(|packet| cx.drop(packet, Reason::NOT_SENT));
        }
        if !self.waiting.is_empty() && !failed {
            cx.set_timer_after(RETRY_TIMER, RETRY_DELAY);
        } else if before > 0 || self.signal.is_active() {
            cx.schedule();
        }
        before > self.waiting.len()
    }

    fn waiting(&self, waiting: &mut Waiting) {
        waiting.add(self.waiting.len(), Some(self.since));
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        cx.schedule();
    }

    fn cleanup(&mut self, _: &mut Context) {
        self.device = None;
        self.waiting.clear();
    }
}
