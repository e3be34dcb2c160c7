//! What the shell offers where a name is to be typed: the names that the daemon knows. Without a daemon nothing.

use std::ffi::OsStr;

use api::client::Client;
use api::operation;
use clap_complete::engine::CompletionCandidate;

use super::connection::Connection;

fn candidates(current: &OsStr, names: impl Fn(&Client) -> Option<Vec<String>>) -> Vec<CompletionCandidate> {
    let client = Connection::default().client().ok();
    let names = client.and_then(|client| names(&client)).unwrap_or_default();
    let current = current.to_string_lossy();
    names.into_iter().filter(|name| name.starts_with(&*current)).map(CompletionCandidate::new).collect()
}

fn box_names(client: &Client) -> Option<Vec<String>> {
    let boxes = client.ask(&operation::LIST_BOXES, &[]).ok()?;
    Some(boxes.iter().map(|status| status.name.to_string()).collect())
}

/// Names of boxes.
pub(crate) fn boxes(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, box_names)
}

/// Handlers: the box first, then those that it has.
pub(crate) fn handlers(current: &OsStr) -> Vec<CompletionCandidate> {
    let text = current.to_string_lossy();
    candidates(current, |client| match text.split_once('/') {
        None => Some(box_names(client)?.iter().map(|name| format!("{name}/")).collect()),
        Some((name, _)) => {
            let handlers = client.ask(&operation::LIST_HANDLERS, &[name]).ok()?;
            Some(handlers.iter().map(|handler| format!("{name}/{}", handler.path())).collect())
        }
    })
}

/// Names of switches.
pub(crate) fn switches(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, |client| {
        let switches = client.ask(&operation::LIST_SWITCHES, &[]).ok()?;
        Some(switches.iter().map(|status| status.name.to_string()).collect())
    })
}

/// Names of ports of all switches.
pub(crate) fn ports(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, |client| {
        let switches = client.ask(&operation::LIST_SWITCHES, &[]).ok()?;
        let details = switches
            .iter()
            .filter_map(|status| client.ask(&operation::SHOW_SWITCH, &[status.name.as_str()]).ok());
        Some(details.flat_map(|detail| detail.port_list).map(|port| port.name.to_string()).collect())
    })
}

/// Names of stacks.
pub(crate) fn stacks(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, |client| {
        let stacks = client.ask(&operation::LIST_STACKS, &[]).ok()?;
        Some(stacks.iter().map(|status| status.name.to_string()).collect())
    })
}
