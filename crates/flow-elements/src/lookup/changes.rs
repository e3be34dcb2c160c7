//! Commands that change the routes of a table.

use element::prelude::*;
use element::text;

use lookup::{Route, RouteError, RouteStore};

use super::arguments::{RouteToAdd, RouteToRemove, has_port};
use super::filling::ROUTES_A_STEP;

/// A change of a route.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Add,
    Set,
    Remove,
}

/// How to undo a command.
pub(super) enum Undo {
    Remove(Route),
    Set(Route),
}

/// Executes a command. Returns how to undo it.
pub(super) fn execute(
    store: &mut impl RouteStore,
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
    pub(super) fn step(
        &mut self,
        store: &mut impl RouteStore,
        cx: &mut Context,
    ) -> Option<Result<(), HandlerError>> {
        (0..ROUTES_A_STEP).find_map(|_| self.execute_next(store, cx))
    }

    /// Executes the next command, or undoes the last one.
    fn execute_next(
        &mut self,
        store: &mut impl RouteStore,
        cx: &mut Context,
    ) -> Option<Result<(), HandlerError>> {
        if self.error.is_some() {
            match self.done.pop() {
                Some(Undo::Remove(route)) => drop(store.remove(route.prefix)),
                Some(Undo::Set(route)) => {
                    if let Err(error) = store.set(route) {
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
            Some("add") => execute(store, cx, Command::Add, rest),
            Some("set") => execute(store, cx, Command::Set, rest),
            Some("remove") => execute(store, cx, Command::Remove, rest),
            Some(other) => Err(HandlerError::new(format!("bad command ‘{other}’"))),
        };
        match result {
            Ok(undo) => self.done.push(undo),
            Err(error) => self.error = Some(error),
        }
        None
    }
}
