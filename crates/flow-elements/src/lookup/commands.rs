//! The handlers that IPv4 route tables share.

use element::prelude::*;

use core::net::Ipv4Addr;
use lookup::{NextHop, Route, RouteStore, StepwiseTable};

use super::changes::{Command, LongControl, execute};
use super::table::{RouteTable, RouteTableClass};

/// The handlers `table` and `lookup`.
pub(super) const fn read_handlers<K: RouteTableClass>() -> [Handler<RouteTable<K>>; 2] {
    [
        Handler::read("table", "The routes, one per line: prefix, gateway, output.", |element| {
            let lines = element.store.routes().into_iter().map(|route| route.line() + "\n");
            lines.collect()
        }),
        Handler::read_with(
            "lookup",
            "Output and gateway for an address; output -1 if there is no route.",
            lookup,
        ),
    ]
}

/// The handlers of a table that can be changed.
pub(super) const fn handlers<K: RouteTableClass>() -> [Handler<RouteTable<K>>; 7] {
    let [table, lookup] = read_handlers();
    [
        Handler::edit("add", "Adds a route; fails if the prefix already has one.", |element, cx, value| {
            change(element, cx, Command::Add, value)
        }),
        Handler::edit("set", "Adds or replaces a route.", |element, cx, value| {
            change(element, cx, Command::Set, value)
        }),
        Handler::edit("remove", "Removes a route: `ADDR/MASK`, or the whole route.", |element, cx, value| {
            change(element, cx, Command::Remove, value)
        }),
        Handler::edit(
            "ctrl",
            "Commands `add`, `set` and `remove`, one per line: applies all or none.",
            control,
        ),
        table,
        lookup,
        Handler::read_with("config", "The configuration, with the present routes.", config),
    ]
}

/// The handlers of a table that can be changed and emptied.
pub(super) const fn handlers_with_flush<K: RouteTableClass>() -> [Handler<RouteTable<K>>; 8] {
    let [add, set, remove, ctrl, table, lookup, config] = handlers();
    let flush = Handler::edit("flush", "Removes all routes.", |element: &mut RouteTable<K>, _, _| {
        element.store.clear();
        element.is_edited = true;
        Ok(())
    });
    [add, set, remove, ctrl, table, lookup, flush, config]
}

/// The arguments, or the routes as arguments once handlers have changed them.
fn config<K: RouteTableClass>(
    element: &mut RouteTable<K>,
    cx: &mut Context,
    _: &str,
) -> Result<String, HandlerError> {
    if !element.is_edited {
        return Ok(cx.configuration());
    }
    let argument = |route: &Route| match route.gateway {
        Ipv4Addr::UNSPECIFIED => format!("{} {}", route.prefix, route.port),
        gateway => format!("{} {gateway} {}", route.prefix, route.port),
    };
    Ok(element.store.routes().iter().map(argument).collect::<Vec<_>>().join(", "))
}

fn lookup<K: RouteTableClass>(
    element: &mut RouteTable<K>,
    cx: &mut Context,
    value: &str,
) -> Result<String, HandlerError> {
    let address: Ipv4Addr = cx.argument(value).map_err(|_| HandlerError::new("expected IP address"))?;
    Ok(match element.store.lookup(address) {
        None => "-1".to_string(),
        Some(NextHop { gateway: None, port }) => port.to_string(),
        Some(NextHop { gateway: Some(gateway), port }) => format!("{port} {}", Ipv4Addr::from_bits(gateway)),
    })
}

/// Executes one command.
fn change<K: RouteTableClass>(
    element: &mut RouteTable<K>,
    cx: &mut Context,
    command: Command,
    value: &str,
) -> Result<(), HandlerError> {
    execute(&mut element.store, cx, command, value)?;
    element.is_edited = true;
    Ok(())
}

fn control<K: RouteTableClass>(
    element: &mut RouteTable<K>,
    cx: &mut Context,
    value: &str,
) -> Result<(), HandlerError> {
    element.store.defer_updates();
    let mut control = LongControl::new(value.into());
    let result = loop {
        if let Some(result) = control.step(&mut element.store, cx) {
            break result;
        }
    };
    if !element.is_changing() {
        element.store.apply_updates();
    }
    element.is_edited |= result.is_ok();
    result
}
