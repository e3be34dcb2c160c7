//! `WebGen`: fetches web pages over and over, from many addresses.

use alloc::collections::VecDeque;
use core::net::Ipv4Addr;

use element::arguments::Ip4PrefixOrHost;
use element::prelude::*;
use packet::view::tcp::flag;
use packet::{HEADROOM, Ip4Prefix, Ip4View, Ip4ViewMut, TcpView, TcpViewMut, protocol};

use super::production::Quota;

/// The port of web servers.
const SERVER_PORT: u16 = 80;
/// The first port of connections.
const FIRST_PORT: u16 = 1024;
/// Maximum connections at once. No two have the same port.
const MAX_CONNECTIONS: usize = 16_384;
/// Ports that a connection's place has, in turn, so that late segments of an earlier connection are told from its own.
const PORTS_OF_PLACE: u16 = 3;
/// How often the first sequence number of a connection moves on: faster than data is sent, and so that it comes round after more than
/// twice the minute for which a server remembers a connection.
const NANOS_A_NUMBER: i64 = 250;
/// Pages that are asked for, without URL.
const PAGES: u32 = 10_000;
const TICK: Timestamp = Timestamp::from_parts(0, 1_000_000);
/// Time after which a segment is sent again.
const RESEND_AFTER: Timestamp = Timestamp::from_parts(1, 0);
/// How often, until the connection is given up.
const MAX_RESENDS: u8 = 5;
const IP_LENGTH: usize = 20;
const HEADERS_LENGTH: usize = 40;

/// Fetches pages from a web server over and over, from random addresses.
///
/// It opens RATE connections per second to the server DST, each from a random address in PREFIX. Input and output are IP
/// packets. A connection asks port 80 for a page, takes the answer until the server closes the
/// connection, and closes it too. Data is thrown away. A segment that is not answered is sent again after one to two seconds, and
/// after five times the connection is given up. With RATE 0, PARALLEL connections are kept open. At most 16,384 connections are open
/// at once. Packets to other addresses, or for no connection, are dropped.
///
/// ## Differences
/// - LIMIT, ACTIVE, PARALLEL and URL are those of FastClick, where ACTIVE is false without it. The handlers do not exist there, and
///   numbers are logged every five seconds.
/// - Checksums are checked. Data that arrives out of order is not taken, so that the server sends it again. A segment for no
///   connection is not answered with a reset.
/// - Sequence numbers begin with the time, as RFC 9293 recommends (3.4.1), so that a server takes a connection from the address and the
///   port of one that it still remembers (TIME-WAIT). What a server answers for such an earlier connection is reset (3.10.7.3).
/// ```click
/// // There is no server: each of two connections sends six SYN segments.
/// Idle -> web :: WebGen(10.0.0.0/8, 192.0.2.1, 100, LIMIT 2)
///     -> k :: IPClassifier(src net 10.0.0.0/8 and dst host 192.0.2.1 and dst tcp port www and syn, -);
/// k[0] -> opened :: Counter -> Discard;
/// k[1] -> other :: Counter -> Discard;
/// Script(wait 8s, stop);
/// ```
/// ```expect
/// web.count = 2
/// web.timeouts = 2
/// web.completed = 0
/// web.resets = 0
/// web.open = 0
/// opened.count = 12
/// other.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "WebGen",
    group = "sources",
    ports = "1/1",
    processing = "h/h",
    shards = "first",
    see = "FastTCPFlows, KernelTap",
    drops = "bad_length, bad_checksum, not_tcp, no_mapping",
    fates = "made, consumed"
)]
pub struct WebGenArgs {
    /// Addresses of the connections.
    #[arg(position)]
    prefix: Ip4PrefixOrHost,
    /// Address of the server.
    #[arg(position)]
    dst: Ipv4Addr,
    /// New connections per second; 0 to keep PARALLEL open.
    #[arg(position)]
    rate: u32,
    /// Connections to keep open with RATE 0.
    #[arg(position, default = "16")]
    parallel: u32,
    /// Connections to open in total; negative for no limit.
    #[arg(default = "-1")]
    limit: i32,
    /// Whether it opens connections.
    #[arg(default = "true")]
    active: bool,
    /// The page to ask for; a random one by default.
    #[arg(default = "\"\"")]
    url: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// SYN sent.
    Opening,
    /// Connected; the request is not acknowledged.
    Asking,
    Reading,
    /// The server has closed the connection; FIN sent.
    Closing,
}

/// A segment's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    flags: u8,
    sequence: u32,
    acknowledgement: u32,
    /// Bytes of data.
    length: u32,
}

/// What follows from a segment.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Nothing,
    /// A segment is to be sent.
    Answer,
    /// The server has an earlier connection from the same port, which a reset with this number ends.
    Reject(u32),
    Completed,
    Reset,
}

#[derive(Clone, Copy)]
struct Connection {
    source: Ipv4Addr,
    port: u16,
    page: u32,
    /// The sequence number of SYN.
    initial: u32,
    /// Length of the request.
    asks: u32,
    /// The next sequence number of the server.
    expected: u32,
    phase: Phase,
    resends: u8,
    resend_at: Timestamp,
}

impl Connection {
    /// Takes a segment of the server.
    fn take(&mut self, segment: &Segment) -> Outcome {
        let Segment { flags, sequence, acknowledgement, length } = *segment;
        let acknowledged = acknowledgement.wrapping_sub(self.initial);
        if self.phase == Phase::Opening {
            if flags & flag::ACK == 0 || acknowledged != 1 {
                let is_earlier = flags & flag::ACK != 0 && flags & flag::RST == 0;
                return if is_earlier { Outcome::Reject(acknowledgement) } else { Outcome::Nothing };
            }
            if flags & flag::RST != 0 {
                return Outcome::Reset;
            }
            if flags & flag::SYN == 0 {
                return Outcome::Nothing;
            }
            (self.phase, self.expected, self.resends) = (Phase::Asking, sequence.wrapping_add(1), 0);
            return Outcome::Answer;
        }
        if flags & flag::RST != 0 {
            return if sequence == self.expected { Outcome::Reset } else { Outcome::Nothing };
        }
        if flags & flag::ACK != 0 {
            if self.phase == Phase::Asking && acknowledged == 1 + self.asks {
                (self.phase, self.resends) = (Phase::Reading, 0);
            }
            if self.phase == Phase::Closing && acknowledged == 2 + self.asks {
                return Outcome::Completed;
            }
        }
        let closes = flags & flag::FIN != 0;
        if sequence == self.expected && self.phase != Phase::Closing && (length > 0 || closes) {
            self.resends = 0;
            self.expected = self.expected.wrapping_add(length + u32::from(closes));
            // A server that closes without an answer to the request needs no request.
            if closes {
                self.phase = Phase::Closing;
            }
        }
        if length > 0 || flags & (flag::FIN | flag::SYN) != 0 { Outcome::Answer } else { Outcome::Nothing }
    }

    /// The segment to send, or to send again.
    fn segment(&self) -> Segment {
        let after = |count: u32| self.initial.wrapping_add(count);
        let (flags, sequence, length) = match self.phase {
            Phase::Opening => (flag::SYN, self.initial, 0),
            Phase::Asking => (flag::PSH | flag::ACK, after(1), self.asks),
            Phase::Reading => (flag::ACK, after(1 + self.asks), 0),
            Phase::Closing => (flag::FIN | flag::ACK, after(1 + self.asks), 0),
        };
        let acknowledgement = if self.phase == Phase::Opening { 0 } else { self.expected };
        Segment { flags, sequence, acknowledgement, length }
    }
}

pub struct WebGen {
    prefix: Ip4Prefix,
    server: Ipv4Addr,
    rate: u32,
    /// Connections that may be open at once.
    most: usize,
    quota: Quota,
    active: bool,
    url: String,
    /// Connections by their places.
    places: Vec<Option<Connection>>,
    free: Vec<u16>,
    /// Places by the times at which they are looked at: each is there once, however much a server sends.
    resends: VecDeque<(Timestamp, u16)>,
    /// Whether each place is among them.
    awaited: Vec<bool>,
    /// When the next connection is due.
    next: Timestamp,
    identification: u16,
    completed: u64,
    timeouts: u64,
    resets: u64,
}

impl Element for WebGen {
    type Args = WebGenArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("count", "Connections opened.", |web| web.quota.count.to_string()),
        Handler::read("completed", "Pages fetched.", |web| web.completed.to_string()),
        Handler::read("timeouts", "Connections given up.", |web| web.timeouts.to_string()),
        Handler::read("resets", "Connections that the server reset.", |web| web.resets.to_string()),
        Handler::read("open", "Connections that are open.", |web| web.open().to_string()),
        Handler::read("active", "Whether it opens connections.", |web| web.active.to_string()),
        Handler::setting("active", "Starts or stops it.", |web, cx, value| {
            web.active = cx.argument(value).map_err(|_| HandlerError::new("type mismatch"))?;
            web.next = cx.steady();
            cx.set_timer_after(0, TICK);
            Ok(())
        }),
        Handler::action("reset", "Resets the numbers.", |web, cx, _| {
            web.quota.count = 0;
            (web.completed, web.timeouts, web.resets) = (0, 0, 0);
            cx.set_timer_after(0, TICK);
            Ok(())
        }),
    ];

    fn new(args: WebGenArgs, _: &mut Setup) -> Result<WebGen, SetupError> {
        let most = if args.rate == 0 { args.parallel as usize } else { MAX_CONNECTIONS };
        if !(1..=MAX_CONNECTIONS).contains(&most) {
            return Err(SetupError::argument("PARALLEL", format!("must be between 1 and {MAX_CONNECTIONS}")));
        }
        Ok(WebGen {
            prefix: args.prefix.0,
            server: args.dst,
            rate: args.rate,
            most,
            quota: Quota::new(args.limit.into()),
            active: args.active,
            url: args.url,
            places: Vec::new(),
            free: Vec::new(),
            resends: VecDeque::new(),
            awaited: Vec::new(),
            next: Timestamp::ZERO,
            identification: 0,
            completed: 0,
            timeouts: 0,
            resets: 0,
        })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.next = cx.steady();
        cx.set_timer_after(0, TICK);
        Ok(())
    }

    fn inherit(&mut self, old: &mut WebGen, _: &mut Context) {
        if self.server == old.server {
            core::mem::swap(&mut self.places, &mut old.places);
            core::mem::swap(&mut self.free, &mut old.free);
            core::mem::swap(&mut self.resends, &mut old.resends);
            core::mem::swap(&mut self.awaited, &mut old.awaited);
            self.quota.count = old.quota.count;
            (self.completed, self.timeouts, self.resets) = (old.completed, old.timeouts, old.resets);
        }
    }

    fn push(&mut self, cx: &mut Context, _: usize, mut batch: Batch) {
        for packet in batch.drain() {
            match self.receive(cx, packet.data()) {
                Ok(()) => cx.end(packet, Fate::Consumed),
                Err(reason) => cx.drop(packet, reason),
            }
        }
        cx.recycle(batch);
    }

    fn timer(&mut self, cx: &mut Context, timer: usize) {
        let now = cx.steady();
        while self.resends.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, place)) = self.resends.pop_front() else { break };
            if let Some(is_awaited) = self.awaited.get_mut(usize::from(place)) {
                *is_awaited = false;
            }
            let Some(Some(connection)) = self.places.get_mut(usize::from(place)) else { continue };
            // Something else was sent since.
            if connection.resend_at > now {
                self.look_again(place, now);
                continue;
            }
            connection.resends += 1;
            if connection.resends > MAX_RESENDS {
                self.timeouts += 1;
                self.close(place);
            } else {
                self.send(cx, place);
            }
        }
        while self.active && !self.quota.is_used_up() && self.next <= now {
            if self.open() >= self.most {
                // Those that are due now are not opened later.
                self.next = now;
                break;
            }
            if let Some(span) = 1_000_000_000_u32.checked_div(self.rate) {
                self.next += Timestamp::from_nanos(span.into());
            }
            self.begin(cx);
        }
        let opens = self.active && !self.quota.is_used_up();
        if opens || !self.resends.is_empty() {
            cx.set_timer_after(timer, TICK);
        }
    }
}

impl WebGen {
    fn open(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Opens a connection.
    fn begin(&mut self, cx: &mut Context) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.awaited.push(false);
            (self.places.len() - 1) as u16
        });
        let mask = self.prefix.mask.to_bits();
        let random = cx.random() << 1 | cx.random() & 1;
        let turn = cx.random_between(0, u32::from(PORTS_OF_PLACE) - 1) as u16;
        let mut connection = Connection {
            source: Ipv4Addr::from_bits(self.prefix.address.to_bits() & mask | random & !mask),
            port: FIRST_PORT + place + turn * MAX_CONNECTIONS as u16,
            page: cx.random_between(0, PAGES - 1),
            initial: (cx.now().nanos() / NANOS_A_NUMBER) as u32,
            asks: 0,
            expected: 0,
            phase: Phase::Opening,
            resends: 0,
            resend_at: Timestamp::ZERO,
        };
        connection.asks = self.request(&connection).len() as u32;
        if let Some(at) = self.places.get_mut(usize::from(place)) {
            *at = Some(connection);
        }
        self.quota.count += 1;
        self.send(cx, place);
    }

    fn close(&mut self, place: u16) {
        if let Some(connection) = self.places.get_mut(usize::from(place)) {
            *connection = None;
            self.free.push(place);
        }
    }

    /// Arranges for a place to be looked at.
    fn look_again(&mut self, place: u16, now: Timestamp) {
        if let Some(is_awaited) = self.awaited.get_mut(usize::from(place))
            && !core::mem::replace(is_awaited, true)
        {
            self.resends.push_back((now + RESEND_AFTER, place));
        }
    }

    fn request(&self, connection: &Connection) -> String {
        match self.url.as_str() {
            "" => format!("GET /{} HTTP/1.0\r\n\r\n", connection.page),
            url => format!("GET {url} HTTP/1.0\r\n\r\n"),
        }
    }

    /// Takes a packet, and answers it.
    fn receive(&mut self, cx: &mut Context, packet: &[u8]) -> Result<(), Reason> {
        let ip = Ip4View::check(packet, true).map_err(|_| Reason::BAD_LENGTH)?;
        let length = usize::from(ip.total_length()) - ip.header_length();
        if ip.protocol() != protocol::TCP || ip.is_fragment() {
            return Err(Reason::NOT_TCP);
        }
        let tcp = packet.get(ip.header_length()..).and_then(|rest| rest.get(..length)).and_then(TcpView::new);
        let tcp = tcp.filter(|tcp| (20..=length).contains(&tcp.header_length())).ok_or(Reason::BAD_LENGTH)?;
        if !tcp.checksum_is_right(ip.pseudo_header(length as u16)) {
            return Err(Reason::BAD_CHECKSUM);
        }
        let place = tcp.destination().wrapping_sub(FIRST_PORT) % MAX_CONNECTIONS as u16;
        let connection =
            self.places.get_mut(usize::from(place)).and_then(Option::as_mut).filter(|connection| {
                (connection.source, connection.port) == (ip.destination(), tcp.destination())
                    && (self.server, SERVER_PORT) == (ip.source(), tcp.source())
            });
        let connection = connection.ok_or(Reason::NO_MAPPING)?;
        let outcome = connection.take(&Segment {
            flags: tcp.flags(),
            sequence: tcp.sequence(),
            acknowledgement: tcp.acknowledgement(),
            length: tcp.payload().len() as u32,
        });
        match outcome {
            Outcome::Nothing => {}
            Outcome::Answer => self.send(cx, place),
            Outcome::Reject(sequence) => {
                let connection = *connection;
                let reset = Segment { flags: flag::RST, sequence, acknowledgement: 0, length: 0 };
                self.send_segment(cx, &connection, &reset);
            }
            Outcome::Completed => {
                self.completed += 1;
                self.close(place);
            }
            Outcome::Reset => {
                self.resets += 1;
                self.close(place);
            }
        }
        Ok(())
    }

    /// Sends what a connection has to say, and arranges for it to be repeated.
    fn send(&mut self, cx: &mut Context, place: u16) {
        let now = cx.steady();
        let Some(Some(connection)) = self.places.get_mut(usize::from(place)) else { return };
        connection.resend_at = now + RESEND_AFTER;
        let connection = *connection;
        self.look_again(place, now);
        self.send_segment(cx, &connection, &connection.segment());
    }

    fn send_segment(&mut self, cx: &mut Context, connection: &Connection, segment: &Segment) {
        let data = if segment.length > 0 { self.request(connection) } else { String::new() };
        let length = HEADERS_LENGTH + data.len();
        let Some(mut packet) = cx.allocate(HEADROOM, length) else { return };
        packet.data_mut().fill(0);
        self.identification = self.identification.wrapping_add(1);
        if let Some((head, rest)) = packet.data_mut().split_at_mut_checked(IP_LENGTH)
            && let Some(mut ip) = Ip4ViewMut::new(head)
        {
            ip.set_header_length(IP_LENGTH);
            ip.set_total_length(length as u16);
            ip.set_identification(self.identification);
            ip.set_ttl(64);
            ip.set_protocol(protocol::TCP);
            ip.set_source(connection.source);
            ip.set_destination(self.server);
            ip.fill_checksum();
            let pseudo = ip.view().pseudo_header((length - IP_LENGTH) as u16);
            if let Some(mut tcp) = TcpViewMut::new(rest) {
                tcp.set_source(connection.port);
                tcp.set_destination(SERVER_PORT);
                tcp.set_sequence(segment.sequence);
                tcp.set_acknowledgement(segment.acknowledgement);
                tcp.set_header_length(HEADERS_LENGTH - IP_LENGTH);
                tcp.set_flags(segment.flags);
                tcp.set_window(u16::MAX);
                tcp.payload_mut().copy_from_slice(data.as_bytes());
                tcp.fill_checksum(pseudo);
            }
        }
        packet.set_network(0, IP_LENGTH);
        packet.set_destination_ip(self.server);
        packet.set_timestamp(cx.now());
        cx.send(0, packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> Connection {
        Connection {
            source: Ipv4Addr::LOCALHOST,
            port: FIRST_PORT,
            page: 7,
            initial: u32::MAX,
            asks: 18,
            expected: 0,
            phase: Phase::Opening,
            resends: 0,
            resend_at: Timestamp::ZERO,
        }
    }

    fn segment(flags: u8, sequence: u32, acknowledgement: u32, length: u32) -> Segment {
        Segment { flags, sequence, acknowledgement, length }
    }

    #[test]
    fn a_page_is_fetched() {
        let mut one = connection();
        assert_eq!(one.segment(), segment(flag::SYN, u32::MAX, 0, 0));
        // A segment of an earlier connection, and then the server's answer.
        assert_eq!(one.take(&segment(flag::ACK, 5, 77, 0)), Outcome::Reject(77));
        assert_eq!(one.take(&segment(flag::SYN | flag::ACK, 999, 0, 0)), Outcome::Answer);
        assert_eq!(one.segment(), segment(flag::PSH | flag::ACK, 0, 1000, 18));
        assert_eq!(one.take(&segment(flag::ACK, 1000, 18, 0)), Outcome::Nothing);
        assert_eq!(one.take(&segment(flag::ACK, 1000, 18, 100)), Outcome::Answer);
        assert_eq!(one.segment(), segment(flag::ACK, 18, 1100, 0));
        // One segment is missing: the same number is acknowledged, and the end does not count yet.
        assert_eq!(one.take(&segment(flag::FIN | flag::ACK, 1200, 18, 50)), Outcome::Answer);
        assert_eq!(one.segment(), segment(flag::ACK, 18, 1100, 0));
        assert_eq!(one.take(&segment(flag::ACK, 1100, 18, 100)), Outcome::Answer);
        assert_eq!(one.take(&segment(flag::FIN | flag::ACK, 1200, 18, 50)), Outcome::Answer);
        assert_eq!(one.segment(), segment(flag::FIN | flag::ACK, 18, 1251, 0));
        // The last acknowledgement was lost, so the server repeats its end.
        assert_eq!(one.take(&segment(flag::FIN | flag::ACK, 1200, 18, 50)), Outcome::Answer);
        assert_eq!(one.segment(), segment(flag::FIN | flag::ACK, 18, 1251, 0));
        assert_eq!(one.take(&segment(flag::ACK, 1251, 19, 0)), Outcome::Completed);
    }

    #[test]
    fn a_server_can_refuse_and_reset() {
        let mut one = connection();
        assert_eq!(one.take(&segment(flag::RST, 0, 0, 0)), Outcome::Nothing);
        assert_eq!(one.take(&segment(flag::RST | flag::ACK, 0, 0, 0)), Outcome::Reset);
        let mut one = connection();
        assert_eq!(one.take(&segment(flag::SYN | flag::ACK, 9, 0, 0)), Outcome::Answer);
        assert_eq!(one.take(&segment(flag::RST, 99, 0, 0)), Outcome::Nothing);
        assert_eq!(one.take(&segment(flag::RST, 10, 0, 0)), Outcome::Reset);
    }
}
