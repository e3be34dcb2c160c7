//! `LookupIP6Route`: routes IPv6 packets by longest prefix.

use core::net::Ipv6Addr;

use element::arguments::{Ip6PrefixOrHost, Raw};
use element::prelude::*;
use element::{LongWork, Message, text};
use packet::{Ip6Prefix, Ip6Text};

use super::filling::{FillAsNeeded, FilledTable};
use super::forward::Forwarder;
use lookup::{NextHop, Prefix, RouteError, Routes};

/// Longest-prefix routing by IPv6 destination annotation.
///
/// It sets the destination annotation to the route's gateway, if there is one, and sends the packet to the route's
/// output. Packets without a route are dropped as `no_route`.
///
/// A later route replaces an earlier one for the same prefix. A gateway of `::` means none.
///
/// ## Differences
/// A changed route applies to the next packet, even if its address equals that of the previous packet.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true)
///     -> routes :: LookupIP6Route(3ffe::/16 0, ::/0 3ffe:1ce1:2::2 1);
/// routes[0] -> others :: Counter -> Discard;
/// routes[1] -> default :: Counter -> Discard;
/// ```
/// ```expect
/// others.count = 0
/// default.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "LookupIP6Route",
    group = "lookup",
    ports = "1/-",
    processing = "h/h",
    order_insensitive,
    shards = "independent",
    see = "RadixIPLookup",
    drops = "no_route"
)]
pub struct LookupIP6RouteArgs {
    /// Routes: `ADDR/MASK [GATEWAY] OUTPUT`.
    #[arg(rest)]
    routes: Vec<Raw>,
}

pub struct LookupIP6Route {
    table: FilledTable<Routes<u128>>,
    /// Whether handlers changed the routes, so that they are no longer those of the arguments.
    is_edited: bool,
    forwarder: Forwarder<u128>,
}

impl Element for LookupIP6Route {
    type Args = LookupIP6RouteArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::edit("add", "Adds or replaces a route.", |element, cx, value| element.add(cx, value)),
        Handler::edit("remove", "Removes the route of a prefix, if there is one.", |element, cx, value| {
            element.remove(cx, value)
        }),
        Handler::edit("ctrl", "One command: `add` or `remove` with its route.", |element, cx, value| {
            let mut rest = value;
            match text::next_word(&mut rest) {
                Some("add") => element.add(cx, rest),
                Some("remove") => element.remove(cx, rest),
                _ => Err(HandlerError::new("bad command, should be `add' or `remove'")),
            }
        }),
        Handler::read("table", "The routes, one per line: prefix, gateway, output.", LookupIP6Route::table),
        Handler::read_with("config", "The configuration, with the present routes.", |element, cx, _| {
            Ok(if element.is_edited { element.arguments() } else { cx.configuration() })
        }),
    ];

    const BEGIN: Option<fn(&str) -> Option<Self>> = Some(|configuration| {
        let table = FilledTable::begin(Routes::in_lowest_slot_order(), filling(), configuration);
        table.map(LookupIP6Route::with)
    });

    fn new(args: LookupIP6RouteArgs, setup: &mut Setup) -> Result<LookupIP6Route, SetupError> {
        let table = FilledTable::filled(Routes::in_lowest_slot_order(), filling(), &args.routes, setup);
        table.map(LookupIP6Route::with)
    }

    fn long_work(&mut self) -> Option<&mut dyn LongWork> {
        Some(&mut self.table)
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        self.forwarder.forward(
            cx,
            batch,
            &mut self.table.store,
            |packet| packet.destination_ip6().to_bits(),
            |packet, gateway| packet.set_destination_ip6(Ipv6Addr::from_bits(gateway)),
            |_, _| (),
        );
    }
}

impl LookupIP6Route {
    fn with(table: FilledTable<Routes<u128>>) -> LookupIP6Route {
        LookupIP6Route { table, is_edited: false, forwarder: Forwarder::default() }
    }

    fn add(&mut self, cx: &mut Context, value: &str) -> Result<(), HandlerError> {
        let words = text::words(value);
        let keywords: &[&str] =
            if words.len() == 2 { &["PREFIX", "PORT"] } else { &["PREFIX", "GATEWAY", "PORT"] };
        let mut reader = WordReader { cx, words: &words, keywords, errors: SetupError::default() };
        let prefix = reader.read::<Ip6PrefixOrHost>("PREFIX");
        let gateway = if words.len() == 2 { None } else { reader.read::<Ipv6Addr>("GATEWAY") };
        let port = reader.read::<i32>("PORT");
        reader.finish()?;
        let (Some(prefix), Some(port)) = (prefix, port) else { return Ok(()) };

        let port = usize::try_from(port).ok().filter(|&port| port < cx.outputs());
        let port = port.ok_or_else(|| HandlerError::new("output port out of range"))?;
        let prefix = trie_prefix(prefix.0).ok_or_else(|| HandlerError::new(RouteError::Mask))?;
        let hop = NextHop { gateway: gateway.and_then(nonzero_gateway), port };
        self.table.store.set(prefix, hop).map(drop).map_err(HandlerError::new)?;
        self.is_edited = true;
        Ok(())
    }

    fn remove(&mut self, cx: &mut Context, value: &str) -> Result<(), HandlerError> {
        let words = text::words(value);
        let mut reader =
            WordReader { cx, words: &words, keywords: &["PREFIX"], errors: SetupError::default() };
        let prefix = reader.read::<Ip6PrefixOrHost>("PREFIX");
        reader.finish()?;
        if let Some(prefix) = prefix.and_then(|prefix| trie_prefix(prefix.0)) {
            self.table.store.remove(prefix);
            self.is_edited = true;
        }
        Ok(())
    }

    fn table(&self) -> String {
        if self.table.store.is_empty() {
            return String::new();
        }
        let line = |(prefix, hop): (Prefix<u128>, NextHop<u128>)| {
            let gateway = Ip6Text(Ipv6Addr::from_bits(hop.gateway.unwrap_or(0)));
            format!("{}\t{gateway}\t{}\n", text_of(prefix), hop.port)
        };
        "# Active routes\n".to_string() + &self.table.store.list().into_iter().map(line).collect::<String>()
    }

    /// The routes as arguments.
    fn arguments(&self) -> String {
        let argument = |(prefix, hop): (Prefix<u128>, NextHop<u128>)| match hop.gateway {
            None => format!("{} {}", text_of(prefix), hop.port),
            Some(gateway) => {
                format!("{} {} {}", text_of(prefix), Ip6Text(Ipv6Addr::from_bits(gateway)), hop.port)
            }
        };
        self.table.store.list().into_iter().map(argument).collect::<Vec<_>>().join(", ")
    }
}

fn text_of(prefix: Prefix<u128>) -> String {
    format!("{}/{}", Ip6Text(Ipv6Addr::from_bits(prefix.address())), prefix.length())
}

/// Reads the words of a handler's value in order. Each has a keyword for messages.
struct WordReader<'a, 'c> {
    cx: &'a Context<'c>,
    words: &'a [String],
    keywords: &'static [&'static str],
    errors: SetupError,
}

impl WordReader<'_, '_> {
    fn read<T: FromArgument>(&mut self, keyword: &'static str) -> Option<T> {
        let index = self.keywords.iter().position(|known| *known == keyword)?;
        let Some(word) = self.words.get(index) else {
            self.errors.messages.push(Message::Missing { keyword });
            return None;
        };
        match self.cx.argument(word) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.errors.merge(SetupError::argument(keyword, problem));
                None
            }
        }
    }

    fn finish(mut self) -> Result<(), SetupError> {
        if self.words.len() > self.keywords.len() {
            self.errors.messages.push(Message::TooMany(None));
        }
        self.errors.into_result()
    }
}

/// Stores the routes of a configuration.
fn filling() -> FillAsNeeded<Routes<u128>> {
    FillAsNeeded::new("DADDR/MASK [GW] OUTPUT", |routes, argument, setup| {
        let (prefix, hop) = parse(argument, setup)?;
        routes.set(prefix, hop).ok()?;
        Some(hop.port)
    })
}

fn parse(argument: &str, setup: &Setup) -> Option<(Prefix<u128>, NextHop<u128>)> {
    let words = text::words(argument);
    let (prefix, gateway, port) = match words.as_slice() {
        [prefix, port] => (prefix, None, port),
        [prefix, gateway, port] => (prefix, Some(gateway), port),
        _ => return None,
    };
    let Ip6PrefixOrHost(prefix) = Ip6PrefixOrHost::from_argument(prefix, setup).ok()?;
    let gateway = match gateway {
        Some(gateway) => nonzero_gateway(Ipv6Addr::from_argument(gateway, setup).ok()?),
        None => None,
    };
    let port = usize::try_from(i32::from_argument(port, setup).ok()?).ok()?;
    Some((trie_prefix(prefix)?, NextHop { gateway, port }))
}

fn trie_prefix(prefix: Ip6Prefix) -> Option<Prefix<u128>> {
    Prefix::new(prefix.address.to_bits(), prefix.length)
}

fn nonzero_gateway(gateway: Ipv6Addr) -> Option<u128> {
    Some(gateway.to_bits()).filter(|&gateway| gateway != 0)
}
