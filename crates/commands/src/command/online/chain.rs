//! `clickbox chain`: lists of services that packets pass.

use std::process::ExitCode;

use api::{
    ChainDetail, ChainName, CreateChain, HopRates, HopStatus, HopTraffic, PortName, RemoveQuery, ServiceName,
    SwitchName, operation,
};
use clap::{ArgGroup, Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use crate::error::CommandError;
use crate::number_format::grouped;
use crate::online::{self, Client, Column, Connection, Table};
use crate::output;
use crate::value::ValueError;

/// Manage chains of services.
#[derive(Args)]
#[command(
    after_help = "Examples: clickbox chain create web firewall nat ids --from lan.uplink --to wan0 --both-ways\n          clickbox chain ls"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: ChainCommand,
}

#[derive(Subcommand)]
enum ChainCommand {
    /// Create a chain.
    ///
    /// Packets from the port of --from take the chain unless a flow says otherwise; without it, only flows send packets to
    /// the chain (`clickbox flow add --chain`).
    #[command(
        after_help = "Example: clickbox chain create web firewall nat ids --from lan.uplink --to wan0 --both-ways"
    )]
    Create(Create),
    /// Change a chain under traffic.
    ///
    /// Packets under way finish the previous chain. What the command does not name stays.
    #[command(
        after_help = "Examples: clickbox chain set web firewall ids\n          clickbox chain set web --to wan1 --one-way"
    )]
    Set(Set),
    /// Remove chains.
    ///
    /// A chain to which flows send packets, or services may send them, is removed only by force. Packets of these flows are then
    /// dropped. What services send there stays in its chain.
    #[command(visible_alias = "remove", after_help = "Example: clickbox chain rm web")]
    Rm(Remove),
    /// List the chains of a switch, or of all switches.
    #[command(
        visible_alias = "list",
        after_help = "Examples: clickbox chain ls\n          clickbox chain ls lan"
    )]
    Ls(Listing),
    /// Show the hops of a chain: rate, loss, queueing and time.
    #[command(after_help = "Example: clickbox chain show web")]
    Show(Named),
}

#[derive(Args)]
struct Create {
    /// Name of the chain.
    name: ChainName,
    /// Services that packets pass, in the forward direction.
    #[arg(value_name = "SERVICE", required = true, add = ArgValueCompleter::new(online::services))]
    services: Vec<ServiceName>,
    /// Port whose packets take the chain, as PORT or SWITCH.PORT.
    #[arg(long, value_name = "[SWITCH.]PORT", add = ArgValueCompleter::new(online::ports))]
    from: Option<String>,
    /// Port that packets leave through, as PORT or SWITCH.PORT.
    #[arg(long, value_name = "[SWITCH.]PORT", add = ArgValueCompleter::new(online::ports))]
    to: String,
    /// Packets from the port of --to pass the chain in reverse, and leave through the port of --from.
    #[arg(long, requires = "from")]
    both_ways: bool,
    /// Switch of the chain. Default: that of --from or --to, or the only steering switch.
    #[arg(long, value_name = "SWITCH", add = ArgValueCompleter::new(online::switches))]
    switch: Option<SwitchName>,
    /// Print JSON: the chain.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// A port, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OptionalPort(Option<PortName>);

fn optional_port(text: &str) -> Result<OptionalPort, ValueError> {
    match text {
        "-" => Ok(OptionalPort(None)),
        name => Ok(OptionalPort(Some(name.parse()?))),
    }
}

#[derive(Args)]
#[command(group(
    ArgGroup::new("change").required(true).multiple(true).args(["services", "from", "to", "both_ways", "one_way"])
))]
#[command(override_usage = "clickbox chain set [OPTIONS] <CHAIN> [SERVICE]...")]
struct Set {
    /// Name of the chain.
    #[arg(value_name = "CHAIN", add = ArgValueCompleter::new(online::chains))]
    name: ChainName,
    /// Services that packets pass, in the forward direction.
    #[arg(value_name = "SERVICE", add = ArgValueCompleter::new(online::services))]
    services: Vec<ServiceName>,
    /// Port whose packets take the chain, or `-` for none.
    #[arg(
        long,
        value_name = "PORT|-",
        value_parser = optional_port,
        allow_hyphen_values = true,
        add = ArgValueCompleter::new(online::ports)
    )]
    from: Option<OptionalPort>,
    /// Port that packets leave through.
    #[arg(long, value_name = "PORT", add = ArgValueCompleter::new(online::ports))]
    to: Option<PortName>,
    /// Packets from the port of --to pass the chain in reverse.
    #[arg(long, conflicts_with = "one_way")]
    both_ways: bool,
    /// No packets pass the chain in reverse.
    #[arg(long)]
    one_way: bool,
    /// Switch of the chain, if several have one of this name.
    #[arg(long, value_name = "SWITCH", add = ArgValueCompleter::new(online::switches))]
    switch: Option<SwitchName>,
    /// Print JSON: the chain.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

#[derive(Args)]
struct Remove {
    /// Names of the chains.
    #[arg(value_name = "CHAIN", required = true, add = ArgValueCompleter::new(online::chains))]
    names: Vec<ChainName>,
    /// Switch of the chains, if several have chains of these names.
    #[arg(long, value_name = "SWITCH", add = ArgValueCompleter::new(online::switches))]
    switch: Option<SwitchName>,
    /// Also remove chains to which flows send packets, or services may.
    #[arg(long, short)]
    force: bool,
    /// Print JSON: an empty object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

#[derive(Args)]
struct Listing {
    /// Switch of the chains. Default: all switches.
    #[arg(value_name = "SWITCH", add = ArgValueCompleter::new(online::switches))]
    switch: Option<SwitchName>,
    /// Print JSON: a list of chains.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

#[derive(Args)]
struct Named {
    /// Name of the chain.
    #[arg(value_name = "CHAIN", add = ArgValueCompleter::new(online::chains))]
    name: ChainName,
    /// Switch of the chain, if several have one of this name.
    #[arg(long, value_name = "SWITCH", add = ArgValueCompleter::new(online::switches))]
    switch: Option<SwitchName>,
    /// Print JSON: the chain.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

const CHAINS: &[Column] = &[
    Column::flexible("NAME", 10),
    Column::flexible("SWITCH", 8),
    Column::flexible("SERVICES", 16),
    Column::text("FROM"),
    Column::text("TO"),
    Column::text("WAYS"),
    Column::number("LEFT"),
    Column::number("LOST"),
];

/// The columns of hops.
pub(super) const HOPS: &[Column] = &[
    Column::flexible("SERVICE", 10),
    Column::text("WAY"),
    Column::number("IN/S"),
    Column::number("b/S"),
    Column::number("LOST/S"),
    Column::number("PACKETS"),
    Column::number("LOST"),
    Column::number("WAITING"),
    Column::number("TIME"),
];

/// Runs `chain`.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    match &arguments.what {
        ChainCommand::Create(create) => {
            let client = create.daemon.client()?;
            let request = wanted(&client, create)?;
            let detail = client.send(&operation::CREATE_CHAIN, &[], &request)?;
            report(&detail, create.json);
        }
        ChainCommand::Set(set) => {
            let client = set.daemon.client()?;
            let there = online::chosen_chain(&client, set.switch.as_ref(), &set.name, online::SWITCH_OPTION)?
                .status
                .chain;
            let request = changed(there, set);
            let path = [request.switch.as_str(), request.name.as_str()];
            let detail = client.send(&operation::SET_CHAIN, &path, &request)?;
            report(&detail, set.json);
        }
        ChainCommand::Rm(remove) => {
            let client = remove.daemon.client()?;
            let query = RemoveQuery { force: remove.force };
            for name in &remove.names {
                let there =
                    online::chosen_chain(&client, remove.switch.as_ref(), name, online::SWITCH_OPTION)?
                        .status
                        .chain;
                let path = [there.switch.as_str(), there.name.as_str()];
                client.call(&operation::REMOVE_CHAIN, &path, &query, &())?;
            }
            online::print_success(remove.json);
        }
        ChainCommand::Ls(listing) => {
            let client = listing.daemon.client()?;
            let mut chains = client.ask(&operation::LIST_CHAINS, &[])?;
            if let Some(switch) = &listing.switch {
                online::require_switch(&client, switch)?;
                chains.retain(|detail| detail.status.chain.switch == *switch);
            }
            if listing.json {
                output::json(&chains);
            } else {
                let table = Table { columns: CHAINS, rows: chains.iter().map(row).collect() };
                let none = online::none_of("chains", listing.switch.as_ref());
                let how = "create one with `clickbox chain create NAME SERVICE... --to PORT`";
                online::print(&table, &format!("{none}: {how}"));
            }
        }
        ChainCommand::Show(named) => {
            let client = named.daemon.client()?;
            show(
                &online::chosen_chain(&client, named.switch.as_ref(), &named.name, online::SWITCH_OPTION)?,
                named.json,
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The definition of a new chain. Its switch is the one that is named, also in front of a port, or the only one.
fn wanted(client: &Client, create: &Create) -> Result<CreateChain, CommandError> {
    let switches = online::steering_switches(client)?;
    let split = |text: &String| online::split_port(text, &switches).map_err(CommandError::UserName);
    let (of_start, from) = match &create.from {
        Some(text) => split(text).map(|(switch, port)| (switch, Some(port)))?,
        None => (None, None),
    };
    let (of_end, to) = split(&create.to)?;
    let switch = online::same_switch([create.switch.clone(), of_start, of_end])?;
    Ok(CreateChain {
        name: create.name.clone(),
        switch: online::chosen_switch(client, switch.as_ref(), online::SWITCH_OPTION)?,
        services: create.services.clone(),
        from,
        to,
        both_ways: create.both_ways,
    })
}

/// The definition of a chain with the changes that the options ask for.
fn changed(there: CreateChain, set: &Set) -> CreateChain {
    CreateChain {
        services: if set.services.is_empty() { there.services } else { set.services.clone() },
        from: set.from.clone().map_or(there.from, |OptionalPort(port)| port),
        to: set.to.clone().unwrap_or(there.to),
        both_ways: (there.both_ways || set.both_ways) && !set.one_way,
        name: there.name,
        switch: there.switch,
    }
}

/// Prints a chain after a change.
fn report(detail: &ChainDetail, is_json: bool) {
    match is_json {
        true => output::json(detail),
        false => output::text(&format!("{}\n", sentence(&detail.status.chain))),
    }
}

/// A chain in a line.
fn sentence(chain: &CreateChain) -> String {
    let arrow = if chain.both_ways { " <-> " } else { " -> " };
    let start = chain.from.as_ref().map_or("flows", |port| port.as_str());
    let services = chain.services.iter().map(ServiceName::as_str);
    let stations: Vec<&str> = std::iter::once(start).chain(services).chain([chain.to.as_str()]).collect();
    format!("{} at switch {}: {}", chain.name, chain.switch, stations.join(arrow))
}

/// Prints the details of a chain.
pub(super) fn show(detail: &ChainDetail, is_json: bool) {
    if is_json {
        return output::json(detail);
    }
    output::text(&format!("{}\n\n", sentence(&detail.status.chain)));
    online::print(&Table { columns: HOPS, rows: hop_rows(detail) }, "the chain has no hops");
    let [forward, reverse] = detail.status.left;
    let mut text = format!("\nleft {}: {}\n", detail.status.chain.to, traffic(&forward));
    if has_reverse(detail) {
        let from = detail.status.chain.from.as_ref().map_or("in reverse", |port| port.as_str());
        text += &format!("left {from}: {}\n", traffic(&reverse));
    }
    output::text(&text);
}

fn traffic(traffic: &HopTraffic) -> String {
    let HopTraffic { packets, bytes, lost } = *traffic;
    format!("{} packets, {} bytes; {} lost", grouped(packets), grouped(bytes), grouped(lost))
}

/// Whether packets pass a chain in reverse. Those of flows that a function gave the chain do, whatever its definition says.
fn has_reverse(detail: &ChainDetail) -> bool {
    let passed = |[_, reverse]: [HopTraffic; 2]| reverse.packets > 0 || reverse.lost > 0;
    detail.status.chain.both_ways
        || detail.status.hops.iter().any(|hop| passed(hop.traffic))
        || passed(detail.status.left)
}

/// A row for each hop and direction, in the forward direction first.
pub(super) fn hop_rows(detail: &ChainDetail) -> Vec<Vec<String>> {
    let hops = &detail.status.hops;
    let rates = |number: usize, way: usize| detail.rates.get(number).map(|both| both[way]);
    let forward = hops.iter().enumerate().map(|(number, hop)| hop_row(hop, 0, rates(number, 0)));
    let reverse = hops.iter().enumerate().rev().map(|(number, hop)| hop_row(hop, 1, rates(number, 1)));
    match has_reverse(detail) {
        true => forward.chain(reverse).collect(),
        false => forward.collect(),
    }
}

fn hop_row(hop: &HopStatus, way: usize, rates: Option<HopRates>) -> Vec<String> {
    let rate = |figure: fn(HopRates) -> f64| rates.map_or("-".into(), |rates| online::rate(figure(rates)));
    let HopTraffic { packets, lost, .. } = hop.traffic[way];
    // Both are measured over both directions.
    let mean_ns = hop.mean_ns.filter(|_| packets > 0);
    vec![
        hop.service.to_string(),
        ["forward", "reverse"][way].to_string(),
        rate(|rates| rates.packets),
        rate(|rates| rates.bits),
        rate(|rates| rates.lost),
        grouped(packets),
        grouped(lost),
        grouped(hop.waiting),
        mean_ns.map_or("-".into(), time),
    ]
}

/// A time in the hop.
fn time(nanoseconds: u64) -> String {
    match nanoseconds as f64 {
        nanoseconds if nanoseconds < 1e3 => format!("{nanoseconds:.0} ns"),
        nanoseconds if nanoseconds < 1e6 => format!("{:.1} us", nanoseconds / 1e3),
        nanoseconds => format!("{:.1} ms", nanoseconds / 1e6),
    }
}

fn row(detail: &ChainDetail) -> Vec<String> {
    let chain = &detail.status.chain;
    let names: Vec<&str> = chain.services.iter().map(ServiceName::as_str).collect();
    let sum = |figure: fn(&HopTraffic) -> u64, all: &[HopTraffic]| {
        grouped(all.iter().map(figure).fold(0, u64::saturating_add))
    };
    let mut places: Vec<HopTraffic> = detail.status.hops.iter().flat_map(|hop| hop.traffic).collect();
    places.extend(detail.status.left);
    vec![
        chain.name.to_string(),
        chain.switch.to_string(),
        names.join(" "),
        chain.from.as_ref().map_or("-".into(), ToString::to_string),
        chain.to.to_string(),
        if chain.both_ways { "both".into() } else { "one".into() },
        sum(|place| place.packets, &detail.status.left),
        sum(|place| place.lost, &places),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail() -> ChainDetail {
        serde_json::from_value(serde_json::json!({
            "name": "web", "switch": "lan", "services": ["fw", "ids"], "from": "uplink", "to": "wan0",
            "both_ways": true,
            "hops": [
                { "service": "fw", "mean_ns": 740, "waiting": 1200, "traffic": [
                    { "packets": 2000, "bytes": 1, "lost": 3 }, { "packets": 0, "bytes": 0, "lost": 0 }
                ] },
                { "service": "ids", "traffic": [
                    { "packets": 1997, "bytes": 1, "lost": 0 }, { "packets": 8, "bytes": 1, "lost": 1 }
                ] }
            ],
            "left": [{ "packets": 1997, "bytes": 1, "lost": 0 }, { "packets": 7, "bytes": 1, "lost": 0 }],
            "rates": [
                [{ "packets": 1e6, "bits": 5e8, "lost": 0.0 }, { "packets": 1.0, "bits": 8.0, "lost": 0.0 }],
                [{ "packets": 1e6, "bits": 5e8, "lost": 9.0 }, { "packets": 2.0, "bits": 16.0, "lost": 0.0 }]
            ]
        }))
        .expect("a chain")
    }

    #[test]
    fn hops_are_listed_as_packets_pass_them() {
        let rows: Vec<String> = hop_rows(&detail()).iter().map(|row| row.join(" ")).collect();
        assert_eq!(
            rows,
            [
                "fw forward 1.00M 500M 0 2,000 3 1,200 740 ns",
                "ids forward 1.00M 500M 9 1,997 0 0 -",
                "ids reverse 2 16 0 8 1 0 -",
                "fw reverse 1 8 0 0 0 1,200 -",
            ]
        );
        let mut one_way = detail();
        one_way.status.chain.both_ways = false;
        assert_eq!(hop_rows(&one_way).len(), 4, "packets of flows that functions gave it");
        one_way.status.hops.iter_mut().for_each(|hop| hop.traffic[1] = HopTraffic::default());
        one_way.status.left[1] = HopTraffic::default();
        assert_eq!(hop_rows(&one_way).len(), 2);
        assert_eq!(row(&detail()), ["web", "lan", "fw ids", "uplink", "wan0", "both", "2,004", "4"]);
        assert_eq!(sentence(&detail().status.chain), "web at switch lan: uplink <-> fw <-> ids <-> wan0");
        assert_eq!([740, 1500, 2_500_000].map(time), ["740 ns", "1.5 us", "2.5 ms"]);
    }

    #[test]
    fn what_is_not_named_stays() {
        use clap::Parser;
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            set: Set,
        }
        let set = |words: &[&str]| {
            let words = ["set", "web"].iter().chain(words);
            let line = Line::try_parse_from(words).map_err(|error| error.kind())?;
            Ok(sentence(&changed(detail().status.chain, &line.set)))
        };
        let chain = |words: &[&str]| set(words).expect("a command");
        assert_eq!(chain(&["nat", "--to", "wan1"]), "web at switch lan: uplink <-> nat <-> wan1");
        assert_eq!(chain(&["--from", "-", "--one-way"]), "web at switch lan: flows -> fw -> ids -> wan0");
        assert_eq!(set(&[]), Err(clap::error::ErrorKind::MissingRequiredArgument), "nothing to change");
    }
}
