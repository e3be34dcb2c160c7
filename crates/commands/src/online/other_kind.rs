//! What has the name that a command takes for that of a box.

use api::client::Client;
use api::{ServiceStatus, operation};

/// What has this name, if no box has it, and what to type for it. `is_capture`: the command captures packets.
pub(super) fn advice(client: &Client, name: &str, is_capture: bool) -> Option<String> {
    let services = client.ask(&operation::LIST_SERVICES, &[]).unwrap_or_default();
    if let Some(advice) = services.iter().find_map(|service| of_service(service, name, is_capture)) {
        return Some(advice);
    }
    let switches = client.ask(&operation::LIST_SWITCHES, &[]).unwrap_or_default();
    if switches.iter().any(|status| status.name.as_str() == name) {
        return Some(of_switch(name, is_capture));
    }
    let chains = client.ask(&operation::LIST_CHAINS, &[]).unwrap_or_default();
    let mut chains = chains.iter().map(|detail| &detail.status.chain);
    if chains.any(|chain| chain.name.as_str() == name) {
        return Some(format!("{name} is a chain: `clickbox chain show {name}` shows it"));
    }
    let stacks = client.ask(&operation::LIST_STACKS, &[]).unwrap_or_default();
    let is_stack = stacks.iter().any(|status| status.name.as_str() == name);
    is_stack.then(|| format!("{name} is a stack: `clickbox ps` lists its boxes"))
}

fn of_switch(name: &str, is_capture: bool) -> String {
    match is_capture {
        true => format!(
            "{name} is a switch: name its port, as in {name}/PORT (`clickbox port ls {name}` lists them)"
        ),
        false => format!("{name} is a switch: `clickbox switch show {name}` shows it"),
    }
}

/// The advice if the name is that of the service, or of a function that joined it.
fn of_service(service: &ServiceStatus, name: &str, is_capture: bool) -> Option<String> {
    let (own, are_functions) = (service.name.as_str(), service.socket.is_some());
    let instance = service.instances.iter().find(|instance| instance.name.as_str() == name);
    if are_functions && instance.is_some() {
        return Some(match is_capture {
            true => format!(
                "{name} is a function of service {own}: its port is captured by `clickbox capture {}/{name}.{}`",
                service.switch, service.faces.inner
            ),
            false => format!("{name} is a function of service {own}: `clickbox service show {own}` shows it"),
        });
    }
    if own != name {
        return None;
    }
    Some(match service.instances.first() {
        Some(first) if !are_functions => format!(
            "{name} is a service: name one of its instances, as {} (`clickbox service show {name}` lists them)",
            first.name
        ),
        _ => format!("{name} is a service: `clickbox service show {name}` shows it"),
    })
}
