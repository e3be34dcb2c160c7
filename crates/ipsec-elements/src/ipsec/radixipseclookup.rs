//! `RadixIPsecLookup`: routes by longest prefix, to IPsec tunnels too.

use core::any::Any;
use core::net::Ipv4Addr;

use element::arguments::Raw;
use element::prelude::*;
use element::{Message, text};
use packet::{Ip4View, annotation, protocol};

use super::association::{Databases, Shared};
use super::routes::{Refusal, Routes, TunnelRoute};

/// Longest-prefix routing by destination annotation, with IPsec tunnels between gateways (RFC 4301, tunnel mode).
///
/// A route without keys is one of [RadixIPLookup](RadixIPLookup.md). The outputs 0, 1 and 2 have a meaning:
///
/// - 0: packets for this router. Those of ESP (protocol 50) whose association exists go to output 0, to be authenticated and
///   decrypted. All others go to output 2.
/// - 1: packets that enter a tunnel. Each such route has a security association, whose number is set in the annotation
///   `IPSEC_SPI`, and GATEWAY is the other end of the tunnel.
/// - 2: other packets for this router.
///
/// A security association is `SPI KEY KEY REPLAY OOSIZE`:
///
/// - SPI is its number, from 1. Use one above 255 (RFC 4303, section 2.1).
/// - The first KEY encrypts: 16 bytes. The second authenticates: 20 bytes, as RFC 2404 has it, or 16. Both are hexadecimal, or `\<...>`.
/// - REPLAY is the first sequence number that is sent, and the lowest that is taken: 1, unless both ends agree on another. A
///   gateway that starts again begins with it, so the other end drops its packets as `replayed`, until it starts again too, or the
///   tunnel gets new keys. This is why RFC 4303 wants keys that a protocol negotiates; here they are given by hand.
/// - OOSIZE is the size of the window that keeps replayed packets out, at most 255. Packets further behind the newest one are dropped.
///   RFC 4303 recommends 64, and at least 32.
///
/// A second association in the same form is for packets from the tunnel; the first is then only for packets to it. With one, both
/// directions share it, as in Click. Several routes may share an association, if they state it with the same keys. The elements
/// `IPsecESPEncap`, `IPsecAES`, `IPsecAuthHMACSHA1` and `IPsecESPUnencap` use the associations of all RadixIPsecLookups.
///
/// Sequence numbers and windows outlast a hot swap, if keys and the name of the element stay. They also go on when a route is removed
/// and added again. Several shards cannot share them: run the configuration in one.
///
/// Packets without a route are dropped as `no_route`. Those of ESP for this router are dropped as `unknown_spi` if no route has
/// their association, as `is_fragment` if they are fragments, and as `too_short` without an SPI.
///
/// ## Differences
///
/// Click takes only keys that are written as 16 characters or `\<...>`, and refuses the hexadecimal ones of its example. There, each
/// route has sequence numbers of its own, also if the SPI is the same, and packets for the router that are not of ESP are dropped,
/// unless an association has the number that they have in the place of an SPI. The handler `table` does not show keys. A second
/// association and the handlers `associations` and `config` are new.
/// ```click
/// InfiniteSource(LENGTH 12, LIMIT 3, STOP true)
///     -> UDPIPEncap(10.1.0.5, 1000, 10.2.0.6, 2000)
///     -> rt :: RadixIPsecLookup(192.0.2.1 0, 192.0.2.2 3,
///         10.2/16 192.0.2.2 1
///             1000 00112233445566778899aabbccddeeff 00112233445566778899aabbccddeeff00112233 1 64
///             1001 ffeeddccbbaa99887766554433221100 33221100ffeeddccbbaa99887766554433221100 1 64);
/// rt[0] -> Discard;
/// rt[1] -> IPsecESPEncap -> IPsecAES(1) -> IPsecAuthHMACSHA1(0) -> IPsecEncap(50) -> rt;
/// rt[2] -> Discard;
/// rt[3] -> tunnel :: Counter -> Discard;
/// ```
/// ```expect
/// tunnel.count = 3
/// tunnel.byte_count = 312
/// ```
#[derive(Args)]
#[element(
    name = "RadixIPsecLookup",
    group = "ipsec",
    ports = "1/-",
    processing = "h/h",
    see = "RadixIPLookup, IPsecESPEncap, IPsecESPUnencap, IPsecAES, IPsecAuthHMACSHA1, IPsecEncap",
    drops = "no_route, unknown_spi, is_fragment, too_short"
)]
pub struct RadixIPsecLookupArgs {
    /// Routes: `ADDR/MASK [GATEWAY] OUTPUT [SPI KEY KEY REPLAY OOSIZE [SPI KEY KEY REPLAY OOSIZE]]`.
    #[arg(rest)]
    routes: Vec<Raw>,
}

pub struct RadixIPsecLookup {
    routes: Routes,
    associations: Shared,
    /// Whether handlers changed the routes, so that they are no longer those of the arguments.
    is_edited: bool,
}

/// The output of ESP packets for this router.
const TO_ROUTER: i32 = 0;
/// The output of other packets for this router.
const TO_HOST: usize = 2;

/// A change of the routes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Command {
    Add,
    Set,
    Remove,
}

/// How to undo a command.
enum Undo {
    Remove(TunnelRoute),
    Set(TunnelRoute),
}

impl RadixIPsecLookup {
    /// The output of a packet, with its annotations set.
    fn route(&self, packet: &mut Packet) -> Result<usize, Reason> {
        let route = self.routes.lookup(packet.destination_ip()).ok_or(Reason::NO_ROUTE)?;
        let mut port = usize::try_from(route.route.port).map_err(|_| Reason::NO_ROUTE)?;
        if let Some(outbound) = &route.outbound {
            packet.set_annotation_u32(annotation::IPSEC_SPI.offset.into(), outbound.spi);
        } else if route.route.port == TO_ROUTER {
            let header = Ip4View::new(packet.data());
            match header.filter(|header| header.version() == 4 && header.protocol() == protocol::ESP) {
                None => port = TO_HOST,
                Some(header) if header.is_fragment() => return Err(Reason::IS_FRAGMENT),
                Some(header) => {
                    let spi = packet.data().get(header.header_length()..).and_then(<[u8]>::first_chunk);
                    let spi = u32::from_be_bytes(*spi.ok_or(Reason::TOO_SHORT)?);
                    if !self.associations.borrow().receives(spi) {
                        return Err(Reason::UNKNOWN_SPI);
                    }
                }
            }
        }
        if !route.route.gateway.is_unspecified() {
            packet.set_destination_ip(route.route.gateway);
        }
        Ok(port)
    }

    fn store(&mut self, route: TunnelRoute) -> Result<Option<TunnelRoute>, String> {
        self.routes.set(route, &mut self.associations.borrow_mut()).map_err(|refusal| match refusal {
            Refusal::Route(error) => error.to_string(),
            Refusal::Keys(spi) => {
                format!(
                    "SPI {spi} has other keys in another route: give each association a number of its own"
                )
            }
        })
    }

    /// Executes a command. Returns how to undo it.
    fn execute(&mut self, cx: &Context, command: Command, value: &str) -> Result<Undo, HandlerError> {
        let name = cx.name();
        let route = TunnelRoute::parse(value, &cx.setup(&name), command != Command::Remove);
        let route = route.map_err(HandlerError::Value)?;
        let plain = route.route;
        if !has_port(&route, cx.outputs()) && (command != Command::Remove || plain.port != -1) {
            return Err(HandlerError::new("bad OUTPUT"));
        }
        let existing = self.routes.get(plain.prefix);
        if command == Command::Remove {
            if !existing.is_some_and(|existing| plain.removes(&existing.route)) {
                return Err(HandlerError::with_code(
                    HandlerError::NOT_FOUND,
                    format_args!("route ‘{plain}’ not found"),
                ));
            }
            let removed = self.routes.remove(plain.prefix, &mut self.associations.borrow_mut());
            return Ok(Undo::Set(removed.unwrap_or(route)));
        }
        if let (Command::Add, Some(existing)) = (command, existing) {
            return Err(HandlerError::with_code(
                HandlerError::EXISTS,
                format_args!("conflict with existing route ‘{}’", existing.route),
            ));
        }
        let replaced = self.store(route.clone()).map_err(HandlerError::new)?;
        Ok(replaced.map_or(Undo::Remove(route), Undo::Set))
    }

    /// Executes one command.
    fn change(&mut self, cx: &mut Context, command: Command, value: &str) -> Result<(), HandlerError> {
        self.execute(cx, command, value)?;
        self.is_edited = true;
        Ok(())
    }

    /// Executes commands, all or none.
    fn control(&mut self, cx: &mut Context, value: &str) -> Result<(), HandlerError> {
        let mut done = Vec::new();
        for line in text::uncomment(value).lines() {
            let mut rest = line;
            let result = match text::next_word(&mut rest) {
                None => continue,
                Some("add") => self.execute(cx, Command::Add, rest),
                Some("set") => self.execute(cx, Command::Set, rest),
                Some("remove") => self.execute(cx, Command::Remove, rest),
                Some(other) => Err(HandlerError::new(format!("bad command ‘{other}’"))),
            };
            match result {
                Ok(undo) => done.push(undo),
                Err(error) => {
                    self.undo(done);
                    return Err(error);
                }
            }
        }
        self.is_edited = true;
        Ok(())
    }

    fn undo(&mut self, done: Vec<Undo>) {
        for undo in done.into_iter().rev() {
            match undo {
                Undo::Remove(route) => {
                    drop(self.routes.remove(route.route.prefix, &mut self.associations.borrow_mut()));
                }
                // What was there before fits again.
                Undo::Set(route) => drop(self.store(route)),
            }
        }
    }

    /// The arguments, or the routes as arguments once handlers have changed them.
    fn configuration(&mut self, cx: &mut Context, _: &str) -> Result<String, HandlerError> {
        if !self.is_edited {
            return Ok(cx.configuration());
        }
        let routes: Vec<&str> = self.routes.iter().map(|route| route.text.as_str()).collect();
        Ok(routes.join(", "))
    }
}

/// Whether the element has the route's output.
fn has_port(route: &TunnelRoute, outputs: usize) -> bool {
    usize::try_from(route.route.port).is_ok_and(|port| port < outputs)
}

impl Element for RadixIPsecLookup {
    type Args = RadixIPsecLookupArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::edit("add", "Adds a route; fails if the prefix already has one.", |element, cx, value| {
            element.change(cx, Command::Add, value)
        }),
        Handler::edit("set", "Adds or replaces a route.", |element, cx, value| {
            element.change(cx, Command::Set, value)
        }),
        Handler::edit("remove", "Removes a route: `ADDR/MASK`, or the whole route.", |element, cx, value| {
            element.change(cx, Command::Remove, value)
        }),
        Handler::edit(
            "ctrl",
            "Commands `add`, `set` and `remove`, one per line: applies all or none.",
            RadixIPsecLookup::control,
        ),
        Handler::read("table", "The routes, one per line: prefix, gateway, output, SPI.", |element| {
            let spi = |route: &TunnelRoute| {
                route.outbound.as_ref().map_or(String::new(), |outbound| format!("\t{}", outbound.spi))
            };
            element.routes.iter().map(|route| route.route.line() + &spi(route) + "\n").collect()
        }),
        Handler::read_with(
            "lookup",
            "Output and gateway for an address; output -1 if there is no route.",
            |element, cx, value| {
                let address: Ipv4Addr =
                    cx.argument(value).map_err(|_| HandlerError::new("expected IP address"))?;
                Ok(match element.routes.lookup(address).map(|route| route.route) {
                    None => "-1".to_string(),
                    Some(route) if route.gateway.is_unspecified() => route.port.to_string(),
                    Some(route) => format!("{} {}", route.port, route.gateway),
                })
            },
        ),
        Handler::read(
            "associations",
            "The associations, one per line: SPI, next sequence number to send, highest one received.",
            |element| element.associations.borrow().list(),
        ),
        Handler::read_with("config", "The configuration, with the present routes.", Self::configuration),
    ];

    fn new(args: RadixIPsecLookupArgs, setup: &mut Setup) -> Result<RadixIPsecLookup, SetupError> {
        let mut element =
            RadixIPsecLookup { routes: Routes::default(), associations: Shared::default(), is_edited: false };
        let (mut errors, mut repeated) = (SetupError::default(), 0);
        for (Raw(argument), number) in args.routes.iter().zip(1..) {
            let refuse = |problem: String| {
                SetupError::in_argument(argument, format!("argument {number}: {problem}"), problem)
            };
            match TunnelRoute::parse(argument, setup, true) {
                Err(problem) => errors.merge(refuse(problem.to_string())),
                Ok(route) if !has_port(&route, setup.outputs()) => {
                    errors.messages.push(Message::Ports(format!("argument {number} bad OUTPUT")));
                }
                Ok(route) if element.routes.get(route.route.prefix).is_some() => repeated += 1,
                Ok(route) => {
                    if let Err(problem) = element.store(route) {
                        errors.merge(refuse(problem));
                    }
                }
            }
        }
        if repeated > 0 {
            setup.warn(format!("{repeated} of the routes have the prefix of an earlier one, and no effect"));
        }
        errors.into_result().map(|()| element)
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        match Databases::find(cx).common(&self.associations.borrow()) {
            None => Ok(()),
            Some(spi) => Err(SetupError::new(format!(
                "SPI {spi} is also in another route table: give each association a number of its own"
            ))),
        }
    }

    fn push(&mut self, cx: &mut Context, _: usize, mut batch: Batch) {
        for mut packet in batch.drain() {
            match self.route(&mut packet) {
                Ok(port) => cx.send(port, packet),
                Err(reason) => cx.drop(packet, reason),
            }
        }
        cx.recycle(batch);
    }

    fn inherit(&mut self, old: &mut Self, _: &mut Context) {
        self.associations.borrow_mut().inherit(&mut old.associations.borrow_mut());
    }

    fn export(&self) -> Option<Rc<dyn Any>> {
        Some(self.associations.clone())
    }
}
