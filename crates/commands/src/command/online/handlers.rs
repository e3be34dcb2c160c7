//! `clickbox read`, `write`, `handlers`: the handlers of boxes.

use std::io::{IsTerminal, Read as _};
use std::process::ExitCode;

use api::{
    BoxName, HandlerArgument, HandlerInfo, HandlerPath, HandlerValue, HandlerWrite, Value, WriteEffect,
    operation,
};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use crate::error::{CommandError, FileError};
use crate::online::{self, Client, Column, Connection, Table};
use crate::output;

/// Read a handler.
///
/// Prints the value unchanged, except that control characters are escaped on a terminal. A pattern reads all handlers
/// that match it, and prints each on one line with its path: `*` stands for any text, `?` for a character, and `[ab]` for
/// one of the letters. Quote a pattern, or the shell takes it for the names of files.
#[derive(Args)]
#[command(after_help = "Examples: clickbox read fw/c.count\n          clickbox read 'fw/*.losses'")]
pub(crate) struct Read {
    /// Handler: BOX/ELEMENT.HANDLER or BOX/CONFIGURATION:ELEMENT.HANDLER, or a pattern for handlers of a box.
    #[arg(value_name = "HANDLER", add = ArgValueCompleter::new(online::handlers))]
    path: HandlerPath,
    /// Argument for the handler, if it takes one, or `-` for standard input.
    argument: Option<String>,
    /// Print JSON: {"value": ...}, in base64 if the value is not UTF-8; for a pattern, a list with "handler" as well.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Write a handler.
#[derive(Args)]
#[command(after_help = "Example: clickbox write fw/filter.rules 'deny tcp port 25, allow all'")]
pub(crate) struct Write {
    /// Handler: BOX/ELEMENT.HANDLER or BOX/CONFIGURATION:ELEMENT.HANDLER.
    #[arg(value_name = "HANDLER", add = ArgValueCompleter::new(online::handlers))]
    path: HandlerPath,
    /// Value to write, or `-` for standard input. Empty by default, as for handlers such as `reset`.
    #[arg(default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    value: String,
    /// Print JSON: an empty object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// List the handlers of a box.
///
/// WRITES says what a write does: `act` resets counters or acts once; `set` and `edit` change the configuration until the
/// box restarts, a value or an entry of it.
#[derive(Args)]
#[command(after_help = "Example: clickbox handlers fw filter")]
pub(crate) struct List {
    /// Name of the box.
    #[arg(value_name = "BOX", add = ArgValueCompleter::new(online::boxes))]
    name: BoxName,
    /// List only the handlers of this element.
    #[arg(add = ArgValueCompleter::new(online::elements))]
    element: Option<String>,
    /// Print JSON: a list of handlers.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// A value given on the command line or standard input.
fn value(text: &str) -> Result<Value, CommandError> {
    if text != "-" {
        return Ok(text.into());
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(FileError::stdin)?;
    Ok(Value(bytes))
}

/// Runs `read`.
pub(super) fn read(arguments: &Read) -> Result<ExitCode, CommandError> {
    let client = arguments.daemon.client()?;
    let argument = arguments.argument.as_deref().map(value).transpose()?;
    let argument = argument.map(|argument| HandlerArgument { argument });
    if arguments.path.handler.contains(['*', '?', '[']) {
        return read_pattern(&client, arguments, argument.as_ref());
    }
    let reply = read_one(&client, &arguments.path, argument.as_ref())?;
    if arguments.json {
        output::json(&reply);
    } else if std::io::stdout().is_terminal() {
        let text = online::lines(&reply.value.text());
        output::text(&text);
        if !text.ends_with('\n') {
            output::text("\n");
        }
    } else {
        output::bytes(&reply.value.0);
    }
    Ok(ExitCode::SUCCESS)
}

fn read_one(
    client: &Client,
    path: &HandlerPath,
    argument: Option<&HandlerArgument>,
) -> Result<HandlerValue, CommandError> {
    let path = [path.name.as_str(), &path.rest()];
    match argument {
        None => client.ask(&operation::READ, &path),
        Some(argument) => client.send(&operation::ASK, &path, argument),
    }
}

/// A handler that a pattern matches.
#[derive(Serialize)]
struct MatchedHandler {
    /// Its path, with the name of the box.
    handler: String,
    /// Its value.
    #[serde(flatten)]
    value: HandlerValue,
}

/// Reads the handlers that match a pattern. If one fails, continues with the others and fails at the end.
fn read_pattern(
    client: &Client,
    arguments: &Read,
    argument: Option<&HandlerArgument>,
) -> Result<ExitCode, CommandError> {
    let HandlerPath { name, configuration, handler: text } = &arguments.path;
    let pattern = glob::Pattern::new(text)
        .map_err(|cause| CommandError::HandlerPattern { pattern: text.clone(), cause })?;
    let mut handlers = client.ask(&operation::LIST_HANDLERS, &[name.as_str()])?;
    handlers.retain(|info| {
        let path = match info.element.as_str() {
            "" => info.handler.clone(),
            element => format!("{element}.{}", info.handler),
        };
        info.read && info.configuration == *configuration && pattern.matches(&path)
    });
    if handlers.is_empty() {
        return Err(CommandError::NoMatch { name: name.clone(), pattern: arguments.path.rest() });
    }
    let (mut values, mut failed) = (Vec::new(), None);
    for info in handlers {
        let handler = format!("{name}/{}", info.path());
        let path = HandlerPath::of(name.clone(), &info.path());
        let read = path.map_err(CommandError::HandlerPath);
        match read.and_then(|path| read_one(client, &path, argument)) {
            Ok(value) if arguments.json => values.push(MatchedHandler { handler, value }),
            Ok(value) => {
                let value = online::line(value.value.text().trim_end());
                output::text(&format!("{} = {value}\n", online::line(&handler)));
            }
            Err(error) => {
                if let Some(earlier) = failed.replace(error) {
                    CommandError::print(&earlier);
                }
            }
        }
    }
    if arguments.json {
        output::json(&values);
    }
    failed.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Runs `write`.
pub(super) fn write(arguments: &Write) -> Result<ExitCode, CommandError> {
    let path = [arguments.path.name.as_str(), &arguments.path.rest()];
    let write = HandlerWrite { value: value(&arguments.value)? };
    arguments.daemon.client()?.send(&operation::WRITE, &path, &write)?;
    online::print_success(arguments.json);
    Ok(ExitCode::SUCCESS)
}

const COLUMNS: &[Column] = &[Column::flexible("HANDLER", 20), Column::text("ACCESS"), Column::text("WRITES")];

/// Runs `handlers`.
pub(super) fn list(arguments: &List) -> Result<ExitCode, CommandError> {
    let mut handlers =
        arguments.daemon.client()?.ask(&operation::LIST_HANDLERS, &[arguments.name.as_str()])?;
    if let Some(element) = &arguments.element {
        if !handlers.iter().any(|handler| handler.element == *element) {
            let names = handlers.iter().map(|handler| handler.element.as_str());
            let similar = click_lang::nearest(element, names).map(str::to_string);
            let (name, element) = (arguments.name.clone(), element.clone());
            return Err(CommandError::NoElement { name, element, similar });
        }
        handlers.retain(|handler| handler.element == *element);
    }
    if arguments.json {
        output::json(&handlers);
    } else {
        let access = |handler: &HandlerInfo| match (handler.read, handler.write) {
            (true, true) => "read, write",
            (true, false) => "read",
            (false, true) => "write",
            (false, false) => "",
        };
        let writes = |handler: &HandlerInfo| match handler.effect {
            None => "",
            Some(WriteEffect::Action) => "act",
            Some(WriteEffect::Setting) => "set",
            Some(WriteEffect::Edit) => "edit",
        };
        let row = |handler: &HandlerInfo| {
            let path = online::line(&format!("{}/{}", arguments.name, handler.path()));
            vec![path, access(handler).to_string(), writes(handler).to_string()]
        };
        let rows = handlers.iter().map(row).collect();
        online::print(&Table { columns: COLUMNS, rows }, &format!("box {} has no handlers", arguments.name));
    }
    Ok(ExitCode::SUCCESS)
}
