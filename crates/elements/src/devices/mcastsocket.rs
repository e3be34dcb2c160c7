//! `McastSocket`: packets over multicast UDP.

use core::net::Ipv4Addr;

use element::arguments::UdpPort;
use element::prelude::*;
use element::{Descriptor, SocketAddress, SocketRequest};

use super::socket::{HostArguments, PacketArguments, Socket};

/// Sends the packets that go in to a multicast group, and emits what others send there.
///
/// With SOURCEIP, perhaps with SOURCEPORT, the group is that of the interface with this address, packets come from
/// there, and one's own do not come back; without it the host's routes decide, and they do unless LOOP is false.
/// ```click
/// // InfiniteSource(LIMIT 9) -> Queue -> McastSocket(239.0.0.1, 5000, 10.0.0.1) -> Discard;
/// InfiniteSource(LIMIT 1, STOP true) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 1
/// ```
/// ## Differences
/// Of packets that are pushed 1024 wait for room, and more are dropped; Click stands still. A datagram that can't be
/// sent is lost alone.
#[derive(Args)]
#[element(
    name = "McastSocket",
    group = "devices",
    ports = "0-1/0-1",
    processing = "a/h",
    flow = "x/y",
    task,
    see = "Socket, RawSocket"
)]
pub struct McastSocketArgs {
    /// The address of the group.
    #[arg(position)]
    mcastip: Ipv4Addr,
    /// The UDP port of the group.
    #[arg(position)]
    mcastport: UdpPort,
    /// One's own address, which is that of the interface to use.
    #[arg(position)]
    sourceip: Option<Ipv4Addr>,
    /// One's own port; the system chooses if it is absent.
    #[arg(position)]
    sourceport: Option<UdpPort>,
    #[arg(flatten)]
    packets: PacketArguments,
    /// Whether others on this host, and one without SOURCEIP itself, receive what is sent.
    #[arg(default = "true")]
    r#loop: bool,
}

/// The element.
pub struct McastSocket(Socket);

impl Element for McastSocket {
    type Args = McastSocketArgs;

    fn new(args: McastSocketArgs, _: &mut Setup) -> Result<McastSocket, SetupError> {
        let source = args.sourceip.filter(|address| !address.is_unspecified());
        let port = args.sourceport.map_or(0, |port| port.0);
        let request = SocketRequest {
            place: SocketAddress::Group(args.mcastip, args.mcastport.0),
            local: source.map(|address| SocketAddress::Udp(address, port)),
            client: true,
            send_buffer: args.packets.sndbuf,
            receive_buffer: args.packets.rcvbuf,
            no_delay: true,
            echo: args.r#loop,
        };
        Socket::over(request, args.packets, HostArguments::default()).map(McastSocket)
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

    fn cleanup(&mut self, cx: &mut Context) {
        self.0.cleanup(cx);
    }
}
