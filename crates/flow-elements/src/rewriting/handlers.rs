//! Handlers common to all rewriters.

use element::prelude::*;

use super::flows::{FIRST_MAP, Flows, Found, UDP_MAP, clock};
use super::mapping::{Lifetimes, Mapping};
use super::rewriter::{Rewriter, RewriterClass};
use super::translate::KeyFields;
use flow::{BidirectionalFlow, Ip4Flow};

use core::fmt::Write;
use core::net::Ipv4Addr;

/// A flow as text, for a table with these key fields.
fn describe(key_fields: KeyFields, key: Ip4Flow, to: Ip4Flow) -> String {
    let ip = Ipv4Addr::from_bits;
    match key_fields {
        KeyFields::Address => format!("{} => {}", ip(key.source), ip(to.source)),
        KeyFields::AddressPair => {
            let [a, b, c, d] = [key.source, key.destination, to.source, to.destination].map(ip);
            format!("({a}, {b}) => ({c}, {d})")
        }
        KeyFields::Ping => {
            let [a, b, c, d] = [key.source, key.destination, to.source, to.destination].map(ip);
            format!("({a}, {b}, {}) => ({c}, {d}, {})", key.source_port, to.source_port)
        }
        _ => format!("{key} => {to}"),
    }
}

/// One direction of a flow, as a line of a table.
fn line(
    key_fields: KeyFields,
    pair: &BidirectionalFlow<Ip4Flow, Mapping>,
    reply: bool,
    lifetimes: &Lifetimes,
    now: u64,
) -> String {
    let BidirectionalFlow { keys, flow } = pair;
    let (key, to) = (keys[usize::from(reply)], keys[usize::from(!reply)].reverse());
    let mut line = describe(key_fields, key, to);
    match flow.shifts.as_deref().map_or(0, |shifts| shifts.newest(reply)) {
        0 => {}
        shift => _ = write!(line, " seq {shift:+}"),
    }
    let deadline = match flow.guaranteed {
        true => lifetimes.after_guarantee(flow.deadline, flow.progress),
        false => flow.deadline,
    };
    let left = (deadline as i64 + 500 - now as i64).div_euclid(1_000);
    let star = |here| if here { "*" } else { "" };
    let [first, second] = flow.outputs;
    _ = writeln!(line, " [{}{first} {}{second}] i{} exp{left}", star(!reply), star(reply), flow.input);
    line
}

/// A table as text, with one line per direction of each flow.
fn table(flows: &Flows, map: usize, cx: &Context) -> String {
    let now = clock(cx);
    let mut text = String::new();
    flows.with_map(map, |pairs, lifetimes| {
        for (_, pair) in pairs.iter() {
            if pair.keys[0] != pair.keys[1] {
                text.push_str(&line(flows.key_fields, pair, false, lifetimes, now));
            }
            text.push_str(&line(flows.key_fields, pair, true, lifetimes, now));
        }
    });
    text
}

/// Shows the first table.
pub(crate) fn first_table<K: RewriterClass>(
    rewriter: &mut Rewriter<K>,
    cx: &mut Context,
    _: &str,
) -> Result<String, HandlerError> {
    Ok(table(&rewriter.flows, FIRST_MAP, cx))
}

/// Shows the table of UDP flows.
pub(crate) fn udp_table<K: RewriterClass>(
    rewriter: &mut Rewriter<K>,
    cx: &mut Context,
    _: &str,
) -> Result<String, HandlerError> {
    Ok(table(&rewriter.flows, UDP_MAP, cx))
}

/// Shows the addresses and ports that a TCP packet would get; nothing if it has no flow.
pub(crate) fn lookup_flow<K: RewriterClass>(
    rewriter: &mut Rewriter<K>,
    cx: &mut Context,
    value: &str,
) -> Result<String, HandlerError> {
    let words = element::text::words(value);
    let [source, source_port, destination, destination_port] = words.as_slice() else {
        return Err(HandlerError::new("expected SADDR SPORT DADDR DPORT"));
    };
    let address = |word: &str| cx.argument::<Ipv4Addr>(word).map(Ipv4Addr::to_bits);
    let port = |word: &str| cx.argument::<element::arguments::TcpPort>(word).map(|port| port.0);
    let key = Ip4Flow {
        source: address(source)?,
        destination: address(destination)?,
        source_port: port(source_port)?,
        destination_port: port(destination_port)?,
    };
    let found = rewriter.flows.lookup_flow(super::flows::SHIFTABLE_PROTOCOL, key, false, None, cx);
    Ok(found.map_or_else(String::new, |Found { rewritten: to, .. }| {
        let [source, destination] = [to.source, to.destination].map(Ipv4Addr::from_bits);
        format!("{source} {} {destination} {}", to.source_port, to.destination_port)
    }))
}

/// Sum over the inputs of (flows, failures).
pub(crate) fn totals(flows: &Flows) -> (u32, u32) {
    let set = flows.set();
    let set = set.borrow();
    let counters = set.members.get(flows.member.get()).map_or(&[][..], |member| &member.counters);
    counters.iter().fold((0, 0), |(alive, failed), counters| {
        (alive + counters.flows, failed.wrapping_add(counters.failures))
    })
}

/// Shows the maximum number of flows.
pub(crate) fn capacity(flows: &Flows) -> String {
    flows.set().borrow().capacity.to_string()
}

/// Shows the number of flows of all rewriters that share the capacity.
pub(crate) fn size(flows: &Flows) -> String {
    flows.set().borrow().len().to_string()
}

/// Sets the maximum number of flows.
pub(crate) fn set_capacity<K: RewriterClass>(
    rewriter: &mut Rewriter<K>,
    cx: &mut Context,
    value: &str,
) -> Result<(), HandlerError> {
    let set = rewriter.flows.set();
    let capacity = cx.keyword("CAPACITY", value)?;
    set.borrow_mut().capacity = super::rewriter::own_capacity(cx, capacity)?;
    let is_done = set.borrow_mut().shrink(clock(cx));
    if !is_done {
        cx.set_timer_after(0, Timestamp::ZERO);
    }
    Ok(())
}

/// Removes the flows of all rewriters that share the capacity.
pub(crate) fn clear<K: RewriterClass>(
    rewriter: &mut Rewriter<K>,
    _: &mut Context,
    _: &str,
) -> Result<(), HandlerError> {
    rewriter.flows.set().borrow_mut().clear();
    Ok(())
}

/// The handlers of a rewriter: its own, then the common ones.
macro_rules! handlers {
    ($($own:expr),* $(,)?) => {
        &[
            $($own,)*
            Handler::read("table_size", "Number of flows created here.", |rewriter| {
                $crate::rewriting::handlers::totals(&rewriter.flows).0.to_string()
            }),
            Handler::read("nmappings", "Older name of `table_size`.", |rewriter| {
                $crate::rewriting::handlers::totals(&rewriter.flows).0.to_string()
            }),
            Handler::read("mapping_failures", "Flows that could not be created.", |rewriter| {
                $crate::rewriting::handlers::totals(&rewriter.flows).1.to_string()
            }),
            Handler::read("patterns", "The specification of each input, with its number of flows in brackets.", |rewriter| {
                rewriter.flows.patterns(None)
            }),
            Handler::read("size", "Flows of all rewriters that share the capacity.", |rewriter| {
                $crate::rewriting::handlers::size(&rewriter.flows)
            }),
            Handler::read("capacity", "Maximum number of flows.", |rewriter| {
                $crate::rewriting::handlers::capacity(&rewriter.flows)
            }),
            Handler::setting(
                "capacity",
                "Sets the maximum number of flows.",
                $crate::rewriting::handlers::set_capacity,
            ),
            Handler::action(
                "clear",
                "Deletes all flows of all rewriters that share the capacity.",
                $crate::rewriting::handlers::clear,
            ),
        ]
    };
}

pub(crate) use handlers;
