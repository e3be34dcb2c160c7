//! `McastSocket`: sends and receives packets over multicast UDP.

use core::net::Ipv4Addr;

use element::arguments::UdpPort;
use element::prelude::*;
use element::{Descriptor, SocketAddress, SocketRequest};

use super::socket::{HostArguments, PacketArguments, Socket};

/// Sends packets to a UDP multicast group, and receives what others send there.
///
/// SOURCEIP selects the interface by its address. The element then sends from that address and SOURCEPORT, and does not
/// receive its own packets. Without SOURCEIP, the host's routes select the interface, and own packets come back unless
/// LOOP is false.
/// ```click
/// // Two members of a group; the first does not receive its own packets.
/// InfiniteSource(DATA "hello", LIMIT 3) -> Queue -> McastSocket(239.0.0.1, 5000, 10.0.0.1)
///     -> echo :: Counter -> Discard;
/// McastSocket(239.0.0.1, 5000) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 3
/// c.byte_count = 15
/// echo.count = 0
/// ```
/// ## Differences
/// Up to 1024 pushed packets wait for room, and more are dropped; Click blocks. A datagram that cannot be sent is lost
/// without affecting others.
#[derive(Args)]
#[element(
    name = "McastSocket",
    group = "devices",
    ports = "0-1/0-1",
    processing = "a/h",
    flow = "x/y",
    task,
    see = "Socket, RawSocket",
    drops = "not_sent, not_connected, full",
    fates = "received, delivered, waiting"
)]
pub struct McastSocketArgs {
    /// Address of the group.
    #[arg(position)]
    mcastip: Ipv4Addr,
    /// UDP port of the group.
    #[arg(position)]
    mcastport: UdpPort,
    /// Own address, which selects the interface.
    #[arg(position)]
    sourceip: Option<Ipv4Addr>,
    /// Own port; chosen by the system by default.
    #[arg(position)]
    sourceport: Option<UdpPort>,
    #[arg(flatten)]
    packets: PacketArguments,
    /// Deliver sent packets on this host too, including to this element if SOURCEIP is not given.
    #[arg(default = "true")]
    r#loop: bool,
}

pub struct McastSocket(Socket);

impl Element for McastSocket {
    type Args = McastSocketArgs;

    fn new(args: McastSocketArgs, _: &mut Setup) -> Result<McastSocket, SetupError> {
        let source = args.sourceip.filter(|address| !address.is_unspecified());
        let port = args.sourceport.map_or(0, |port| port.0);
        let request = SocketRequest {
            address: SocketAddress::Multicast(args.mcastip, args.mcastport.0),
            local: source.map(|address| SocketAddress::Udp(address, port)),
            client: true,
            send_buffer: args.packets.sndbuf,
            receive_buffer: args.packets.rcvbuf,
            no_delay: true,
            multicast_loop: args.r#loop,
        };
        Socket::unopened(request, args.packets, HostArguments::default()).map(McastSocket)
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.0.initialize(cx)
    }

    fn push(&mut self, cx: &mut Context, port: usize, batch: Batch) {
        self.0.push(cx, port, batch);
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        self.0.task(cx)
    }

    fn ready(&mut self, cx: &mut Context, descriptor: Descriptor) {
        self.0.ready(cx, descriptor);
    }

    fn waiting(&self, waiting: &mut Waiting) {
        self.0.waiting(waiting);
    }

    fn cleanup(&mut self, cx: &mut Context) {
        self.0.cleanup(cx);
    }
}
