//! `AddressTranslator`: translates addresses and ports of IPv6 packets.

use core::net::Ipv6Addr;

use element::FlowKeeping;
use element::arguments::Raw;
use element::prelude::*;
use element::text::words;
use flow::Seed;
use packet::checksum::Sum;
use packet::protocol;

use super::ip6_bindings::{Bindings, Endpoint, Ip6Flow};
use super::ip6_headers::{End, Ip6Headers};

/// Translates addresses and ports of IPv6 packets with TCP, UDP and ICMPv6.
///
/// Packets begin with their IPv6 header. Outward packets enter input 0: their source, an inner address, is replaced by a mapped
/// one, and they leave by output 0. Inward packets enter input 1: their destination, a mapped address, is replaced by the
/// inner one, and they leave by output 1. Checksums are adapted, the packet that an ICMPv6 error quotes is translated with
/// the error, and the destination annotation is set.
///
/// The arguments, in order:
/// - the number N of static mappings, and if it is not 0, whether they have ports, and N mappings: `INNER MAPPED`, or
///   `INNER PORT MAPPED PORT`;
/// - whether there are dynamic mappings, and if so:
///   - whether they have ports;
///   - which packets make them: `0` outward, `1` inward ones (then the inner address is chosen);
///   - without ports the addresses to choose from, one for each new address; with ports `ADDRESS FIRST LAST`, one port
///     for each new flow.
///
/// A packet without a mapping is dropped as `no_mapping`, one for which none is left as `no_free_mapping`, one of another
/// protocol as `not_rewritable`, and a fragment that has no ports where they are needed as `is_fragment`. The port of an
/// ICMPv6 echo is its identifier.
/// ```click
/// at :: AddressTranslator(0, 1, 1, 0, 2001:db8::9 6000 6010);
/// InfiniteSource(DATA \<60000000000c1140fd000000000000000000000000000001fd00000000000000000000000000000203e807d0000cfd7b61626364>, LIMIT 3)
///     -> at -> out :: Classifier(8/20010db8000000000000000000000009 40/1770, -);
/// InfiniteSource(DATA \<60000000000c1140fd00000000000000000000000000000220010db800000000000000000000000907d01770000cc4f161626364>, LIMIT 2, STOP true)
///     -> [1]at[1] -> in :: Classifier(24/fd000000000000000000000000000001 42/03e8, -);
/// out[0] -> right :: Counter -> Discard;  out[1] -> wrong :: Counter -> Discard;
/// in[0] -> back :: Counter -> Discard;  in[1] -> lost :: Counter -> Discard;
/// ```
/// ```expect
/// right.count = 3
/// wrong.count = 0
/// back.count = 2
/// lost.count = 0
/// at.mappings = 1
/// ```
/// ## Differences
/// - In Click, a dynamic mapping stays for ever. Here one that was not used for five minutes is replaced when no other
///   address or port is left.
/// - Static mappings work in both directions, whichever packets make dynamic ones. Both kinds can be used together.
/// - Click gives ICMPv6 packets an accidental mapping where ports are mapped, and leaves the packets that errors quote as they
///   are. It also takes fragments and extension headers for transport headers.
/// - Each argument is checked; Click accepts malformed mappings.
/// - Handlers do not exist in Click.
#[derive(Args)]
#[element(
    name = "AddressTranslator",
    group = "rewriting",
    ports = "2/2",
    processing = "h/h",
    see = "ProtocolTranslator64, ProtocolTranslator46, IPRewriter",
    drops = "no_ip_header, no_mapping, no_free_mapping, not_rewritable, is_fragment",
    fates = "changed"
)]
pub(crate) struct AddressTranslatorArgs {
    /// Static mappings, then dynamic ones.
    #[arg(rest)]
    mappings: Vec<Raw>,
}

/// How long a mapping is kept after its last packet (RFC 4787, section 4.3).
const TIMEOUT: Timestamp = Timestamp::from_parts(300, 0);

pub(crate) struct AddressTranslator {
    arguments: Vec<Raw>,
    /// Inner and mapped ends.
    fixed: Vec<[Endpoint; 2]>,
    /// Whether static mappings have ports.
    has_fixed_ports: bool,
    dynamic: Option<Bindings>,
    /// Whether inward packets make dynamic mappings.
    inward: bool,
}

impl Element for AddressTranslator {
    type Args = AddressTranslatorArgs;
    const HANDLERS: &'static [Handler<Self>] = &[Handler::read("mappings", "Dynamic mappings.", |element| {
        element.dynamic.as_ref().map_or(0, Bindings::len).to_string()
    })];

    fn new(args: AddressTranslatorArgs, setup: &mut Setup) -> Result<AddressTranslator, SetupError> {
        let mut read = Reader { arguments: &args.mappings, next: 0, setup };
        let count = read.one::<u16>("the number of static mappings")?;
        let has_fixed_ports = count > 0 && read.one("whether static mappings have ports, true or false")?;
        let mut fixed = Vec::new();
        for _ in 0..count {
            fixed.push(read.mapping(has_fixed_ports)?);
        }
        let (mut dynamic, mut inward) = (None, false);
        if read.one("whether there are dynamic mappings, true or false")? {
            let has_ports = read.one("whether dynamic mappings have ports, true or false")?;
            inward = read.one("which packets make dynamic mappings, 0 or 1")?;
            dynamic = Some(read.pool(has_ports)?);
        }
        if let Some(argument) = args.mappings.get(read.next) {
            let text = format!("argument {} is one too many", read.next + 1);
            return Err(SetupError::in_argument(&argument.0, text, "there are too many arguments"));
        }
        Ok(AddressTranslator { arguments: args.mappings, fixed, has_fixed_ports, dynamic, inward })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let seed = Seed::new(cx.hash_seed(), cx.hash_seed());
        if let Some(dynamic) = &mut self.dynamic {
            dynamic.set_seed(seed);
        }
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, port: usize, mut batch: Batch) {
        let now = cx.steady();
        for mut packet in batch.drain() {
            match self.translate(&mut packet, port == 0, now) {
                Ok(destination) => {
                    packet.set_destination_ip6(destination);
                    cx.send(port, packet);
                }
                Err(reason) => cx.drop(packet, reason),
            }
        }
        cx.recycle(batch);
    }

    fn inherit(&mut self, old: &mut AddressTranslator, _: &mut Context) {
        if self
            .arguments
            .iter()
            .map(|argument| &argument.0)
            .eq(old.arguments.iter().map(|argument| &argument.0))
        {
            self.dynamic = old.dynamic.take();
        }
    }

    fn flow_states(&mut self) -> FlowKeeping<'_> {
        // A mapped address belongs to a host, of which any number of flows depend on one; another instance may have mapped a port
        // already.
        match &self.dynamic {
            Some(dynamic) if dynamic.len() > 0 => FlowKeeping::Lost,
            _ => FlowKeeping::Nothing,
        }
    }
}

impl AddressTranslator {
    /// Translates a packet. Returns its destination.
    fn translate(&mut self, packet: &mut Packet, outward: bool, now: Timestamp) -> Result<Ipv6Addr, Reason> {
        let headers = Ip6Headers::new(packet.data())?;
        let end = if outward { End::Source } else { End::Destination };
        let mut changes = [Sum::ZERO; 2];
        let to = if headers.is_error {
            // It quotes a packet of the other direction, whose other end is the one to translate.
            let start = headers.transport + 8;
            let quoted = Ip6Headers::new(packet.data().get(start..).unwrap_or_default())?;
            let (quoted_end, flow) = match end {
                End::Source => (End::Destination, flow(&quoted, quoted.destination, quoted.source)),
                End::Destination => (End::Source, flow(&quoted, quoted.source, quoted.destination)),
            };
            let to = self.find(flow, quoted.has_ports, outward, now, false)?;
            let bytes = packet.data_mut().get_mut(start..).unwrap_or_default();
            quoted.write(bytes, quoted_end, to, &mut changes);
            to
        } else {
            let flow = match end {
                End::Source => flow(&headers, headers.source, headers.destination),
                End::Destination => flow(&headers, headers.destination, headers.source),
            };
            self.find(flow, headers.has_ports, outward, now, true)?
        };
        headers.write(packet.data_mut(), end, to, &mut changes);
        Ok(if outward { headers.destination.address } else { to.address })
    }

    /// What takes the place of a flow's own end. `begins`: whether the flow may get a new mapping.
    fn find(
        &mut self,
        flow: Ip6Flow,
        has_ports: bool,
        outward: bool,
        now: Timestamp,
        begins: bool,
    ) -> Result<Endpoint, Reason> {
        let port = |to: Endpoint| if self.has_fixed_ports { to.port } else { flow.own.port };
        let found = self.fixed.iter().find_map(|[inner, mapped]| {
            let (from, to) = if outward { (inner, mapped) } else { (mapped, inner) };
            let is_it = from.address == flow.own.address
                && (!self.has_fixed_ports || has_ports && from.port == flow.own.port);
            is_it.then(|| Endpoint { address: to.address, port: port(*to) })
        });
        if let Some(found) = found {
            return Ok(found);
        }
        let dynamic = self.dynamic.as_mut().ok_or(Reason::NO_MAPPING)?;
        if dynamic.has_ports() && !has_ports {
            return Err(Reason::IS_FRAGMENT);
        }
        if outward == self.inward { dynamic.bound(flow, now) } else { dynamic.assign(flow, now, begins) }
    }
}

/// The flow of a packet. An echo has one identifier, which belongs to its own end.
fn flow(headers: &Ip6Headers, own: Endpoint, other: Endpoint) -> Ip6Flow {
    let port = if headers.protocol == protocol::ICMP6 { 0 } else { other.port };
    Ip6Flow { protocol: headers.protocol, own, other: Endpoint { port, ..other } }
}

/// Reads the arguments in order.
struct Reader<'a, 'b> {
    arguments: &'a [Raw],
    next: usize,
    setup: &'a Setup<'b>,
}

impl Reader<'_, '_> {
    /// The words of the next argument, and the error if they are not what is expected.
    #[inline(never)]
    fn words(&mut self, expected: &str) -> (Vec<String>, SetupError) {
        let number = self.next + 1;
        self.next = number;
        let problem = format!("argument {number} should be {expected}");
        match self.arguments.get(number - 1) {
            Some(argument) => {
                let error = SetupError::in_argument(&argument.0, problem, format!("expected {expected}"));
                (words(&argument.0), error)
            }
            None => (Vec::new(), SetupError::new(problem)),
        }
    }

    #[inline(never)]
    fn one<T: FromArgument>(&mut self, expected: &str) -> Result<T, SetupError> {
        let (words, error) = self.words(expected);
        match &words[..] {
            [word] => T::from_argument(word, self.setup).map_err(|_| error),
            _ => Err(error),
        }
    }

    #[inline(never)]
    fn mapping(&mut self, has_ports: bool) -> Result<[Endpoint; 2], SetupError> {
        let (words, error) = self.words(if has_ports { "INNER PORT MAPPED PORT" } else { "INNER MAPPED" });
        let setup = self.setup;
        let end = |address: &str, port: &str| {
            let address = Ipv6Addr::from_argument(address, setup).ok()?;
            Some(Endpoint { address, port: u16::from_argument(port, setup).ok()? })
        };
        let ends = match &words[..] {
            [inner, mapped] if !has_ports => end(inner, "0").zip(end(mapped, "0")),
            [inner, port, mapped, to] if has_ports => end(inner, port).zip(end(mapped, to)),
            _ => None,
        };
        ends.map(|(inner, mapped)| [inner, mapped]).ok_or(error)
    }

    /// What dynamic mappings choose from.
    fn pool(&mut self, has_ports: bool) -> Result<Bindings, SetupError> {
        if has_ports {
            let (words, error) = self.words("ADDRESS FIRST LAST");
            let setup = self.setup;
            let found = match &words[..] {
                [address, first, last] => Ipv6Addr::from_argument(address, setup)
                    .ok()
                    .zip(u16::from_argument(first, setup).ok().zip(u16::from_argument(last, setup).ok())),
                _ => None,
            };
            let (address, (first, last)) = found.filter(|(_, (first, last))| first <= last).ok_or(error)?;
            return Ok(Bindings::new(vec![address], Some((first, usize::from(last - first) + 1)), TIMEOUT));
        }
        let mut addresses = Vec::new();
        while addresses.is_empty() || self.next < self.arguments.len() {
            addresses.push(self.one("an IPv6 address")?);
        }
        Ok(Bindings::new(addresses, None, TIMEOUT))
    }
}
