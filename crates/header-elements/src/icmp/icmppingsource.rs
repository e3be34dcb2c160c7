//! `ICMPPingSource`: sends echo requests.

use core::net::Ipv4Addr;

use element::HandlerError;
use element::arguments::Bytes;
use element::prelude::*;
use packet::view::icmp4::kind;
use packet::{HEADROOM, Icmp4View, Icmp4ViewMut, Ip4View, Ip4ViewMut, protocol};

use super::pingstatistics::{PingStatistics, milliseconds};

/// Sends ICMP echo requests, one every INTERVAL or one per pull, and measures round-trip times like `ping`.
///
/// Replies arrive at the optional input; they are logged and counted. The sequence number counts from 1; it is also the
/// IP identification. The destination annotation is set to DST.
/// ```click
/// p :: ICMPPingSource(10.0.0.1, 10.0.0.2, INTERVAL 0.01, LIMIT 3, STOP true, VERBOSE false, DATA "hello")
///     -> CheckIPHeader -> CheckICMPHeader -> ICMPPingResponder -> c :: Counter -> p;
/// ```
/// ```expect
/// p.count = 3
/// c.count = 3
/// c.byte_count = 99
/// ```
#[derive(Args)]
#[element(
    name = "ICMPPingSource",
    aliases = "ICMPSendPings",
    group = "icmp",
    ports = "0-1/1",
    processing = "h/a",
    logs,
    see = "ICMPPingEncap, ICMPPingResponder, ICMPPingRewriter",
    fates = "made, consumed, changed"
)]
pub struct ICMPPingSourceArgs {
    /// Source address.
    #[arg(position)]
    src: Ipv4Addr,
    /// Destination address.
    #[arg(position)]
    dst: Ipv4Addr,
    /// Time between requests, with millisecond precision.
    #[arg(default = "1")]
    interval: Timestamp,
    /// Identifier of the requests, in host byte order.
    #[arg(default = "0")]
    identifier: u16,
    /// Payload of the requests.
    #[arg(default = "\"\"")]
    data: Bytes,
    /// Requests to send in total; negative for no limit.
    #[arg(default = "-1")]
    limit: i32,
    /// Whether it sends requests.
    #[arg(default = "true")]
    active: bool,
    /// Log replies and the summary.
    #[arg(default = "true")]
    verbose: bool,
    /// Stop the driver after the last request.
    #[arg(default = "false")]
    stop: bool,
    /// Turn each reply into the next request at once, regardless of LIMIT.
    #[arg(default = "false")]
    mirror: bool,
}

pub struct ICMPPingSource {
    args: ICMPPingSourceArgs,
    count: i32,
    pushes: bool,
    /// The time at which the timer fires, or last fired.
    due: Timestamp,
    statistics: Option<PingStatistics>,
}

/// Length of both headers.
const HEADERS_LENGTH: usize = 28;
/// The only timer.
const TIMER: usize = 0;

impl ICMPPingSource {
    fn is_done(&self) -> bool {
        self.args.limit >= 0 && self.count >= self.args.limit
    }

    /// Time between requests, in whole milliseconds.
    fn interval(&self) -> Timestamp {
        Timestamp::from_millis(self.args.interval.millis())
    }

    fn start_unless_running(&mut self, cx: &Context) {
        if self.pushes && self.args.active && cx.timer(TIMER).is_none() {
            self.start(cx, self.interval());
        }
    }

    fn start(&mut self, cx: &Context, span: Timestamp) {
        self.due = cx.steady() + span;
        cx.set_timer_after(TIMER, span);
    }

    /// Creates a packet with the next request.
    fn request(&mut self, cx: &mut Context) -> Option<Packet> {
        let mut packet = cx.allocate(HEADROOM, HEADERS_LENGTH + self.args.data.0.len())?;
        if let Some(target) = packet.data_mut().get_mut(HEADERS_LENGTH..) {
            target.copy_from_slice(&self.args.data.0);
        }
        Some(self.write_headers(cx, packet))
    }

    /// Writes the next request's headers over the first bytes of a packet.
    fn write_headers(&mut self, cx: &mut Context, mut packet: Packet) -> Packet {
        let sequence = sequence(self.count);
        let bytes = packet.data_mut();
        bytes.iter_mut().take(HEADERS_LENGTH).for_each(|byte| *byte = 0);
        let length = bytes.len() as u16;
        if let Some(mut header) = Ip4ViewMut::new(bytes) {
            header.set_header_length(20);
            header.set_total_length(length);
            header.set_identification(sequence);
            header.set_protocol(protocol::ICMP);
            header.set_ttl(200);
            header.set_source(self.args.src);
            header.set_destination(self.args.dst);
            header.fill_checksum();
        }
        if let Some(mut message) = bytes.get_mut(20..).and_then(Icmp4ViewMut::new) {
            message.set_kind(kind::ECHO);
            message.set_identifier(self.identifier());
            message.set_sequence(sequence);
            message.fill_checksum();
        }
        packet.set_destination_ip(self.args.dst);
        packet.set_network(0, 20);
        packet.set_timestamp(cx.now());
        if let Some(statistics) = &mut self.statistics {
            statistics.sent(sequence, cx.now());
        }
        self.count = self.count.wrapping_add(1);
        packet
    }

    /// The identifier in network byte order.
    fn identifier(&self) -> u16 {
        u16::from_be_bytes(self.args.identifier.to_ne_bytes())
    }

    /// Handles a received packet. Returns the next request if the packet is to be turned into it.
    fn receive(&mut self, cx: &mut Context, mut packet: Packet) -> Option<Packet> {
        let header = Ip4View::new(packet.network()).filter(|header| header.protocol() == protocol::ICMP)?;
        let message = Icmp4View::new(packet.transport())?;
        if message.kind() != kind::ECHO_REPLY || message.identifier() != self.identifier() {
            return None;
        }
        let (sequence, source, ttl) = (message.sequence(), header.source(), header.ttl());
        let length = i32::from(header.total_length()) - header.header_length() as i32 - 8;
        let micros = self.statistics.as_mut().and_then(|s| s.received(sequence, packet.timestamp()));
        if let Some(micros) = micros.filter(|_| self.args.verbose) {
            let (name, time) = (cx.name(), milliseconds(micros.into()));
            cx.log(&format!(
                "{name} :: ICMPPingSource: {length} bytes from {source}: icmp_seq={sequence} ttl={ttl} time={time} ms"
            ));
        }
        if !self.args.mirror {
            return None;
        }
        packet.strip(packet.network_offset().and_then(|offset| usize::try_from(offset).ok()).unwrap_or(0));
        (packet.len() >= HEADERS_LENGTH).then(|| self.write_headers(cx, packet))
    }

    fn with_statistics(
        &self,
        name: &str,
        read: impl Fn(&PingStatistics) -> String,
    ) -> Result<String, HandlerError> {
        self.statistics.as_ref().map(read).ok_or_else(|| HandlerError::NoHandler(name.to_string()))
    }
}

/// The sequence number of the request after the first `count`, which wraps around after 2^31; never 0.
fn sequence(count: i32) -> u16 {
    count.rem_euclid(0xffff) as u16 + 1
}

impl Element for ICMPPingSource {
    type Args = ICMPPingSourceArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("active", "Whether it sends requests.", |element| element.args.active.to_string()),
        Handler::setting("active", "Starts or stops it.", |element, cx, value| {
            element.args.active = cx.argument(value).map_err(|_| HandlerError::new("type mismatch"))?;
            if !element.args.active {
                cx.clear_timer(TIMER);
            } else if element.pushes && cx.timer(TIMER).is_none() {
                element.start(cx, Timestamp::ZERO);
            }
            Ok(())
        }),
        Handler::read("src", "Source address.", |element| element.args.src.to_string()),
        Handler::setting("src", "Sets the source address.", |element, cx, value| {
            element.args.src = cx.argument(value).map_err(|_| HandlerError::new("syntax error"))?;
            Ok(())
        }),
        Handler::read("dst", "Destination address.", |element| element.args.dst.to_string()),
        Handler::setting("dst", "Sets the destination address.", |element, cx, value| {
            element.args.dst = cx.argument(value).map_err(|_| HandlerError::new("syntax error"))?;
            Ok(())
        }),
        Handler::read("count", "Requests sent.", |element| element.count.to_string()),
        Handler::setting("limit", "Sets the number of requests to send in total.", |element, cx, value| {
            element.args.limit =
                cx.argument(value).map_err(|_| HandlerError::new("'limit' should be integer"))?;
            if !element.is_done() {
                element.start_unless_running(cx);
            }
            Ok(())
        }),
        Handler::setting("interval", "Sets the time between requests.", |element, cx, value| {
            element.args.interval =
                cx.argument(value).map_err(|_| HandlerError::new("'interval' should be an interval"))?;
            Ok(())
        }),
        Handler::action("reset_counts", "Forgets all requests and replies.", |element, cx, _| {
            element.count = 0;
            element.statistics = element.statistics.as_ref().map(|_| PingStatistics::new());
            if element.count < element.args.limit {
                element.start_unless_running(cx);
            }
            Ok(())
        }),
        Handler::read_with(
            "summary",
            "Statistics in the format of `ping`, if it has an input.",
            |element, _, _| {
                element.with_statistics("summary", |statistics| statistics.summary(element.count.into()))
            },
        ),
        Handler::read_with("rtt_min", "Minimum round-trip time, if it has an input.", |element, _, _| {
            element.with_statistics("rtt_min", PingStatistics::min)
        }),
        Handler::read_with("rtt_avg", "Average round-trip time, if it has an input.", |element, _, _| {
            element.with_statistics("rtt_avg", PingStatistics::mean)
        }),
        Handler::read_with("rtt_max", "Maximum round-trip time, if it has an input.", |element, _, _| {
            element.with_statistics("rtt_max", PingStatistics::max)
        }),
    ];

    fn new(args: ICMPPingSourceArgs, setup: &mut Setup) -> Result<ICMPPingSource, SetupError> {
        if args.interval < Timestamp::ZERO {
            return Err(SetupError::argument("INTERVAL", "must not be negative"));
        }
        if args.interval.millis() == 0 {
            setup.warn("INTERVAL so small that it is zero");
        }
        Ok(ICMPPingSource { args, count: 0, pushes: true, due: Timestamp::ZERO, statistics: None })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.pushes = cx.is_push_output(0);
        if !self.pushes && self.args.mirror {
            return Err(SetupError::new("MIRROR invalid on pull element"));
        }
        if cx.inputs() > 0 {
            self.statistics = Some(PingStatistics::new());
        }
        if self.args.limit != 0 {
            self.start_unless_running(cx);
        }
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, _: usize, mut batch: Batch) {
        for packet in batch.drain() {
            match self.receive(cx, packet) {
                Some(request) => cx.send(0, request),
                None => cx.count(Fate::Consumed, 1),
            }
        }
        cx.recycle(batch);
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        for _ in 0..most {
            if self.is_done() {
                if self.args.stop {
                    self.args.stop = false;
                    cx.stop();
                }
                return;
            }
            let Some(request) = self.request(cx) else { return };
            into.push(request);
        }
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        if self.is_done() {
            if self.args.stop {
                cx.stop();
            }
            return;
        }
        if let Some(request) = self.request(cx) {
            cx.send(0, request);
            self.due += self.interval();
            cx.set_timer(TIMER, self.due);
        }
    }

    fn cleanup(&mut self, cx: &mut Context) {
        if let Some(statistics) = self.statistics.as_ref().filter(|_| self.args.verbose) {
            for line in statistics.summary(self.count.into()).lines() {
                cx.log(&format!("{} :: ICMPPingSource: {line}", cx.name()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_wrap_without_zero() {
        for (count, expected) in [(0, 1), (0xfffe, 0xffff), (0xffff, 1), (i32::MIN, 32768), (-1, 0xffff)] {
            assert_eq!(sequence(count), expected, "{count}");
        }
    }
}
