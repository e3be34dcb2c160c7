//! The stack file: TOML, with paths relative to its folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use api::{
    AddFlow, Attachment, BoxName, ControllerAddress, CoreCount, Cores, CreateBox, CreateChain, CreateService,
    CreateSwitch, Destination, ExternalSwitch, Faces, FailMode, ImageSource, Owner, PipeName, PortName,
    PortRequest, Restart, Ring, Sandbox, ServiceName, Size, Stack, StackName, SwitchMode, SwitchName,
    Translation, Value, Weight,
};
use serde::Deserialize;
use serde::de::Error as _;

use super::config_bundle::{self, ConfigBundle};
use super::image_file::Image;
use super::port_options::PortOptions;
use super::replicas::{Milliseconds, Replicas};
use super::stack_error::{ChainError, StackError, StackFileError};
use super::uploads::Uploads;
use crate::error::CommandError;
use crate::source::SourceText;

/// The contents of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entries {
    name: Option<StackName>,
    /// The owner of the stack, and of its boxes and switches that name none.
    #[serde(default)]
    owner: Owner,
    #[serde(default)]
    switches: BTreeMap<SwitchName, SwitchEntry>,
    #[serde(default)]
    boxes: BTreeMap<BoxName, BoxEntry>,
    /// Boxes connected in sequence by pipes. A switch may be at either end or between two boxes.
    #[serde(default)]
    chains: BoxChains,
    /// Services of steering switches.
    #[serde(default)]
    service: BTreeMap<ServiceName, ServiceEntry>,
    /// Chains of services, by name, or by `SWITCH/NAME`.
    #[serde(default)]
    chain: BTreeMap<String, ChainEntry>,
}

/// The boxes that are connected in sequence.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected lists of boxes and switches, such as [[\"lan\", \"fw\"]]; a chain of services is [chain.NAME]"
)]
enum BoxChains {
    Lists(Vec<Vec<String>>),
}

impl Default for BoxChains {
    fn default() -> Self {
        Self::Lists(Vec::new())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchEntry {
    /// The switch must exist, and does not belong to the stack.
    #[serde(default)]
    external: bool,
    mode: Option<SwitchMode>,
    age_seconds: Option<u32>,
    addresses_per_port: Option<u32>,
    owner: Option<Owner>,
    shared_with: Option<BTreeSet<Owner>>,
    #[serde(default)]
    ports: BTreeMap<PortName, PortOptions>,
    #[serde(default)]
    flows: Vec<AddFlow>,
    #[serde(default)]
    controllers: Vec<ControllerAddress>,
    fail_mode: Option<FailMode>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BoxEntry {
    /// The file of the configuration. With `text`, only its name in messages.
    configuration: Option<String>,
    /// The configuration itself.
    text: Option<String>,
    /// `PATH` or `NAME=PATH`.
    #[serde(default)]
    files: Vec<String>,
    /// Files by name, with `text`.
    #[serde(default)]
    contents: BTreeMap<String, Value>,
    #[serde(default)]
    attach: Vec<PortEntry>,
    /// All ports may send from any Ethernet address.
    #[serde(default)]
    transparent: bool,
    /// The image that the box runs: a file, or its digest.
    image: Option<String>,
    #[serde(default)]
    sandbox: Sandbox,
    memory: Option<Size>,
    #[serde(default)]
    ring: Ring,
    #[serde(default)]
    cores: CoreCount,
    #[serde(default)]
    cpu_weight: Weight,
    cpu_limit: Option<Cores>,
    #[serde(default)]
    dedicated: bool,
    #[serde(default)]
    share_packets: bool,
    #[serde(default)]
    restart: Restart,
    #[serde(default)]
    keep_writes: bool,
    start: Option<bool>,
    owner: Option<Owner>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

/// A service: the settings of its instances are those of boxes, except that `file` names the configuration.
#[derive(Deserialize)]
#[serde(try_from = "toml::Table")]
struct ServiceEntry {
    own: ServiceSettings,
    instance: BoxEntry,
}

/// The settings of a service that a box does not have.
#[derive(Deserialize)]
struct ServiceSettings {
    switch: SwitchName,
    #[serde(default)]
    faces: Faces,
    #[serde(default)]
    replicas: Replicas,
    dead_after: Option<Milliseconds>,
    #[serde(default)]
    container: bool,
    places: Option<u16>,
    #[serde(default)]
    trust_pool: bool,
    #[serde(default)]
    may_send_to: BTreeSet<Destination>,
    translation: Option<Translation>,
}

/// The keys of [`ServiceSettings`].
const SERVICE_KEYS: [&str; 9] = [
    "switch",
    "faces",
    "replicas",
    "dead_after",
    "container",
    "places",
    "trust_pool",
    "may_send_to",
    "translation",
];

impl TryFrom<toml::Table> for ServiceEntry {
    type Error = toml::de::Error;

    fn try_from(mut table: toml::Table) -> Result<Self, toml::de::Error> {
        let mut own = toml::Table::new();
        for key in SERVICE_KEYS {
            own.extend(table.remove(key).map(|value| (key.to_string(), value)));
        }
        if let Some(file) = table.remove("file") {
            table.insert("configuration".into(), file);
        }
        // Of an unknown key, the error lists those of boxes.
        let unknown = |error: toml::de::Error| match error.message() {
            text if text.starts_with("unknown field") => {
                toml::de::Error::custom(format!("{text}, `file`, `{}`", SERVICE_KEYS.join("`, `")))
            }
            _ => error,
        };
        Ok(Self { own: own.try_into()?, instance: table.try_into().map_err(unknown)? })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChainEntry {
    switch: Option<SwitchName>,
    services: Vec<ServiceName>,
    from: Option<PortName>,
    to: PortName,
    #[serde(default)]
    both_ways: bool,
}

impl ChainEntry {
    /// The definition of the chain with this key.
    fn definition(self, key: &str) -> Result<CreateChain, StackError> {
        let (at, name) = match key.split_once('/') {
            Some((switch, name)) => (Some(switch.parse().map_err(StackError::Name)?), name),
            None => (None, key),
        };
        Ok(CreateChain {
            name: name.parse().map_err(StackError::Name)?,
            switch: self.switch.or(at).ok_or_else(|| StackError::NoSwitch(key.into()))?,
            services: self.services,
            from: self.from,
            to: self.to,
            both_ways: self.both_ways,
        })
    }
}

/// A port of a box: its attachment, or a table that also has its address and limits.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a switch, pipe:NAME or -, or a table with attach, mac and limits")]
enum PortEntry {
    Plain(Attachment),
    Full(PortRequest),
}

/// A stack file, with all files that it names.
pub(crate) struct StackFile {
    /// Its name.
    pub(crate) name: StackName,
    /// The definition.
    pub(crate) stack: Stack,
    /// The texts of its configurations, for diagnostics.
    pub(crate) texts: Vec<SourceText>,
    /// The images of its boxes that are files. The definition has their digests.
    pub(crate) images: BTreeMap<BoxName, Image>,
    /// The same for its services.
    pub(crate) service_images: BTreeMap<ServiceName, Image>,
}

impl StackFile {
    /// Reads a stack file and the files that it names.
    pub(crate) fn read(path: &Path) -> Result<StackFile, StackFileError> {
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        let read = || {
            let entries = Entries::read(path)?;
            let name = entries.name(path)?;
            entries.stack(name, &folder)
        };
        read().map_err(|error| StackFileError::new(path, error))
    }

    /// Uploads the images of its boxes and services.
    pub(crate) fn upload_images(&mut self, uploads: &mut Uploads) -> Result<(), CommandError> {
        for request in &mut self.stack.boxes {
            if let Some(image) = self.images.remove(&request.name) {
                request.image = Some(image.upload(uploads)?);
            }
        }
        for service in &mut self.stack.services {
            if let Some(image) = self.service_images.remove(&service.name) {
                service.instance.image = Some(image.upload(uploads)?);
            }
        }
        Ok(())
    }

    /// The name of the stack in a file.
    pub(crate) fn name(path: &Path) -> Result<StackName, StackFileError> {
        let name = Entries::read(path).and_then(|entries| entries.name(path));
        name.map_err(|error| StackFileError::new(path, error))
    }
}

impl Entries {
    fn read(path: &Path) -> Result<Entries, StackError> {
        let text = std::fs::read_to_string(path).map_err(StackError::Read)?;
        toml::from_str(&text).map_err(StackError::Syntax)
    }

    /// The name in the file, else the file's name without its extension.
    fn name(&self, path: &Path) -> Result<StackName, StackError> {
        match &self.name {
            Some(name) => Ok(name.clone()),
            None => path.file_stem().unwrap_or_default().to_string_lossy().parse().map_err(StackError::Name),
        }
    }

    fn stack(self, name: StackName, folder: &Path) -> Result<StackFile, StackError> {
        let mut stack = Stack { owner: self.owner.clone(), ..Stack::default() };
        for (switch, entry) in self.switches {
            let ports: Result<Vec<_>, _> =
                entry.ports.into_iter().map(|(name, port)| port.add(name, folder)).collect();
            if entry.external {
                let has_settings = entry.mode.is_some()
                    || entry.age_seconds.or(entry.addresses_per_port).is_some()
                    || entry.owner.is_some()
                    || entry.shared_with.is_some()
                    || !entry.flows.is_empty()
                    || !entry.controllers.is_empty()
                    || entry.fail_mode.is_some();
                if has_settings {
                    return Err(StackError::ExternalSettings(switch));
                }
                stack.external.push(ExternalSwitch { name: switch, ports: ports? });
                continue;
            }
            let default = CreateSwitch::new(switch);
            stack.switches.push(CreateSwitch {
                mode: entry.mode.unwrap_or(default.mode),
                age_seconds: entry.age_seconds.unwrap_or(default.age_seconds),
                addresses_per_port: entry.addresses_per_port.unwrap_or(default.addresses_per_port),
                owner: entry.owner.unwrap_or_else(|| self.owner.clone()),
                shared_with: entry.shared_with.unwrap_or_default(),
                ports: ports?,
                flows: entry.flows,
                controllers: entry.controllers,
                fail_mode: entry.fail_mode.unwrap_or_default(),
                ..default
            });
        }
        let (mut texts, mut images, mut service_images) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let mut transparent: Vec<BoxName> = Vec::new();
        for (name, entry) in self.boxes {
            if entry.transparent {
                transparent.push(name.clone());
            }
            let what = format!("box {name}");
            let (definition, text, image) = entry.definition(&what, name.clone(), &self.owner, folder)?;
            images.extend(image.map(|image| (name, image)));
            stack.boxes.push(definition);
            texts.push(text);
        }
        for (name, ServiceEntry { own, instance }) in self.service {
            let box_name = name.as_str().parse().map_err(StackError::Name)?;
            let (definition, text, image) =
                instance.definition_of_service(own.container, &name, box_name, &self.owner, folder)?;
            service_images.extend(image.map(|image| (name.clone(), image)));
            let (replicas, auto) = own.replicas.split();
            stack.services.push(CreateService {
                name,
                switch: own.switch,
                instance: definition,
                faces: own.faces,
                replicas,
                auto,
                dead_after_ms: own.dead_after.map(|time| time.0),
                container: own.container,
                places: own.places,
                trust_pool: own.trust_pool,
                may_send_to: own.may_send_to,
                translation: own.translation,
            });
            texts.push(text);
        }
        for (key, entry) in self.chain {
            stack.chains.push(entry.definition(&key)?);
        }
        let BoxChains::Lists(chains) = &self.chains;
        for (number, chain) in chains.iter().enumerate() {
            join(&mut stack, &name, number, chain)
                .map_err(|cause| StackError::Chain { number: number + 1, cause })?;
        }
        // Chains add ports too.
        for request in stack.boxes.iter_mut().filter(|request| transparent.contains(&request.name)) {
            request.ports.iter_mut().for_each(|port| port.limits.transparent = true);
        }
        Ok(StackFile { name, stack, texts, images, service_images })
    }
}

impl BoxEntry {
    /// The definition of the box, the text of its configuration, and its image. `what` names it in messages.
    /// The definition of the instances of a service. Functions that join it have no configuration.
    fn definition_of_service(
        mut self,
        is_container: bool,
        service: &ServiceName,
        name: BoxName,
        owner: &Owner,
        folder: &Path,
    ) -> Result<(CreateBox, SourceText, Option<Image>), StackError> {
        let what = format!("service {service}");
        if is_container {
            if self.configuration.is_some() || self.text.is_some() {
                return Err(StackError::ContainerConfiguration(what));
            }
            self.text = Some(String::new());
        }
        let (mut definition, text, image) = self.definition(&what, name, owner, folder)?;
        if is_container {
            definition.source = None;
        }
        Ok((definition, text, image))
    }

    fn definition(
        self,
        what: &str,
        name: BoxName,
        owner: &Owner,
        folder: &Path,
    ) -> Result<(CreateBox, SourceText, Option<Image>), StackError> {
        let entry = self;
        let files: Vec<(String, PathBuf)> =
            entry.files.iter().map(|text| config_bundle::file(text)).collect();
        let bundle = match (entry.configuration, entry.text) {
            (Some(path), None) if entry.contents.is_empty() => ConfigBundle::read(&path, folder, &files)?,
            (source, Some(text)) if files.is_empty() => {
                let name = source.unwrap_or_else(|| what.to_string());
                ConfigBundle::inline(SourceText { name, text }, entry.contents)
            }
            // The image has a configuration of its own.
            (None, None) if entry.image.is_some() && entry.contents.is_empty() => {
                ConfigBundle::of_image(name.as_str(), &files)?
            }
            (None, None) => return Err(StackError::NoConfiguration(what.into())),
            _ => return Err(StackError::MixedFiles(what.into())),
        };
        let image = entry.image.map(|text| Image::read(&text, folder)).transpose()?;
        let default = bundle.create(name);
        let port = |port| match port {
            PortEntry::Plain(attach) => PortRequest { attach, ..PortRequest::default() },
            PortEntry::Full(port) => port,
        };
        let definition = CreateBox {
            image: image.as_ref().map(|image| ImageSource::Digest(image.digest())),
            sandbox: entry.sandbox,
            memory: entry.memory.unwrap_or(default.memory),
            ring: entry.ring,
            ports: entry.attach.into_iter().map(port).collect(),
            cores: entry.cores,
            cpu_weight: entry.cpu_weight,
            cpu_limit: entry.cpu_limit,
            dedicated: entry.dedicated,
            share_packets: entry.share_packets,
            restart: entry.restart,
            keep_writes: entry.keep_writes,
            start: entry.start.unwrap_or(default.start),
            owner: entry.owner.unwrap_or_else(|| owner.clone()),
            labels: entry.labels,
            ..default
        };
        Ok((definition, bundle.text, image))
    }
}

/// An entry of a chain.
enum Link {
    /// A box, by its index in the stack.
    Box(usize),
    /// A switch.
    Switch(SwitchName),
}

/// Connects the boxes of a chain: each gets, after its own ports, one port to the previous entry and one to the next.
fn join(stack: &mut Stack, name: &StackName, number: usize, chain: &[String]) -> Result<(), ChainError> {
    let find = |link: &String| {
        let index = stack.boxes.iter().position(|request| request.name.as_str() == link);
        let switch = stack.switches.iter().find(|request| request.name.as_str() == link);
        match (index, switch) {
            (Some(_), Some(_)) => Err(ChainError::Ambiguous(link.clone())),
            (Some(index), None) => Ok(Link::Box(index)),
            (None, Some(switch)) => Ok(Link::Switch(switch.name.clone())),
            // A switch of another stack, or one created by hand.
            (None, None) => link.parse().map(Link::Switch).map_err(ChainError::Name),
        }
    };
    let links: Vec<Link> = chain.iter().map(find).collect::<Result<_, _>>()?;
    let mut attach = |index: usize, attach: Attachment| {
        if let Some(request) = stack.boxes.get_mut(index) {
            request.ports.push(PortRequest { attach, ..PortRequest::default() });
        }
    };
    for (step, pair) in links.windows(2).enumerate() {
        match pair {
            [Link::Box(left), Link::Box(right)] => {
                let pipe = format!("{name}.{number}.{step}");
                let pipe: PipeName = pipe.parse().map_err(ChainError::PipeName)?;
                attach(*left, Attachment::Pipe(pipe.clone()));
                attach(*right, Attachment::Pipe(pipe));
            }
            [Link::Box(index), Link::Switch(switch)] | [Link::Switch(switch), Link::Box(index)] => {
                attach(*index, Attachment::Switch(switch.clone()));
            }
            _ => return Err(ChainError::AdjacentSwitches),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(text: &str) -> Result<StackFile, String> {
        let folder = std::env::temp_dir().join(format!(
            "clickbox-stack-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("a.click"), "Idle -> Discard;").expect("a file");
        std::fs::write(folder.join("edge.toml"), text).expect("a file");
        let result = StackFile::read(&folder.join("edge.toml"));
        std::fs::remove_dir_all(&folder).expect("the folder goes");
        result.map_err(|error| CommandError::from(error).text())
    }

    fn attachments(file: &StackFile, name: &str) -> Vec<String> {
        let request = file.stack.boxes.iter().find(|request| request.name.as_str() == name).expect("the box");
        request.ports.iter().map(|port| port.attach.to_string()).collect()
    }

    #[test]
    fn a_chain_connects_boxes_by_pipes() {
        let file = stack(
            r#"
            chains = [["lan", "fw", "nat", "wan"], ["nat", "fw"]]
            switches.lan.ports.tap0.driver = "tap"
            switches.wan = { mode = "static", ports.up = { driver = "af_packet", device = "eth1", default = true } }
            [boxes.fw]
            configuration = "a.click"
            attach = ["-", { attach = "lan", mac = "02:00:00:00:00:01" }]
            memory = "16M"
            restart = "always"
            [boxes.nat]
            configuration = "a.click"
            "#,
        )
        .expect("a stack");
        assert_eq!((file.name.as_str(), file.stack.switches.len(), file.texts.len()), ("edge", 2, 2));
        assert_eq!(attachments(&file, "fw"), ["-", "lan", "lan", "pipe:edge.0.1", "pipe:edge.1.0"]);
        assert_eq!(attachments(&file, "nat"), ["pipe:edge.0.1", "wan", "pipe:edge.1.0"]);
    }

    #[test]
    fn transparency_is_given_to_a_box_or_to_a_port() {
        let file = stack(
            r#"
            chains = [["lan", "bridge", "router", "wan"]]
            switches.lan.ports.later = { driver = "box", to = "other:0", transparent = true }
            switches.wan = {}
            [boxes.bridge]
            configuration = "a.click"
            attach = ["-"]
            transparent = true
            [boxes.router]
            configuration = "a.click"
            attach = [{ attach = "lan", limits = { transparent = true } }, "-"]
            "#,
        )
        .expect("a stack");
        let of = |name: &str| {
            let request = file.stack.boxes.iter().find(|request| request.name.as_str() == name);
            let ports = request.map_or(&[][..], |request| &request.ports);
            ports.iter().map(|port| port.limits.transparent).collect::<Vec<_>>()
        };
        assert_eq!((of("bridge"), of("router")), (vec![true; 3], vec![true, false, false, false]));
        assert!(file.stack.switches[0].ports[0].limits.transparent);
    }

    #[test]
    fn services_have_the_settings_of_boxes() {
        let file = stack(
            r#"
            owner = "alice"
            switches.lan = { mode = "steering", ports.wan.driver = "null" }
            [service.ids]
            switch = "lan"
            file = "a.click"
            replicas = 2
            faces = "in=0,out=1"
            dead_after = "200ms"
            may_send_to = ["quarantine", "port:wan"]
            memory = "16M"
            attach = ["-", "-", "lan"]
            [service.ids.translation]
            ranges = ["203.0.113.1:1024-65535", "203.0.113.2:1024-65535"]
            mappings = ["tcp 203.0.113.1:80 -> 10.0.0.5:8080"]
            [chain.web]
            switch = "lan"
            services = ["ids"]
            from = "up"
            to = "wan"
            both_ways = true
            [chain."lan/dns"]
            services = ["ids", "nat"]
            to = "wan"
            "#,
        )
        .expect("a stack");
        let [service] = file.stack.services.as_slice() else { panic!("{:?}", file.stack.services) };
        let CreateService {
            name,
            switch,
            instance,
            faces,
            replicas,
            auto,
            dead_after_ms,
            may_send_to,
            translation,
            ..
        } = service;
        assert_eq!((*auto, *dead_after_ms), (None, Some(200)));
        assert_eq!(
            (name.as_str(), switch.as_str(), faces.to_string().as_str(), *replicas),
            ("ids", "lan", "in=0,out=1", 2)
        );
        assert_eq!(may_send_to.len(), 2);
        let translation = translation.as_ref().expect("a translator");
        let mappings: Vec<_> = translation.mappings.iter().map(ToString::to_string).collect();
        assert_eq!((translation.ranges.len(), translation.slices), (2, 16));
        assert_eq!(mappings, ["tcp 203.0.113.1:80 -> 10.0.0.5:8080"]);
        assert_eq!(
            (instance.memory, instance.ports.len(), instance.owner.as_str()),
            (Size(16 << 20), 3, "alice")
        );
        assert_eq!((instance.source.as_deref(), file.texts.len()), (Some("a.click"), 1));
        let chains: Vec<_> =
            file.stack.chains.iter().map(|chain| (chain.name.as_str(), chain.both_ways)).collect();
        assert_eq!(chains, [("dns", false), ("web", true)]);
    }

    #[test]
    fn external_switches_are_used_and_not_created() {
        let file = stack(
            r#"
            chains = [["uplink", "fw", "lan"]]
            switches.lan.mode = "static"
            switches.uplink = { external = true, ports.tap7.driver = "tap" }
            [boxes.fw]
            configuration = "a.click"
            "#,
        )
        .expect("a stack");
        let names = |names: Vec<&SwitchName>| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names(file.stack.switches.iter().map(|switch| &switch.name).collect()), ["lan"]);
        assert_eq!(names(file.stack.external.iter().map(|switch| &switch.name).collect()), ["uplink"]);
        assert_eq!(file.stack.external[0].ports[0].name.as_str(), "tap7");
        assert_eq!(attachments(&file, "fw"), ["uplink", "lan"]);
    }

    #[test]
    fn errors_name_the_file_and_the_cause() {
        for (text, why) in [
            ("boxes = 1", "invalid type"),
            ("bixes = {}", "bixes"),
            ("[boxes.fw]\nconfiguration = \"nowhere.click\"", "nowhere.click"),
            ("[boxes.fw]\nconfiguration = \"a.click\"\nattach = [\"a b\"]", "expected a switch"),
            ("[service.ids]\nfile = \"a.click\"", "switch"),
            ("[service.ids]\nswitch = \"lan\"", "service ids needs"),
            ("[service.ids]\nswitch = \"lan\"\nfile = \"a.click\"\nfices = 1", "`fices`"),
            ("[service.ids]\nswitch = \"lan\"\nfile = \"a.click\"\nfices = 1", "`file`, `switch`, `faces`"),
            ("[service.ids]\nswitch = \"lan\"\nfile = \"a.click\"\nreplicas = \"x\"", "such as \"1-4\""),
            ("[service.ids]\nswitch = \"lan\"\nfile = \"a.click\"\nfaces = \"in=16\"", "0 to 15"),
            (
                "[service.x]\nswitch = \"lan\"\nfile = \"a.click\"\ntranslation = { ranges = [\"1\"] }",
                "ADDRESS:FIRST",
            ),
            ("[chain.web]\nservices = []\nto = \"wan\"", "chain web needs switch"),
            ("[boxes.\"a b\"]\nconfiguration = \"a.click\"", "is not a valid name"),
            ("chains = [[\"a\", \"b\"]]", "chain 1: two switches are adjacent; join them by a port"),
            ("[chains.web]\nservices = []", "a chain of services is [chain.NAME]"),
            ("chains = [\"a\"]", "expected lists of boxes and switches, such as [[\"lan\", \"fw\"]]"),
            ("chains = [[\"a b\"]]", "chain 1: \"a b\" is not a valid name"),
            ("[switches.x.ports.p]\ndriver = \"null\"\ndevice = \"eth0\"", "has no \"device\""),
            ("[switches.x.ports.p]\ndriver = \"null\"\ntransparent = true", "has no \"transparent\""),
            ("[switches.x]\nexternal = true\nmode = \"static\"", "switch x is external"),
            ("[switches.x.ports.p]\ndriver = \"pcap\"", "--read"),
            ("[switches.x.ports.p]\ndriver = \"pipe\"\nto = \"fw:1\"", "SWITCH/PORT"),
        ] {
            match stack(text) {
                Ok(_) => panic!("{text} is taken"),
                Err(message) => {
                    assert!(message.contains(why) && message.contains("edge.toml"), "{text}: {message}")
                }
            }
        }
    }
}
