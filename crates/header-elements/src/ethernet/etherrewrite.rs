//! `EtherRewrite`: replaces the Ethernet addresses of frames.

use element::prelude::*;
use packet::MacAddr;

use super::header::addresses;

/// Replaces the source and destination address of each Ethernet frame, and keeps its type.
///
/// The frame starts at the link header annotation, or at the start of the packet if that is not set. Use it on links
/// with a single possible neighbour, such as behind a transparent firewall.
///
/// ## Differences
/// A packet too short for both addresses is dropped as `too_short`. In Click the link header annotation must be set,
/// and a write to `src` changes the destination until `dst` is written.
/// ```click
/// InfiniteSource(DATA \<0000000000000000 00000000 0800>, LIMIT 2, STOP true)
///     -> e :: EtherRewrite(1:1:1:1:1:1, 2:2:2:2:2:2)
///     -> c :: Classifier(0/020202020202 6/010101010101 12/0800, -);
/// c[0] -> right :: Counter -> Discard;
/// c[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// e.src = 01-01-01-01-01-01
/// right.count = 2
/// wrong.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "EtherRewrite",
    group = "ethernet",
    order_insensitive,
    shards = "independent",
    see = "EtherEncap, ARPQuerier, EnsureEther, StoreEtherAddress, EtherMirror",
    drops = "too_short",
    fates = "changed"
)]
pub struct EtherRewriteArgs {
    /// New source address.
    #[arg(position)]
    src: MacAddr,
    /// New destination address.
    #[arg(position)]
    dst: MacAddr,
}

pub struct EtherRewrite {
    /// The addresses in frame order: destination first.
    addresses: [u8; 12],
}

impl Filter for EtherRewrite {
    type Args = EtherRewriteArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("src", "New source address.", |rewrite| rewrite.split().1.to_string()),
        Handler::argument("src", (Some(0), "SRC"), "Sets the source address.", |rewrite, cx, value| {
            rewrite.addresses = join(rewrite.split().0, cx.argument(value)?);
            Ok(())
        }),
        Handler::read("dst", "New destination address.", |rewrite| rewrite.split().0.to_string()),
        Handler::argument("dst", (Some(1), "DST"), "Sets the destination address.", |rewrite, cx, value| {
            rewrite.addresses = join(cx.argument(value)?, rewrite.split().1);
            Ok(())
        }),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: EtherRewriteArgs, _: &mut Setup) -> Result<EtherRewrite, SetupError> {
        Ok(EtherRewrite { addresses: join(args.dst, args.src) })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        let frame = match packet.mac_offset() {
            Some(_) => packet.mac_mut(),
            None => packet.data_mut(),
        };
        let addresses = frame.first_chunk_mut::<12>();
        addresses.map(|addresses| *addresses = self.addresses).is_some()
    }

    #[inline(always)]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        if self.pass(&mut packet) { Verdict::Pass(packet) } else { Verdict::Drop(packet, Reason::TOO_SHORT) }
    }
}

impl EtherRewrite {
    /// Destination and source.
    fn split(&self) -> (MacAddr, MacAddr) {
        addresses(&self.addresses).unwrap_or_default()
    }
}

/// Both addresses in frame order.
fn join(MacAddr([a, b, c, d, e, f]): MacAddr, MacAddr([g, h, i, j, k, l]): MacAddr) -> [u8; 12] {
    [a, b, c, d, e, f, g, h, i, j, k, l]
}
