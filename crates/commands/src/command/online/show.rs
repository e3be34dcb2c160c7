//! `clickbox show`: shows a box in detail.

use std::fmt::Write;
use std::process::ExitCode;

use api::{
    BoxDetail, BoxName, ChainName, ConfigurationName, ConfigurationStatus, CrashReport, DiscardedPackets,
    HandlerPath, Limits, LostPackets, PacketPlaces, ServiceName, SwitchName, Traffic, WaitingPackets,
    operation,
};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use super::{chain, service};
use crate::error::{ChoiceError, CommandError};
use crate::number_format::{bytes, count, grouped};
use crate::online::{self, Client, Connection};
use crate::output;
use crate::value::ValueError;

/// Show the details of a box, a service or a chain.
///
/// Of a box, prints its ports, configurations, resource usage and last crash; the writes to its handlers that changed its
/// configuration, and that its definition does not have; and what became of its packets: which were dropped,
/// by reason and element; which were discarded, by the connection that led there; and which wait, with the age of the
/// oldest.
#[derive(Args)]
#[command(
    after_help = "Examples: clickbox show fw\n          clickbox show service/ids\n          clickbox show chain/web"
)]
pub(crate) struct Arguments {
    /// Name of the box, service/NAME, or chain/NAME or chain/SWITCH/NAME. If there is no box of a name, the service or the chain
    /// of that name.
    #[arg(value_name = "BOX", value_parser = shown, add = ArgValueCompleter::new(online::objects))]
    name: Shown,
    /// Print the text of a configuration instead, of `main` unless NAME is given.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "main", conflicts_with = "json")]
    configuration: Option<api::ConfigurationName>,
    /// Print JSON: the box, the service or the chain.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// How `show` is told the switch of a chain.
const CHAIN_WITH_SWITCH: &str = "chain/SWITCH/NAME";

/// What is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shown {
    /// A box, or if there is none, the service or the chain of that name.
    Named(BoxName),
    Box(BoxName),
    Service(ServiceName),
    /// A chain, at a switch if one is named.
    Chain(Option<SwitchName>, ChainName),
}

/// `NAME`, `box/BOX`, `service/NAME`, `chain/NAME` or `chain/SWITCH/NAME`.
fn shown(text: &str) -> Result<Shown, ValueError> {
    let parts: Vec<&str> = text.split('/').collect();
    Ok(match parts.as_slice() {
        ["service", name] => Shown::Service(name.parse()?),
        ["chain", name] => Shown::Chain(None, name.parse()?),
        ["chain", switch, name] => Shown::Chain(Some(switch.parse()?), name.parse()?),
        ["box", name] => Shown::Box(name.parse()?),
        [name] => Shown::Named(name.parse()?),
        _ => {
            return Err(ValueError::Form(
                "a box, service/NAME, chain/NAME or chain/SWITCH/NAME; `clickbox switch show` shows switches",
            ));
        }
    })
}

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    let client = arguments.daemon.client()?;
    match &arguments.name {
        Shown::Box(name) => show_box(&client, name.as_str(), arguments)?,
        Shown::Service(name) => show_service(&client, name.as_str(), arguments.json)?,
        Shown::Chain(switch, name) => {
            chain::show(
                &online::chosen_chain(&client, switch.as_ref(), name, CHAIN_WITH_SWITCH)?,
                arguments.json,
            );
        }
        Shown::Named(name) => match show_box(&client, name.as_str(), arguments) {
            Err(error) if error.is_not_found() && arguments.configuration.is_none() => {
                show_other(&client, name, arguments.json, error)?;
            }
            done => done?,
        },
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the service or the chain of a name. `error` says that there is no such box.
fn show_other(
    client: &Client,
    name: &BoxName,
    is_json: bool,
    error: CommandError,
) -> Result<(), CommandError> {
    let (text, none) = (name.as_str(), || CommandError::NoneNamed(name.clone()));
    if show_service(client, text, is_json).is_ok() {
        return Ok(());
    }
    match online::chosen_chain(client, None, &text.parse().map_err(|_| none())?, CHAIN_WITH_SWITCH) {
        Ok(chain) => {
            chain::show(&chain, is_json);
            Ok(())
        }
        Err(several @ CommandError::Choice(ChoiceError::SeveralChains(..))) => Err(several),
        Err(_) => Err(match error {
            CommandError::Client(_) => none(),
            advised => advised,
        }),
    }
}

fn show_service(client: &Client, name: &str, is_json: bool) -> Result<(), CommandError> {
    service::show(&client.ask(&operation::SHOW_SERVICE, &[name])?, is_json);
    Ok(())
}

fn show_box(client: &Client, name: &str, arguments: &Arguments) -> Result<(), CommandError> {
    if let Some(configuration) = &arguments.configuration {
        let text = client.ask(&operation::SHOW_CONFIGURATION, &[name, configuration.as_str()])?;
        output::text(&text.configuration);
        return Ok(());
    }
    let detail = client.ask(&operation::SHOW_BOX, &[name])?;
    if arguments.json {
        output::json(&detail);
    } else {
        output::text(&text(&detail, &forms(client, &detail)));
    }
    Ok(())
}

/// For each configuration, the forms in which its elements keep rules: a line for each element. A box that can't be asked,
/// because it does not run or its image does not know, has none.
fn forms(client: &Client, detail: &BoxDetail) -> Vec<String> {
    let form = |installed: &ConfigurationStatus| {
        let path = HandlerPath {
            name: detail.status.name.clone(),
            configuration: installed.name.clone(),
            handler: "forms".into(),
        };
        let value = client.ask(&operation::READ, &[path.name.as_str(), &path.rest()]);
        value.map_or_else(|_| String::new(), |value| value.value.text().into())
    };
    detail.installed.iter().map(form).collect()
}

fn text(detail: &BoxDetail, forms: &[String]) -> String {
    let status = &detail.status;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<16}{value}");
    };
    let runs_in = online::runs_in(status.sandbox);
    let pid = status.pid.map_or(String::new(), |pid| format!(", process {pid}"));
    line("name", status.name.to_string());
    line("state", format!("{}, {runs_in}{pid}", online::state(status.state)));
    line("owner", status.owner.to_string());
    for (key, value) in &status.labels {
        line("label", online::line(&format!("{key}={value}")));
    }
    if let Some(stack) = &status.stack {
        line("stack", stack.to_string());
    }
    if let Some(service) = &status.service {
        line("service", service.to_string());
    }
    if let Some(image) = &detail.image {
        line("image", image.to_string());
    }
    line("created", format!("{} ({} ago)", status.created, online::ago(status.created)));
    if let Some(started) = status.started {
        let boot = status.boot_ms.map_or(String::new(), |time| format!(", in {time:.2} ms"));
        line("started", format!("{started}{boot}; {}", count(status.restarts.into(), "restart")));
    }
    let limit = status.cpu_limit.map_or("no limit".into(), |limit| format!("at most {limit} CPUs"));
    let dedicated = match (status.dedicated, status.processor) {
        (true, Some(number)) => format!(", CPU {number} of its own"),
        (true, None) => ", a CPU of its own".into(),
        (false, _) => String::new(),
    };
    line("cpu", format!("weight {}, {limit}{dedicated}", status.cpu_weight));
    if !status.cores.is_one() {
        let times: Vec<String> =
            status.core_ns.iter().map(|ns| format!("{:.3} s", *ns as f64 / 1e9)).collect();
        let times = if times.is_empty() { String::new() } else { format!(", CPU time {}", times.join(", ")) };
        line("cores", format!("{}{times}", status.cores));
    }
    let [memory, heap] = [status.usage.memory, status.usage.heap].map(|size| bytes(size.0 as f64));
    line("memory", format!("{memory} of {} touched, heap {heap}", status.memory));
    if status.share_packets {
        line("packets", "in a pool shared with other boxes of its owner".into());
    }
    let milliseconds = |time: u64| time as f64 / 1e6;
    line(
        "time used",
        format!(
            "{:.1} ms of its own, {:.1} ms of switches; preempted {}",
            milliseconds(status.usage.own_ns),
            milliseconds(status.usage.switch_ns),
            count(status.usage.overstays, "time")
        ),
    );
    line("traffic", traffic_text(&status.traffic));
    for port in &detail.ports {
        line(
            &format!("port {}", port.number),
            format!("{} {}: {}", port.attach, port.mac, traffic_text(&port.traffic)),
        );
        let limits = limits_text(&port.limits);
        if !limits.is_empty() {
            line("", limits);
        }
    }
    for (number, installed) in detail.installed.iter().enumerate() {
        line(
            "configuration",
            format!(
                "{}, since {}, {}",
                installed.name,
                installed.installed,
                count(installed.swaps.into(), "swap")
            ),
        );
        let forms = forms.get(number).map_or("", String::as_str);
        forms.lines().for_each(|form| line("", online::line(form)));
    }
    for (reason, packets) in &status.drops {
        line("dropped", format!("{} {}", grouped(*packets), online::line(reason)));
        // Reasons of users' functions, and of a newer daemon, have no description here.
        if let Some(reason) = reason::Reason::find(reason) {
            line("", format!("{} {}", reason.summary(), reason.remedy()));
        }
    }
    text += &drift_text(detail);
    text += &packets_text(detail);
    if let Some(crash) = &detail.crash {
        text += &crash_text(crash);
    }
    text
}

/// Writes to handlers that changed the configuration.
fn drift_text(detail: &BoxDetail) -> String {
    if detail.writes.is_empty() && detail.omitted_writes == 0 {
        return String::new();
    }
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<16}{value}");
    };
    let what = count(detail.writes.len() as u64 + detail.omitted_writes, "handler write");
    let own = detail.writes.iter().filter(|write| write.is_own()).count();
    let fate = match (detail.keep_writes, own) {
        (false, _) => "lost at the next start",
        (true, 0) => "repeated after each start",
        (true, _) => "repeated after each start, but for those of the box itself",
    };
    line("drift", format!("{what} that the definition does not have, {fate}"));
    if detail.omitted_writes > 0 {
        line("", format!("{} of them are no longer known", detail.omitted_writes));
    }
    for write in &detail.writes {
        line("", online::drift(write));
    }
    text
}

/// The limits of a port, if there are any.
fn limits_text(limits: &Limits) -> String {
    let rate = |most: Option<u64>, what: &str| most.map(|most| format!("at most {} {what}/s", grouped(most)));
    let bound: Vec<String> = limits.bind_ip.iter().map(|prefix| prefix.to_string()).collect();
    let parts = [
        rate(limits.frames, "frames"),
        rate(limits.bits, "bits"),
        rate(limits.broadcasts, "broadcasts"),
        rate(limits.new_addresses, "new addresses"),
        limits.source.map(|source| format!("sends from {source}")),
        limits.transparent.then(|| "transparent".to_string()),
        (!bound.is_empty()).then(|| format!("bound to {}", bound.join(", "))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// What became of the packets, and where.
fn packets_text(detail: &BoxDetail) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<16}{value}");
    };
    let PacketPlaces { losses, discards, waits } = &detail.places;
    let sentence = |packets: u64, what: &str| format!("{} {}", grouped(packets), online::line(what));
    for LostPackets { configuration, element, reason, packets } in losses {
        let element = online::line(&place(configuration, element));
        line("dropped in", format!("{element}: {}", sentence(*packets, reason)));
    }
    let account = &detail.status.account;
    if account.discarded > 0 {
        line("discarded", format!("{} packets", grouped(account.discarded)));
    }
    for DiscardedPackets { configuration, connection, packets } in discards {
        line("", sentence(*packets, &place(configuration, connection)));
    }
    if account.waiting > 0 {
        let oldest = waited(account.oldest_ns);
        line("waiting", format!("{} packets, the oldest for {oldest}", grouped(account.waiting)));
    }
    for WaitingPackets { configuration, element, packets, oldest_ns } in waits {
        let element = online::line(&place(configuration, element));
        line("", format!("{} in {element}, the oldest for {}", grouped(*packets), waited(*oldest_ns)));
    }
    let counts = account.counters().into_iter().filter(|(_, count)| *count > 0);
    let counts: Vec<String> = counts.map(|(fate, count)| format!("{} {fate}", grouped(count))).collect();
    if !counts.is_empty() {
        line("packets inside", counts.join(", "));
    }
    text
}

/// An element or a connection, with the configuration as in the name of a handler.
fn place(configuration: &ConfigurationName, name: &str) -> String {
    match *configuration == ConfigurationName::main() {
        true => name.into(),
        false => format!("{configuration}:{name}"),
    }
}

/// A time that a packet has waited.
fn waited(nanoseconds: u64) -> String {
    match nanoseconds as f64 / 1e9 {
        seconds if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        seconds => format!("{seconds:.1} s"),
    }
}

fn traffic_text(traffic: &Traffic) -> String {
    format!(
        "in {} packets, {} bytes; out {} packets, {} bytes",
        grouped(traffic.received_packets),
        grouped(traffic.received_bytes),
        grouped(traffic.sent_packets),
        grouped(traffic.sent_bytes)
    )
}

fn crash_text(crash: &CrashReport) -> String {
    let mut text = format!("last crash      {} {}\n", crash.time, online::line(&crash.cause));
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let _ = writeln!(text, "  {name:<14}{}", online::line(&value));
        }
    };
    line("configuration", crash.configuration.clone());
    line("element", crash.element.clone());
    line("message", Some(crash.message.clone()));
    line("function", crash.function.clone());
    line("address", crash.address.map(|address| format!("{address:#x}")));
    for registers in crash.registers.chunks(4) {
        let register = |register: &api::Register| format!("{:>6} {:<18}", register.name, register.value);
        line("registers", Some(registers.iter().map(register).collect()));
    }
    let packet = crash.packet.as_ref().map(|packet| packet.0.as_slice()).unwrap_or_default();
    for (row, bytes) in packet.chunks(16).enumerate() {
        line("packet", Some(format!("{:04x}  {}", 16 * row, hexadecimal(bytes))));
    }
    let Some(batch) = crash.batch.as_ref().filter(|batch| batch.count > 1) else { return text };
    line("batch", Some(format!("{} packets, any of which may be the cause", batch.count)));
    for (number, packet) in (1..).zip(&batch.packets) {
        let start = packet.start.0.get(..BATCH_PACKET_BYTES).unwrap_or(&packet.start.0);
        line("", Some(format!("{number:>3} {:>5} bytes  {}", packet.length, hexadecimal(start))));
    }
    text
}

/// Bytes shown of each packet in a crashed box's batch: as many as fit on a line.
const BATCH_PACKET_BYTES: usize = 14;

fn hexadecimal(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_their_kind_before_their_name() {
        let [fw, lan, web] = ["fw", "lan", "web"];
        let chain = |switch: Option<&str>| {
            Shown::Chain(switch.map(|name| name.parse().expect("a name")), web.parse().expect("a name"))
        };
        let name = || fw.parse().expect("a name");
        for (text, expected) in [
            ("fw", Shown::Named(name())),
            ("box/fw", Shown::Box(name())),
            ("service/fw", Shown::Service(fw.parse().expect("a name"))),
            ("chain/web", chain(None)),
            ("chain/lan/web", chain(Some(lan))),
        ] {
            assert_eq!(shown(text), Ok(expected), "{text}");
        }
        assert!(
            ["", "chain/", "chain/a/b/c", "switch/lan", "service/"].map(shown).iter().all(Result::is_err)
        );
    }
}
