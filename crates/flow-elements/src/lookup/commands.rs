//! The handlers that IPv4 route tables share.

use element::prelude::*;
use element::text;

use core::net::Ipv4Addr;
use lookup::{NextHop, Route, RouteError, RouteStore};

use super::arguments::{RouteToAdd, RouteToRemove, has_port};
use super::table::{ROUTES_A_STEP, RouteTable, RouteTableClass};

/// A change of a route.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Command {
    Add,
    Set,
    Remove,
}

/// How to undo a command.
enum Undo {
    Remove(Route),
    Set(Route),
}

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
            execute(element, cx, Command::Add, value).map(drop)
        }),
        Handler::edit("set", "Adds or replaces a route.", |element, cx, value| {
            execute(element, cx, Command::Set, value).map(drop)
        }),
        Handler::edit("remove", "Removes a route: `ADDR/MASK`, or the whole route.", |element, cx, value| {
            execute(element, cx, Command::Remove, value).map(drop)
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

/// Executes a command. Returns how to undo it.
fn execute<K: RouteTableClass>(
    element: &mut RouteTable<K>,
    cx: &mut Context,
    command: Command,
    value: &str,
) -> Result<Undo, HandlerError> {
    let route = match command {
        Command::Remove => cx.argument::<RouteToRemove>(value)?.0,
        Command::Add | Command::Set => cx.argument::<RouteToAdd>(value)?.0,
    };
    if !has_port(&route, cx.outputs()) && (command != Command::Remove || route.port != -1) {
        return Err(HandlerError::new("bad OUTPUT"));
    }
    element.is_edited = true;
    let store = &mut element.store;
    let existing = store.get(route.prefix);
    if command == Command::Remove {
        let existing = existing.filter(|existing| route.removes(existing));
        let removed = existing.and_then(|existing| store.remove(existing.prefix));
        return removed.map(Undo::Set).ok_or_else(|| {
            HandlerError::with_code(HandlerError::NOT_FOUND, format_args!("route ‘{route}’ not found"))
        });
    }
    if let (Command::Add, Some(existing)) = (command, existing) {
        return Err(HandlerError::with_code(
            HandlerError::EXISTS,
            format_args!("conflict with existing route ‘{existing}’"),
        ));
    }
    match store.set(route) {
        Ok(replaced) => Ok(replaced.map_or(Undo::Remove(route), Undo::Set)),
        Err(RouteError::Full) => Err(HandlerError::new(format!("no memory to store route ‘{route}’"))),
        Err(error) => Err(HandlerError::new(error)),
    }
}

fn control<K: RouteTableClass>(
    element: &mut RouteTable<K>,
    cx: &mut Context,
    value: &str,
) -> Result<(), HandlerError> {
    element.store.defer_updates();
    let mut control = LongControl::new(value.into());
    let result = loop {
        if let Some(result) = control.step(element, cx) {
            break result;
        }
    };
    if !element.is_changing() {
        element.store.apply_updates();
    }
    result
}

/// Commands of which all are executed, or none, in steps. Meanwhile, the updates of the table are deferred.
pub(super) struct LongControl {
    commands: String,
    /// Bytes that have been read.
    read: usize,
    /// How to undo what has been executed.
    done: Vec<Undo>,
    /// Why it is being undone.
    error: Option<HandlerError>,
}

impl LongControl {
    pub(super) fn new(commands: String) -> LongControl {
        let has_comments = commands.contains("//") || commands.contains("/*");
        let commands = if has_comments { text::uncomment(&commands) } else { commands };
        LongControl { commands, read: 0, done: Vec::new(), error: None }
    }

    /// Performs a step. Returns the result when it is done.
    pub(super) fn step<K: RouteTableClass>(
        &mut self,
        element: &mut RouteTable<K>,
        cx: &mut Context,
    ) -> Option<Result<(), HandlerError>> {
        (0..ROUTES_A_STEP).find_map(|_| self.execute_next(element, cx))
    }

    /// Executes the next command, or undoes the last one.
    fn execute_next<K: RouteTableClass>(
        &mut self,
        element: &mut RouteTable<K>,
        cx: &mut Context,
    ) -> Option<Result<(), HandlerError>> {
        if self.error.is_some() {
            match self.done.pop() {
                Some(Undo::Remove(route)) => drop(element.store.remove(route.prefix)),
                Some(Undo::Set(route)) => {
                    if let Err(error) = element.store.set(route) {
                        return Some(Err(HandlerError::new(error)));
                    }
                }
                None => return self.error.take().map(Err),
            }
            return None;
        }
        let left = self.commands.get(self.read..).filter(|left| !left.is_empty());
        let Some(line) = left.and_then(|left| left.split_inclusive('\n').next()) else { return Some(Ok(())) };
        self.read += line.len();
        let mut rest = line.trim_end_matches(['\n', '\r']);
        let result = match text::next_word(&mut rest) {
            None => return None,
            Some("add") => execute(element, cx, Command::Add, rest),
            Some("set") => execute(element, cx, Command::Set, rest),
            Some("remove") => execute(element, cx, Command::Remove, rest),
            Some(other) => Err(HandlerError::new(format!("bad command ‘{other}’"))),
        };
        match result {
            Ok(undo) => self.done.push(undo),
            Err(error) => self.error = Some(error),
        }
        None
    }
}
