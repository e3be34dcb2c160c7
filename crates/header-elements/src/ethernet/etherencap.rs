//! `EtherEncap`: prepends an Ethernet header.

use element::prelude::*;
use packet::{EtherType, MacAddr};

use super::header::{LENGTH, ethernet};

/// Adds an Ethernet header with a fixed type and fixed addresses.
///
/// A packet that cannot grow is dropped as `too_long`. For IP packets to several neighbours, use `ARPQuerier`.
/// ```click
/// InfiniteSource(LENGTH 46, LIMIT 2, STOP true) -> e :: EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2)
///     -> c :: Classifier(0/020202020202 6/010101010101 12/0800, -);
/// c[0] -> right :: Counter -> Discard;
/// c[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// e.src = 01-01-01-01-01-01
/// e.dst = 02-02-02-02-02-02
/// e.ethertype = 2048
/// right.count = 2
/// right.byte_count = 120
/// wrong.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "EtherEncap",
    group = "ethernet",
    order_insensitive,
    shards = "independent",
    see = "EtherVLANEncap, ARPQuerier, EnsureEther, StoreEtherAddress, EtherRewrite",
    drops = "too_long",
    fates = "changed"
)]
pub struct EtherEncapArgs {
    /// EtherType of the header.
    #[arg(position)]
    ethertype: u16,
    /// Source address.
    #[arg(position)]
    src: MacAddr,
    /// Destination address.
    #[arg(position)]
    dst: MacAddr,
}

pub struct EtherEncap {
    args: EtherEncapArgs,
    header: [u8; LENGTH],
}

impl Filter for EtherEncap {
    type Args = EtherEncapArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("src", "Source address.", |encap| encap.args.src.to_string()),
        Handler::argument("src", (Some(1), "SRC"), "Sets the source address.", |encap, cx, value| {
            encap.args.src = cx.argument(value)?;
            encap.write_header()
        }),
        Handler::read("dst", "Destination address.", |encap| encap.args.dst.to_string()),
        Handler::argument("dst", (Some(2), "DST"), "Sets the destination address.", |encap, cx, value| {
            encap.args.dst = cx.argument(value)?;
            encap.write_header()
        }),
        Handler::read("ethertype", "The type.", |encap| encap.args.ethertype.to_string()),
        Handler::argument("ethertype", (Some(0), "ETHERTYPE"), "Sets the type.", |encap, cx, value| {
            encap.args.ethertype = cx.argument(value)?;
            encap.write_header()
        }),
        Handler::read("etht", "Older name of `ethertype`.", |encap| encap.args.ethertype.to_string()),
        Handler::argument(
            "etht",
            (Some(0), "ETHERTYPE"),
            "Older name of `ethertype`.",
            |encap, cx, value| {
                encap.args.ethertype = cx.argument(value)?;
                encap.write_header()
            },
        ),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: EtherEncapArgs, _: &mut Setup) -> Result<EtherEncap, SetupError> {
        let header = ethernet(args.dst, args.src, EtherType(args.ethertype));
        Ok(EtherEncap { args, header })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        packet.prepend_link_header(&self.header).is_some()
    }

    #[inline(always)]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        match packet.prepend_link_header(&self.header) {
            Some(()) => Verdict::Pass(packet),
            None => Verdict::Drop(packet, Reason::TOO_LONG),
        }
    }
}

impl EtherEncap {
    fn write_header(&mut self) -> Result<(), HandlerError> {
        self.header = ethernet(self.args.dst, self.args.src, EtherType(self.args.ethertype));
        Ok(())
    }
}
