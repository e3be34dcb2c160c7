//! `StoreIPAddress`: writes an IPv4 address into packets.

use core::net::Ipv4Addr;

use element::Message;
use element::arguments::{Raw, Word};
use element::prelude::*;
use packet::checksum::{Sum, update};
use packet::{Ip4ViewMut, TcpViewMut, UdpViewMut, protocol};

/// Writes an IPv4 address into each packet.
///
/// OFFSET is a byte offset, or `src` or `dst` for a field of the marked IPv4 header. With one argument, the address is
/// the destination annotation. A write to a header field updates the checksums of IPv4, TCP and UDP; other writes
/// change no checksum. A packet that is too short goes to output 1, or is dropped as `too_short`.
///
/// ## Differences
///
/// An annotation of 0.0.0.0 leaves the packet unchanged, whether or not its header is marked.
/// ```click
/// InfiniteSource(LENGTH 8, LIMIT 2, STOP true)
///     -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000)
///     -> StoreIPAddress(10.0.0.9, src)
///     -> ip :: CheckIPHeader(BADSRC 10.0.0.1) -> udp :: CheckUDPHeader
///     -> StoreIPAddress(10.0.0.9, 33) -> end :: Counter -> Discard;
/// ```
/// ```expect
/// ip.drops = 0
/// udp.drops = 0
/// end.count = 0
/// StoreIPAddress@6.losses = too_short 2
/// ```
#[derive(Args)]
#[element(
    name = "StoreIPAddress",
    group = "ip",
    ports = "1/1-2",
    processing = "a/ah",
    order_insensitive,
    shards = "independent",
    flows = "changes",
    see = "SetIPChecksum, SetTCPChecksum, SetUDPChecksum, IPAddrPairRewriter, IPAddrRewriter",
    drops = "too_short",
    fates = "changed"
)]
pub struct StoreIPAddressArgs {
    /// The address; or, as the only argument, OFFSET.
    #[arg(position)]
    addr: Option<Raw>,
    /// Where to write: a byte offset, `src` or `dst`.
    #[arg(position)]
    offset: Option<Raw>,
}

/// Where to write an address.
#[derive(Clone, Copy)]
enum Target {
    Offset(usize),
    Source,
    Destination,
}

/// Parses OFFSET. An argument of several words is a different error from an invalid word.
fn parse_target(text: &str, setup: &Setup) -> Result<Target, SetupError> {
    let Ok(Word(word)) = Word::from_argument(text, setup) else {
        return Err(SetupError::argument("OFFSET", "parse error"));
    };
    match i32::from_argument(&word, setup).ok().and_then(|offset| usize::try_from(offset).ok()) {
        _ if word.eq_ignore_ascii_case("src") => Ok(Target::Source),
        _ if word.eq_ignore_ascii_case("dst") => Ok(Target::Destination),
        Some(offset) => Ok(Target::Offset(offset)),
        None => Err(SetupError::new("type mismatch: OFFSET requires integer")),
    }
}

pub struct StoreIPAddress {
    address: Option<Ipv4Addr>,
    target: Target,
}

/// Writes an address into the marked header and updates the checksums. Fails if there is no header.
#[inline(always)]
fn store(packet: &mut Packet, address: Ipv4Addr, is_source: bool) -> bool {
    let Some(mut header) = Ip4ViewMut::new(packet.network_mut()) else { return false };
    let view = header.view();
    if view.header_length() < 20 {
        return false;
    }
    let (protocol, is_first) = (view.protocol(), view.is_first_fragment());
    let old = if is_source { view.source() } else { view.destination() };
    let (old, new) =
        (Sum::ZERO.words32(&[old.octets()]).fold(), Sum::ZERO.words32(&[address.octets()]).fold());
    let checksum = update(view.checksum(), old, new);
    if is_source {
        header.set_source(address);
    } else {
        header.set_destination(address);
    }
    header.set_checksum(checksum);
    if !is_first {
        return true;
    }
    if protocol == protocol::TCP
        && let Some(mut tcp) = TcpViewMut::new(packet.transport_mut())
    {
        tcp.set_checksum(update(tcp.view().checksum(), old, new));
    } else if protocol == protocol::UDP
        && let Some(mut udp) = UdpViewMut::new(packet.transport_mut())
        && udp.view().checksum() != 0
    {
        udp.set_checksum(update(udp.view().checksum(), old, new));
    }
    true
}

impl Filter for StoreIPAddress {
    type Args = StoreIPAddressArgs;

    fn new(args: StoreIPAddressArgs, setup: &mut Setup) -> Result<StoreIPAddress, SetupError> {
        let (address, Raw(offset)) = match (args.addr, args.offset) {
            (None, None) => return Err(Message::Missing { keyword: "OFFSET" }.into()),
            (None, Some(only)) | (Some(only), None) => (None, only),
            (Some(Raw(address)), Some(offset)) => match Ipv4Addr::from_argument(&address, setup) {
                Ok(address) => (Some(address), offset),
                Err(_) => return Err(SetupError::argument("ADDR", "parse error")),
            },
        };
        Ok(StoreIPAddress { address, target: parse_target(&offset, setup)? })
    }

    #[inline(always)]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let address = self.address.unwrap_or(packet.destination_ip());
        let is_stored = match self.target {
            Target::Offset(_) if self.address.is_none() && address.is_unspecified() => true,
            Target::Offset(offset) if offset + 4 <= packet.len() => {
                packet
                    .data_mut()
                    .iter_mut()
                    .skip(offset)
                    .zip(address.octets())
                    .for_each(|(to, from)| *to = from);
                true
            }
            Target::Offset(_) => false,
            Target::Source => store(&mut packet, address, true),
            Target::Destination => store(&mut packet, address, false),
        };
        if is_stored { Verdict::Pass(packet) } else { Verdict::Divert(packet, Reason::TOO_SHORT) }
    }
}
