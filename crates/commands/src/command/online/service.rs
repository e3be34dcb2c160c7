//! `clickbox service`: services, whose instances the packets of chains pass.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use api::{
    AddressRange, BoxName, CreateService, DEFAULT_SLICES, Destination, Faces, HandoverPhase, HandoverStatus,
    InstanceStatus, MAX_REPLICAS, OverruledAnswers, PortRequest, RefusedTuples, RemoveQuery,
    RemovedInstances, ReplicaRange, ScaleService as ScaleRequest, ServiceName, ServiceStatus, StaticMapping,
    SwitchName, Translation, TranslationStatus, operation,
};
use clap::{ArgGroup, Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use super::box_options::{BoxOptions, port};
use crate::error::CommandError;
use crate::number_format::{count, grouped};
use crate::online::{self, Column, ConfigBundle, Connection, Image, Milliseconds, Replicas, Table, Uploads};
use crate::output;
use crate::source::SourceText;
use crate::value::ValueError;

/// Manage services, whose instances packets pass in chains.
#[derive(Args)]
#[command(
    after_help = "Examples: clickbox service create ids ids.click --switch lan --replicas 2 --faces in=0,out=1\n          clickbox service scale ids 4\n          clickbox service scale ids --auto 1-4"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: ServiceCommand,
}

#[derive(Subcommand)]
enum ServiceCommand {
    /// Create a service with its instances.
    ///
    /// The instances are boxes with the names NAME-1, NAME-2 and so on. The configuration is checked first; if it has
    /// errors, or one instance can't be created, there is none. The ports that --faces names are attached to the switch.
    #[command(
        after_help = "Examples: clickbox service create ids ids.click --switch lan --replicas 2 --faces in=0,out=1\n          clickbox service create ids ids.click --may-send-to quarantine,port:wan\n          clickbox service create nat nat.click --replicas 2 --faces in=0,out=1 --translate 203.0.113.1:1024-65535\n          clickbox service create nf --container"
    )]
    Create(Box<Create>),
    /// Change the number of instances of a service.
    ///
    /// New instances get new flows only. Instances that are too many, those with the highest numbers, get no new flows.
    /// They are removed when they have none left, or after the time of --drain. The command does not wait for that.
    ///
    /// With --auto, the daemon changes the number by the load from now on, until the next `service scale` without it.
    #[command(
        after_help = "Examples: clickbox service scale ids 4\n          clickbox service scale ids 1 --drain 60\n          clickbox service scale ids --auto 1-4"
    )]
    Scale(Scale),
    /// Replace the configuration of all instances of a service without losing packets.
    ///
    /// The new configuration is checked first. Either all instances get it, or none. Instances keep their image: to run
    /// another one, create a second service with it, and put that into the chains (`clickbox chain set`).
    #[command(after_help = "Example: clickbox service reload ids ids.click")]
    Reload(Reload),
    /// Remove services with their instances.
    ///
    /// A service that chains lead through is removed only by force, together with these chains.
    #[command(visible_alias = "remove", after_help = "Example: clickbox service rm ids")]
    Rm(Remove),
    /// List the services of a switch, or of all switches.
    #[command(
        visible_alias = "list",
        after_help = "Examples: clickbox service ls\n          clickbox service ls lan"
    )]
    Ls(Listing),
    /// Show the instances of a service.
    #[command(after_help = "Example: clickbox service show ids")]
    Show(Named),
}

#[derive(Args)]
struct Create {
    /// Name of the service.
    name: ServiceName,
    /// Configuration file, or `-` for standard input. Without it, the image's own configuration. If the file is an image, it
    /// stands for --image.
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath, required_unless_present_any = ["image", "container"])]
    configuration: Option<String>,
    /// Image that the instances run in place of the built-in one: a file, or the digest of an image that another box runs.
    #[arg(long, value_name = "FILE|DIGEST", value_hint = clap::ValueHint::FilePath)]
    image: Option<String>,
    /// Let functions in containers and other processes join the service at a socket, in place of boxes. The command prints the
    /// socket. Its folder has the token that they need; mount the folder into a container.
    #[arg(long, conflicts_with_all = ["configuration", "image", "replicas", "attach", "sandbox", "memory", "ring"])]
    container: bool,
    /// Functions that may have joined the service at a time. Each counts as a box of the owner's quota. Default: 128.
    #[arg(long, value_name = "N", requires = "container", value_parser = clap::value_parser!(u16).range(1..=128))]
    places: Option<u16>,
    /// Let the functions join the packet pool of their owner: packets between them and boxes with --share-packets are not copied.
    /// Each function can then read and change all packets in the pool, and this can't be revoked: until the last of these boxes
    /// and functions has ended, also one that has left still can.
    #[arg(long, requires = "container")]
    trust_pool: bool,
    /// Steering switch of the service. Default: the only one.
    #[arg(long, value_name = "SWITCH", add = ArgValueCompleter::new(online::switches))]
    switch: Option<SwitchName>,
    /// Number of instances; or MIN-MAX, between which the daemon scales the service by its load.
    #[arg(long, value_name = "N|MIN-MAX", default_value_t)]
    replicas: Replicas,
    /// End an instance that takes none of the packets that wait for it for this time (such as 200ms). Its flows go on at
    /// others, and its restart policy (--restart) decides what follows. Default: never.
    #[arg(long, value_name = "TIME")]
    dead_after: Option<Milliseconds>,
    /// Ports through which the packets of chains pass: in=PORT, or in=PORT,out=PORT for a service with two sides.
    #[arg(long, value_name = "FACES", default_value_t)]
    faces: Faces,
    /// What the instances may send packets to beside the next service of a chain: a service, port:NAME, or chain:NAME. A plain
    /// name that is no service may be that of a port. May be repeated.
    #[arg(long, value_name = "DESTINATION", value_delimiter = ',', add = ArgValueCompleter::new(online::destinations))]
    may_send_to: Vec<Destination>,
    /// Addresses and ports that the service translates to, as ADDRESS:FIRST-LAST, or ADDRESS for all ports. They are divided
    /// into slices, of which instance N has the N-th: its configuration finds it in $TRANSLATE_ADDRESS and $TRANSLATE_PORTS.
    /// May be repeated.
    #[arg(long, value_name = "RANGE", value_delimiter = ',')]
    translate: Vec<AddressRange>,
    /// Number of slices of --translate, which is the highest number of instances. Default: 16.
    #[arg(long, value_name = "N", requires = "translate")]
    slices: Option<u16>,
    /// Packets from outside that need no earlier ones from inside, as 'tcp ADDRESS:PORT -> ADDRESS:PORT', the same with udp, or
    /// 'ADDRESS -> ADDRESS'. One instance gets all of them. May be repeated.
    #[arg(long = "static", value_name = "MAPPING", requires = "translate")]
    mappings: Vec<StaticMapping>,
    /// Add a port to the instances, as in clickbox create. The first is port 0; those that --faces names are given as `-`.
    #[arg(
        long,
        value_name = "SWITCH|-",
        value_parser = port,
        allow_hyphen_values = true,
        add = ArgValueCompleter::new(online::attachments)
    )]
    attach: Vec<PortRequest>,
    #[command(flatten)]
    options: BoxOptions,
    /// Print JSON: the service.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

#[derive(Args)]
#[command(group(ArgGroup::new("number").required(true).multiple(true).args(["replicas", "auto"])))]
#[command(override_usage = "clickbox service scale [OPTIONS] <SERVICE> [N]")]
struct Scale {
    /// Name of the service.
    #[arg(value_name = "SERVICE", add = ArgValueCompleter::new(online::services))]
    name: ServiceName,
    /// Number of instances. With --auto, the number to begin with, or the nearest one that is between MIN and MAX.
    #[arg(value_name = "N", value_parser = instances)]
    replicas: Option<u16>,
    /// Let the daemon scale the service by its load between these numbers. It begins with N, or with the present number.
    #[arg(long, value_name = "MIN-MAX")]
    auto: Option<ReplicaRange>,
    /// Seconds after which instances that are too many are removed even if they have flows.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    drain: u32,
    /// Print JSON: the service.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// A number of instances.
fn instances(text: &str) -> Result<u16, ValueError> {
    let number = text.parse().ok().filter(|number| (1..=MAX_REPLICAS).contains(number));
    number
        .ok_or(ValueError::Form("a number of instances from 1 to 128; a range, such as 1-4, follows --auto"))
}

#[derive(Args)]
struct Reload {
    /// Name of the service.
    #[arg(value_name = "SERVICE", add = ArgValueCompleter::new(online::services))]
    name: ServiceName,
    /// File of the new configuration, or `-` for standard input.
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    configuration: String,
    /// Copy another file into the instances, under the name that the configuration uses. May be repeated.
    #[arg(long = "file", value_name = "[NAME=]PATH")]
    files: Vec<String>,
    /// Print JSON: the service.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

#[derive(Args)]
struct Remove {
    /// Names of the services.
    #[arg(value_name = "SERVICE", required = true, add = ArgValueCompleter::new(online::services))]
    names: Vec<ServiceName>,
    /// Also remove services that chains lead through, and these chains.
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
    /// Switch of the services. Default: all switches.
    #[arg(value_name = "SWITCH", add = ArgValueCompleter::new(online::switches))]
    switch: Option<SwitchName>,
    /// Print JSON: a list of services.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

#[derive(Args)]
struct Named {
    /// Name of the service.
    #[arg(value_name = "SERVICE", add = ArgValueCompleter::new(online::services))]
    name: ServiceName,
    /// Print JSON: the service.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

const SERVICES: &[Column] = &[
    Column::flexible("NAME", 10),
    Column::flexible("SWITCH", 8),
    Column::number("REPLICAS"),
    Column::number("UP"),
    Column::number("DRAINING"),
    Column::number("FLOWS"),
    Column::number("PACKETS"),
    Column::number("OVERRULED"),
];

const INSTANCES: &[Column] = &[
    Column::flexible("INSTANCE", 10),
    Column::text("STATE"),
    Column::number("FLOWS"),
    Column::number("PACKETS"),
    Column::number("WAITING"),
    Column::number("LOST"),
    Column::number("OVERRULED"),
];

/// What is known of the instances of a translator.
const TRANSLATORS: &[Column] = &[
    Column::flexible("INSTANCE", 10),
    Column::text("RANGE"),
    Column::number("LEARNT"),
    Column::number("OUT OF RANGE"),
    Column::number("TAKEN"),
    Column::number("NO ROOM"),
];

/// What became of the flows of drained instances.
const HANDOVERS: &[Column] = &[
    Column::flexible("INSTANCE", 10),
    Column::text("HAND-OVER"),
    Column::number("HANDED OVER"),
    Column::number("KEPT"),
    Column::number("LOST"),
    Column::number("TAKEN OVER"),
    Column::flexible("PROBLEM", 20),
];

/// Runs `service`. Leaves the texts of configurations in `texts` for diagnostics.
pub(super) fn run(arguments: &Arguments, texts: &mut Vec<SourceText>) -> Result<ExitCode, CommandError> {
    match &arguments.what {
        ServiceCommand::Create(create) => self::create(create, texts)?,
        ServiceCommand::Scale(scale) => {
            let client = scale.daemon.client()?;
            let request =
                ScaleRequest { replicas: scale.replicas, auto: scale.auto, drain_seconds: scale.drain };
            let status = client.send(&operation::SCALE_SERVICE, &[scale.name.as_str()], &request)?;
            report(&status, scale.json);
        }
        ServiceCommand::Reload(reload) => {
            let files: Vec<_> = reload.files.iter().map(|text| online::file(text)).collect();
            let bundle = ConfigBundle::read(&reload.configuration, Path::new(""), &files)?;
            let mut request = bundle.install();
            texts.push(bundle.text);
            let client = reload.daemon.client()?;
            let uploads = Uploads::new(&client, &mut request)?;
            let status = client.send(&operation::RELOAD_SERVICE, &[reload.name.as_str()], &request)?;
            uploads.installed();
            report(&status, reload.json);
        }
        ServiceCommand::Rm(remove) => {
            let client = remove.daemon.client()?;
            let query = RemoveQuery { force: remove.force };
            for name in &remove.names {
                client.call(&operation::REMOVE_SERVICE, &[name.as_str()], &query, &())?;
            }
            online::print_success(remove.json);
        }
        ServiceCommand::Ls(listing) => {
            let client = listing.daemon.client()?;
            let mut services = client.ask(&operation::LIST_SERVICES, &[])?;
            if let Some(switch) = &listing.switch {
                online::require_switch(&client, switch)?;
                services.retain(|status| status.switch == *switch);
            }
            if listing.json {
                output::json(&services);
            } else {
                let table = Table { columns: SERVICES, rows: services.iter().map(row).collect() };
                let none = online::none_of("services", listing.switch.as_ref());
                online::print(
                    &table,
                    &format!("{none}: create one with `clickbox service create NAME FILE`"),
                );
            }
        }
        ServiceCommand::Show(named) => {
            let status = named.daemon.client()?.ask(&operation::SHOW_SERVICE, &[named.name.as_str()])?;
            show(&status, named.json);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn create(create: &Create, texts: &mut Vec<SourceText>) -> Result<(), CommandError> {
    if create.container {
        return create_for_functions(create);
    }
    let files = create.options.files();
    let (mut configuration, mut image) = (create.configuration.as_ref(), create.image.as_ref());
    if image.is_none() && configuration.is_some_and(|path| Image::is_at(Path::new(path))) {
        std::mem::swap(&mut configuration, &mut image);
    }
    let bundle = match configuration {
        Some(path) => ConfigBundle::read(path, Path::new(""), &files)?,
        None => ConfigBundle::of_image(create.name.as_str(), &files)?,
    };
    let image = image.map(|text| Image::read(text, Path::new(""))).transpose()?;
    let client = create.daemon.client()?;
    // The daemon gives instances their names.
    let instance = bundle.create(create.name.as_str().parse().map_err(CommandError::UserName)?);
    let (replicas, auto) = create.replicas.split();
    let mut request = CreateService {
        name: create.name.clone(),
        switch: online::chosen_switch(&client, create.switch.as_ref(), online::SWITCH_OPTION)?,
        instance: api::CreateBox { ports: create.attach.clone(), ..create.options.apply(instance) },
        faces: create.faces,
        replicas,
        auto,
        dead_after_ms: create.dead_after.map(|time| time.0),
        container: false,
        // Options of functions: the daemon says so.
        places: create.places,
        trust_pool: create.trust_pool,
        may_send_to: create.may_send_to.iter().cloned().collect(),
        translation: translation(create),
    };
    texts.push(bundle.text);
    let mut uploads = Uploads::new(&client, &mut request)?;
    request.instance.image = image.map(|image| image.upload(&mut uploads)).transpose()?;
    let status = client.send(&operation::CREATE_SERVICE, &[], &request)?;
    uploads.installed();
    report(&status, create.json);
    Ok(())
}

/// The translation that the options describe.
fn translation(create: &Create) -> Option<Translation> {
    (!create.translate.is_empty()).then(|| Translation {
        ranges: create.translate.clone(),
        slices: create.slices.unwrap_or(DEFAULT_SLICES),
        mappings: create.mappings.clone(),
    })
}

/// Creates a service whose instances join by themselves.
fn create_for_functions(create: &Create) -> Result<(), CommandError> {
    let client = create.daemon.client()?;
    let name = create.name.as_str().parse().map_err(CommandError::UserName)?;
    let (replicas, auto) = create.replicas.split();
    let request = CreateService {
        name: create.name.clone(),
        switch: online::chosen_switch(&client, create.switch.as_ref(), online::SWITCH_OPTION)?,
        instance: create.options.apply(api::CreateBox::new(name, "")),
        faces: create.faces,
        replicas,
        auto,
        dead_after_ms: create.dead_after.map(|time| time.0),
        container: true,
        places: create.places,
        trust_pool: create.trust_pool,
        may_send_to: create.may_send_to.iter().cloned().collect(),
        translation: translation(create),
    };
    let status = client.send(&operation::CREATE_SERVICE, &[], &request)?;
    report(&status, create.json);
    Ok(())
}

/// Prints a service after a change.
fn report(status: &ServiceStatus, is_json: bool) {
    if is_json {
        return output::json(status);
    }
    if let Some(socket) = &status.socket {
        let (name, switch) = (&status.name, &status.switch);
        return output::text(&format!("{name} accepts functions for switch {switch} at {socket}\n"));
    }
    let rest = format!("{}{}", taken_out(status), handed_over(status));
    let instances = count(status.replicas.into(), "instance");
    output::text(&format!("{} has {instances} at switch {}{rest}\n", status.name, status.switch));
}

/// What a change took out of a service, and what of it is still there.
fn taken_out(status: &ServiceStatus) -> String {
    let draining = || status.instances.iter().filter(|instance| instance.draining);
    let is_taken = |name: &BoxName| status.drained.iter().any(|drained| drained.name == *name);
    let still = draining().filter(|instance| is_taken(&instance.name)).count();
    let end = "until no flows are left, or the time of --drain is over";
    match (status.drained.len(), still) {
        (0, _) => match draining().count() {
            0 => String::new(),
            count => format!(", and {count} that drain"),
        },
        (1, 0) => "; 1 was taken out".into(),
        (several, 0) => format!("; {several} were taken out"),
        (1, _) => format!("; 1 was taken out, and still drains {end}"),
        (several, still) => format!("; {several} were taken out, of which {still} still drain {end}"),
    }
}

/// Prints the details of a service.
pub(super) fn show(status: &ServiceStatus, is_json: bool) {
    if is_json {
        return output::json(status);
    }
    let mut text = String::new();
    let mut line = |name: &str, value: String| text += &format!("{name:<16}{value}\n");
    line("name", status.name.to_string());
    line("switch", status.switch.to_string());
    line("owner", status.owner.to_string());
    if let Some(stack) = &status.stack {
        line("stack", stack.to_string());
    }
    line("created", format!("{} ({} ago)", status.created, online::ago(status.created)));
    line("faces", status.faces.to_string());
    match &status.socket {
        Some(socket) => line("socket", socket.clone()),
        None => line("replicas", replicas(status)),
    }
    if let Some(places) = status.places {
        line("places", places.to_string());
    }
    if status.trust_pool {
        line("packet pool", "shared with the boxes of the owner".into());
    }
    if let Some(limit) = status.dead_after_ms {
        line("dead after", Milliseconds(limit).to_string());
    }
    if !status.may_send_to.is_empty() {
        let names: Vec<String> = status.may_send_to.iter().map(ToString::to_string).collect();
        line("may send to", names.join(", "));
    }
    if let Some(translation) = &status.translation {
        let ranges: Vec<String> = translation.ranges.iter().map(ToString::to_string).collect();
        line("translates to", ranges.join(", "));
        line("slices", translation.slice_count().to_string());
        translation.mappings.iter().for_each(|mapping| line("static mapping", mapping.to_string()));
    }
    output::text(&(text + "\n"));
    let rows = status.instances.iter().map(instance_row).chain(other_rows(status)).collect();
    let none = match status.socket {
        Some(_) => {
            "no function has joined the service: start one with the socket, or a container with its folder"
        }
        None => "the service has no instances",
    };
    online::print(&Table { columns: INSTANCES, rows }, none);
    let mut text = overruled_text(status);
    for instance in status.instances.iter().filter(|instance| !instance.counters.is_empty()) {
        let counters = instance.counters.iter().map(|(name, value)| format!("{name} {}", grouped(*value)));
        text += &format!("\n{}: {}\n", instance.name, counters.collect::<Vec<_>>().join(", "));
    }
    output::text(&text);
    if status.translation.is_some() {
        let rows = status.instances.iter().map(translator_row).chain(removed_translators(status)).collect();
        output::text("\n");
        online::print(&Table { columns: TRANSLATORS, rows }, "the service has no instances");
    }
    let rows: Vec<Vec<String>> = status.instances.iter().filter_map(handover_row).collect();
    if !rows.is_empty() {
        output::text("\n");
        online::print(&Table { columns: HANDOVERS, rows }, "");
    }
}

fn translator_row(instance: &InstanceStatus) -> Vec<String> {
    let mut row = vec![instance.name.to_string()];
    match &instance.translation {
        Some(TranslationStatus { range, learnt, refused }) => {
            row.push(range.to_string());
            row.push(grouped(*learnt));
            row.extend(refused_counts(*refused));
        }
        None => row.extend(["-"; 5].map(String::from)),
    }
    row
}

/// The row of the instances of a translator that were removed, if they were refused anything.
fn removed_translators(status: &ServiceStatus) -> Option<Vec<String>> {
    let refused = status.removed.refused;
    let row = || [vec!["removed".into(), "-".into(), grouped(0)], refused_counts(refused).to_vec()].concat();
    (!refused.is_zero()).then(row)
}

fn refused_counts(refused: RefusedTuples) -> [String; 3] {
    let RefusedTuples { out_of_range, taken, no_room } = refused;
    [out_of_range, taken, no_room].map(grouped)
}

/// What became of the flows of drained instances.
fn handed_over(status: &ServiceStatus) -> String {
    let there = status.instances.iter().filter_map(|instance| instance.handover.as_ref());
    let drained = status.drained.iter().filter_map(|instance| instance.handover.as_ref());
    let all: Vec<&HandoverStatus> =
        if status.drained.is_empty() { there.collect() } else { drained.collect() };
    if all.is_empty() {
        return String::new();
    }
    let sum = |figure: fn(&HandoverStatus) -> u64| grouped(all.iter().copied().map(figure).sum::<u64>());
    let mut text = format!(": the state of {} flows was handed over", sum(|handover| handover.handed_over));
    let has_none = |handover: &&HandoverStatus| {
        handover.phase == HandoverPhase::Done
            && (handover.handed_over, handover.kept, handover.lost) == (0, 0, 0)
    };
    if all.iter().all(has_none) {
        text = ": no flow had state to hand over".into();
    }
    if all.iter().any(|handover| handover.phase == HandoverPhase::Failed) {
        let flows: u64 =
            status.instances.iter().filter(|there| there.handover.is_some()).map(|there| there.flows).sum();
        text += &format!(", {} flows stay until they end or their time is over", grouped(flows));
    }
    if all.iter().any(|handover| handover.lost > 0) {
        text += &format!(", that of {} was lost", sum(|handover| handover.lost));
    }
    let problems: BTreeSet<&String> = all.iter().filter_map(|handover| handover.problem.as_ref()).collect();
    for problem in problems {
        text += &format!("\n{problem}");
    }
    text
}

/// The row of an instance whose flows were handed over, or that took flows over.
fn handover_row(instance: &InstanceStatus) -> Option<Vec<String>> {
    let taken_over = grouped(instance.taken_over);
    let name = instance.name.to_string();
    match &instance.handover {
        Some(HandoverStatus { phase, handed_over, kept, lost, problem }) => {
            let phase = match phase {
                HandoverPhase::Waiting => "waits",
                HandoverPhase::Running => "runs",
                HandoverPhase::Done => "done",
                HandoverPhase::Failed => "incomplete",
            };
            let counts = [*handed_over, *kept, *lost].map(grouped);
            let problem = problem.clone().unwrap_or_else(|| "-".into());
            Some([vec![name, phase.into()], counts.to_vec(), vec![taken_over, problem]].concat())
        }
        None if instance.taken_over > 0 => {
            Some([name, "-".into(), "-".into(), "-".into(), "-".into(), taken_over, "-".into()].to_vec())
        }
        None => None,
    }
}

/// The number of instances, with the range in which the load decides.
fn replicas(status: &ServiceStatus) -> String {
    let range = status.auto.map_or_else(String::new, |range| format!(" ({range})"));
    format!("{}{range}", status.replicas)
}

fn instance_row(instance: &InstanceStatus) -> Vec<String> {
    let state = match instance {
        InstanceStatus { draining: true, .. } => "draining",
        InstanceStatus { suspended: true, .. } => "suspended",
        InstanceStatus { up: true, .. } => "up",
        _ => "down",
    };
    let mut row = vec![instance.name.to_string(), state.to_string()];
    let InstanceStatus { flows, packets, waiting, lost, overruled, .. } = instance;
    row.extend([flows, packets, waiting, lost, overruled].map(|count| grouped(*count)));
    row
}

/// The rows of the instances that were removed, and of packets for which there was no instance, if there were any.
fn other_rows(status: &ServiceStatus) -> impl Iterator<Item = Vec<String>> {
    let RemovedInstances { packets, lost, overruled, .. } = status.removed;
    let none = status.no_instance;
    let rows = [("removed", [packets, lost, overruled]), ("no instance", [none, none, 0])];
    let rows = rows.into_iter().filter(|(_, counts)| counts.iter().any(|count| *count > 0));
    rows.map(|(name, [packets, lost, overruled])| {
        let counts = [0, packets, 0, lost, overruled].map(grouped);
        [vec![name.into(), "-".into()], counts.to_vec()].concat()
    })
}

/// What overruled answers named, and what to do about it.
fn overruled_text(status: &ServiceStatus) -> String {
    let mut text = String::new();
    for OverruledAnswers { destination, answers } in &status.overruled {
        let cause = match destination {
            Some(destination @ Destination::Chain(_)) => {
                format!("{destination}, which did not exist: create it, or change the function")
            }
            Some(destination) => format!("{destination} as something else: change the function"),
            None => "a destination that the service has no right to: add it to --may-send-to, or change the function".into(),
        };
        text += &format!("\noverruled: {} answers named {cause}\n", grouped(*answers));
    }
    text
}

fn row(status: &ServiceStatus) -> Vec<String> {
    let number = |is_counted: fn(&InstanceStatus) -> bool| {
        status.instances.iter().filter(|instance| is_counted(instance)).count().to_string()
    };
    let sum = |removed: u64, figure: fn(&InstanceStatus) -> u64| {
        grouped(status.instances.iter().map(figure).fold(removed, u64::saturating_add))
    };
    vec![
        status.name.to_string(),
        status.switch.to_string(),
        if status.socket.is_some() { "-".into() } else { replicas(status) },
        number(|instance| instance.up && !instance.suspended),
        number(|instance| instance.draining),
        sum(0, |instance| instance.flows),
        sum(status.removed.packets.saturating_add(status.no_instance), |instance| instance.packets),
        sum(status.removed.overruled, |instance| instance.overruled),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overruled_answers_have_a_remedy() {
        let status: ServiceStatus = serde_json::from_value(serde_json::json!({
            "name": "fw", "switch": "lan", "created": "2026-01-31T12:00:00.000Z", "faces": "in=0", "replicas": 1, "instances": [],
            "overruled": [{ "destination": "chain:scrubbed", "answers": 1200 }, { "answers": 3 }]
        }))
        .expect("a service");
        assert_eq!(
            overruled_text(&status),
            "\noverruled: 1,200 answers named chain:scrubbed, which did not exist: create it, or change the function\n\
             \noverruled: 3 answers named a destination that the service has no right to: add it to --may-send-to, or change the \
             function\n"
        );
    }

    #[test]
    fn a_problem_of_all_drained_instances_is_told_once() {
        let drained = |name: &str, problem: &str| {
            let handover = serde_json::json!({ "phase": "failed", "handed_over": 2, "kept": 1, "lost": 0, "problem": problem });
            serde_json::json!({ "name": name, "handover": handover })
        };
        let status: ServiceStatus = serde_json::from_value(serde_json::json!({
            "name": "fw", "switch": "lan", "created": "2026-01-31T12:00:00.000Z", "faces": "in=0", "replicas": 1, "instances": [],
            "drained": [drained("fw-2", "b"), drained("fw-3", "a"), drained("fw-4", "b")]
        }))
        .expect("a service");
        let told = handed_over(&status);
        assert_eq!(told.lines().collect::<Vec<_>>()[1..], ["a", "b"], "{told}");
        assert!(told.starts_with(": the state of 6 flows was handed over"), "{told}");
    }

    #[test]
    fn the_columns_add_up_to_all_packets_of_a_service() {
        let shown = |removed: serde_json::Value, no_instance: u64| {
            let status: ServiceStatus = serde_json::from_value(serde_json::json!({
                "name": "fw", "switch": "lan", "created": "2026-01-31T12:00:00.000Z", "faces": "in=0", "replicas": 1,
                "instances": [{
                    "name": "fw-1", "up": true, "draining": false, "flows": 3, "packets": 1000, "lost": 2, "overruled": 1
                }],
                "removed": removed, "no_instance": no_instance
            }))
            .expect("a service");
            let rows: Vec<String> = other_rows(&status).map(|row| row.join(" ")).collect();
            (rows, row(&status)[6..].join(" "))
        };
        let removed = serde_json::json!({ "packets": 500, "lost": 4, "overruled": 2, "taken_over": 9 });
        let rows = ["removed - 0 500 0 4 2", "no instance - 0 7 0 7 0"].map(String::from);
        assert_eq!(shown(removed, 7), (rows.to_vec(), "1,507 3".into()));
        assert_eq!(shown(serde_json::json!({}), 0), (Vec::new(), "1,000 1".into()));
    }
}
