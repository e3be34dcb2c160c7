//! `FromDevice`: receives packets from a network interface.

use element::arguments::Word;
use element::prelude::*;
use element::{Descriptor, Device, DeviceRequest, IoError};

use super::names::FROM_DEVICE;
use crate::trace::link;
use capture::LinkType;

/// The timer of the next poll.
const POLL_TIMER: usize = 0;
/// Poll interval while packets arrive: waking a sleeping receiver for each packet would cost the sender more than the
/// packet itself.
const POLL_INTERVAL: Timestamp = Timestamp::from_parts(0, 20_000);

/// Receives packets from a network interface, or, in a box, from the switch port with that number.
///
/// The kernel also processes the packets unless SNIFFER is false; then an `iptables` rule drops those for this host
/// while the router runs. The packet type annotation states to whom a packet is addressed, and the timestamp when it
/// arrived. Packets are cut to SNAPLEN bytes. FORCE_IP locates the IP header; packets without one go to output 1 or
/// are dropped. PROMISC also receives frames for other hosts. OUTBOUND also receives frames that this host sends.
///
/// Linux joins segments of a TCP connection or datagrams of a UDP flow, and hands over up to 64 KB at once. They are received as the
/// packets that they were joined from, each with correct lengths and checksums, also in the tunnels of the host (VXLAN,
/// GENEVE, GRE, IP in IP). Checksums that a sender left to the network card are completed. Joined packets that can't be cut, because
/// they are in more than two tunnels, are dropped as `too_long`. The handler `kernel_drops` counts a joined packet once.
/// ```click
/// // eth0 and eth1 are joined by a cable.
/// InfiniteSource(LIMIT 3) -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> Queue -> ToDevice(eth0);
/// from :: FromDevice(eth1, PROMISC true) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// from.count = 3
/// c.count = 3
/// c.byte_count = 249
/// ```
/// ## Differences
/// - METHOD XDP receives through XDP sockets, one for each queue of the interface, for less processor time. Where that is
///   not possible, a message says why, and METHOD LINUX is used. In a box, METHOD has no effect. With XDP:
///   - The host no longer receives the packets, whatever SNIFFER says, and no other FromDevice can. OUTBOUND has none.
///   - The timestamp says when the packet was taken from the socket.
///   - The kernel lets the network card use the buffers (zero copy) if its driver can do that, and otherwise copies.
///     Zero copy is untested.
/// - METHOD LINUX, PCAP, NETMAP and DPDK are the same: memory shared with the kernel. The last two cause a warning.
/// - Click passes on what Linux joined as one packet, cut to SNAPLEN, and leaves open checksums as they are.
/// - The classes FromDPDKDevice, FromNetmapDevice, FromDPDKRing and PollDevice are this class. Each argument of theirs that
///   has no effect causes a warning. Unlike there, the kernel also processes the packets, unless SNIFFER is false or the
///   interface has no address.
/// - BPF_FILTER is refused; use an IPClassifier behind the element.
/// - With SNIFFER false, the element does not start if the rule cannot be set. As in Click, the rule covers only IPv4.
///   In a box SNIFFER has no effect.
/// - Every task run takes all packets that have arrived, whatever BURST says. HEADROOM is at least 28. The link type is
///   always Ethernet.
/// - While packets arrive, the element polls every 20 microseconds instead of being woken by each packet.
/// - Packets with a type other than PROTOCOL are dropped as `other_protocol`.
/// - After a hot swap, the new element takes over packets that have already arrived.
#[derive(Args)]
#[element(
    name = "FromDevice",
    other_names = "FROM_DEVICE",
    group = "devices",
    ports = "0/1-2",
    processing = "/h",
    phase = "receiver",
    shards = "sum",
    sums = "count, hw_count, kernel_drops",
    logs,
    see = "ToDevice, FromDump",
    drops = "no_ip_header, other_protocol, too_long",
    fates = "received"
)]
pub struct FromDeviceArgs {
    /// Name of the interface.
    #[arg(position)]
    devname: String,
    /// Receive frames for other hosts too.
    #[arg(position, default = "false")]
    promisc: bool,
    /// Maximum bytes of a packet to keep, 14 to 65535.
    #[arg(position, default = "2046")]
    snaplen: u32,
    /// Let the kernel process the packets too.
    #[arg(default = "true")]
    sniffer: bool,
    /// Pass only IP packets, with their IP header marked.
    #[arg(default = "false")]
    force_ip: bool,
    /// LINUX, XDP, PCAP, NETMAP or DPDK.
    method: Option<Word>,
    /// Older name of METHOD.
    capture: Option<Word>,
    /// BPF filter; must be empty.
    bpf_filter: Option<String>,
    /// EtherType to receive; 0 for all.
    #[arg(default = "0")]
    protocol: u16,
    /// Receive frames that this host sends too.
    #[arg(default = "false")]
    outbound: bool,
    /// Headroom of packets in bytes, at most 8190.
    #[arg(default = "28")]
    headroom: u32,
    /// Link type: ETHER.
    encap: Option<Word>,
    /// Maximum packets per task run.
    #[arg(default = "1")]
    burst: i32,
    /// Set the timestamp to the time of arrival.
    #[arg(default = "true")]
    timestamp: bool,
}

pub struct FromDevice {
    args: FromDeviceArgs,
    /// Whether METHOD is XDP.
    xdp: bool,
    device: Option<Box<dyn Device>>,
    count: u64,
    /// The last logged error, so that it is logged only once.
    last_error: Option<IoError>,
}

impl Element for FromDevice {
    type Args = FromDeviceArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("kernel_drops", "Packets lost before they could be read.", |from| {
            from.device.as_ref().map_or_else(|| "??".into(), |device| device.lost().to_string())
        }),
        Handler::read("hw_count", "Packets received, with those lost before they could be read.", |from| {
            let lost = from.device.as_ref().map_or(0, |device| device.lost());
            (from.count + lost).to_string()
        }),
        Handler::read("encap", "Link type.", |_| link::name(LinkType::ETHERNET)),
        Handler::read("count", "Packets received.", |from| from.count.to_string()),
        Handler::action("reset_counts", "Resets `count`.", |from, _, _| {
            from.count = 0;
            Ok(())
        }),
    ];

    fn new(args: FromDeviceArgs, setup: &mut Setup) -> Result<FromDevice, SetupError> {
        if !(14..=65_535).contains(&args.snaplen) {
            return Err(SetupError::new("SNAPLEN out of range"));
        }
        if args.headroom > 8190 {
            return Err(SetupError::new("HEADROOM out of range"));
        }
        if args.burst <= 0 {
            return Err(SetupError::new("BURST out of range"));
        }
        let method = args.method.as_ref().or(args.capture.as_ref());
        let xdp = super::check_method(method, setup)?;
        if args.encap.as_ref().is_some_and(|name| link::parse(&name.0) != Some(LinkType::ETHERNET)) {
            return Err(SetupError::new("bad encapsulation type"));
        }
        if args.bpf_filter.as_ref().is_some_and(|filter| !filter.is_empty()) {
            return Err(SetupError::argument(
                "BPF_FILTER",
                "not supported: leave it out, and put an IPClassifier behind",
            ));
        }
        Ok(FromDevice { args, xdp, device: None, count: 0, last_error: None })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let request = DeviceRequest::Interface {
            name: self.args.devname.clone(),
            promiscuous: self.args.promisc,
            outbound: self.args.outbound,
            snap: self.args.snaplen as usize,
            receive: true,
            exclusive: !self.args.sniffer,
            xdp: self.xdp,
        };
        let device = super::open(cx, &self.args.devname, &request)?;
        if let Some(descriptor) = device.descriptor() {
            cx.watch(descriptor, true, false);
        }
        self.device = Some(device);
        Ok(())
    }

    fn ready(&mut self, cx: &mut Context, descriptor: Descriptor) {
        let most = cx.batch_limit();
        let count = self.receive(cx, most);
        let Some(device) = &self.device else { return };
        if device.has_ended() {
            cx.watch(descriptor, false, false);
        } else if let Some(interval) = pause(&**device, count, most) {
            cx.watch(descriptor, false, false);
            cx.set_timer_after(POLL_TIMER, interval);
        }
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        let most = cx.batch_limit();
        let count = self.receive(cx, most);
        let Some(device) = &self.device else { return };
        if let Some(interval) = pause(&**device, count, most) {
            cx.set_timer_after(POLL_TIMER, interval);
        } else if let Some(descriptor) = device.descriptor() {
            cx.watch(descriptor, true, false);
        }
    }

    fn inherit(&mut self, old: &mut FromDevice, cx: &mut Context) {
        let same = |from: &FromDevice| {
            let args = &from.args;
            (args.devname.clone(), args.promisc, args.outbound, args.snaplen, args.sniffer, from.xdp)
        };
        if same(self) != same(old) || old.device.is_none() {
            return;
        }
        // The own socket is at the interface that took the place of a removed one.
        if old.device.as_ref().is_some_and(|device| device.is_gone()) {
            self.count = old.count;
            return;
        }
        // Packets already received are kept. Packets that both sockets have received since are taken once.
        if let Some(descriptor) = self.device.as_ref().and_then(|device| device.descriptor()) {
            cx.watch(descriptor, false, false);
        }
        self.device = old.device.take();
        if let Some(device) = &self.device {
            if let Some(descriptor) = device.descriptor() {
                cx.watch(descriptor, true, false);
            }
            if device.has_received() {
                cx.set_timer_after(POLL_TIMER, Timestamp::ZERO);
            }
        }
        (self.count, self.last_error) = (old.count, old.last_error.take());
    }

    fn cleanup(&mut self, _: &mut Context) {
        self.device = None;
    }
}

/// How long to wait until the device is read again without its descriptor, after `count` of at most `most` packets were received.
/// `None`: the descriptor reports what else comes.
fn pause(device: &dyn Device, count: usize, most: usize) -> Option<Timestamp> {
    if device.has_received() {
        Some(Timestamp::ZERO)
    } else {
        // More packets may arrive; they are fetched together.
        ((1..most).contains(&count) && device.coalesces()).then_some(POLL_INTERVAL)
    }
}

impl FromDevice {
    /// Emits at most `most` received packets. Returns their number.
    fn receive(&mut self, cx: &mut Context, most: usize) -> usize {
        let Some(device) = &mut self.device else { return 0 };
        let mut batch = cx.batch();
        let result = device.receive(cx.pool(), most, &mut batch);
        super::report(cx, &self.args.devname, result, &mut self.last_error);
        let (count, long) = (batch.len(), device.take_unreceived());
        cx.count(Fate::Received, count + long);
        cx.count_drops(Reason::TOO_LONG, long as u64);
        if self.args.protocol == 0 && self.args.timestamp && !self.args.force_ip {
            self.count += count as u64;
            cx.emit(0, batch);
            return count;
        }
        let protocol = self.args.protocol.to_be_bytes();
        for mut packet in batch.drain() {
            if self.args.protocol != 0 && packet.data().get(12..14) != Some(&protocol) {
                cx.drop(packet, Reason::OTHER_PROTOCOL);
                continue;
            }
            self.count += 1;
            if !self.args.timestamp {
                packet.set_timestamp(Timestamp::ZERO);
            }
            if !self.args.force_ip {
                cx.send(0, packet);
            } else if let Some((offset, length)) = link::ip_header(LinkType::ETHERNET, packet.data()) {
                packet.set_network(isize::try_from(offset).unwrap_or(0), length);
                cx.send(0, packet);
            } else if cx.outputs() > 1 {
                cx.send(1, packet);
            } else {
                cx.drop(packet, Reason::NO_IP_HEADER);
            }
        }
        cx.recycle(batch);
        count
    }
}
