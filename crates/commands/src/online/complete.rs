//! Shell completions of names that the daemon knows. Empty without a daemon.

use std::ffi::OsStr;

use api::operation;
use clap_complete::engine::CompletionCandidate;

use super::client::Client;
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

/// Handlers: first the box, then its handlers.
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

/// Names of boxes and switches.
pub(crate) fn boxes_and_switches(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = boxes(current);
    all.extend(switches(current));
    all
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

/// Attachments for a port of a box: switches, or none.
pub(crate) fn attachments(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = switches(current);
    all.extend(
        ["pipe:", "-"]
            .into_iter()
            .filter(|word| word.starts_with(&*current.to_string_lossy()))
            .map(Into::into),
    );
    all
}

/// Capture points: boxes, and ports as SWITCH/PORT, the switch first.
pub(crate) fn capture_points(current: &OsStr) -> Vec<CompletionCandidate> {
    let text = current.to_string_lossy();
    candidates(current, |client| match text.split_once('/') {
        None => {
            let switches = client.ask(&operation::LIST_SWITCHES, &[]).ok()?;
            let switches = switches.iter().map(|status| format!("{}/", status.name));
            Some(box_names(client)?.into_iter().chain(switches).collect())
        }
        Some((switch, _)) => {
            let detail = client.ask(&operation::SHOW_SWITCH, &[switch]).ok()?;
            Some(detail.port_list.iter().map(|port| format!("{switch}/{}", port.name)).collect())
        }
    })
}

/// Configurations that can be removed from the box on the command line.
pub(crate) fn configurations(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, |client| {
        let detail = client.ask(&operation::SHOW_BOX, &[&first_operand()?]).ok()?;
        let names = detail.installed.iter().map(|installed| installed.name.to_string());
        Some(names.filter(|name| name != "main").collect())
    })
}

/// Elements of the box on the command line.
pub(crate) fn elements(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, |client| {
        let handlers = client.ask(&operation::LIST_HANDLERS, &[&first_operand()?]).ok()?;
        let mut names: Vec<String> = handlers.into_iter().map(|handler| handler.element).collect();
        names.retain(|name| !name.is_empty());
        names.dedup();
        Some(names)
    })
}

/// Files written by the box on the command line.
pub(crate) fn written_files(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, |client| {
        let files = client.ask(&operation::FILES, &[&first_operand()?]).ok()?;
        Some(files.into_iter().map(|file| file.name).collect())
    })
}

/// The first word after the command on the line being completed. The shell passes its words after `--`.
fn first_operand() -> Option<String> {
    let mut words = std::env::args().skip_while(|word| word != "--").skip(3);
    words.find(|word| !word.starts_with('-'))
}

/// Names of stacks.
pub(crate) fn stacks(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, |client| {
        let stacks = client.ask(&operation::LIST_STACKS, &[]).ok()?;
        Some(stacks.iter().map(|status| status.name.to_string()).collect())
    })
}

fn service_names(client: &Client) -> Option<Vec<String>> {
    let services = client.ask(&operation::LIST_SERVICES, &[]).ok()?;
    Some(services.iter().map(|status| status.name.to_string()).collect())
}

fn chain_names(client: &Client) -> Option<Vec<String>> {
    let chains = client.ask(&operation::LIST_CHAINS, &[]).ok()?;
    let mut names: Vec<String> = chains.iter().map(|detail| detail.status.chain.name.to_string()).collect();
    sorting::sort(&mut names);
    names.dedup();
    Some(names)
}

/// Names of services.
pub(crate) fn services(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, service_names)
}

/// Names of chains.
pub(crate) fn chains(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, chain_names)
}

/// What instances of services may send to: services, ports as port:NAME, and chains as chain:NAME.
pub(crate) fn destinations(current: &OsStr) -> Vec<CompletionCandidate> {
    let text = current.to_string_lossy();
    let (kind, found) = match text.split_once(':') {
        Some(("port", start)) => ("port", ports(OsStr::new(start))),
        Some(("chain", start)) => ("chain", chains(OsStr::new(start))),
        _ => return services(current),
    };
    let named = found.iter().map(|name| format!("{kind}:{}", name.get_value().to_string_lossy()));
    named.map(CompletionCandidate::new).collect()
}

/// What can be shown: boxes, and services and chains after their kind.
pub(crate) fn objects(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, |client| {
        let services = service_names(client).unwrap_or_default().into_iter();
        let chains = chain_names(client).unwrap_or_default().into_iter();
        let others =
            services.map(|name| format!("service/{name}")).chain(chains.map(|name| format!("chain/{name}")));
        Some(box_names(client)?.into_iter().chain(others).collect())
    })
}
