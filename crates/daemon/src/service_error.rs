//! Why a service or a chain can't be as requested.

use api::{
    AddressRange, BoxName, ChainName, Destination, MAX_CHAIN_LENGTH, MAX_DESTINATIONS, MAX_REPLICAS, Owner,
    PortName, ServiceName, SwitchName, TranslationError,
};
use std::fmt;

/// Why a service or a chain can't be as requested. The state is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceError {
    /// The number of instances is out of range.
    Replicas(u16),
    /// A request to scale says neither a number of instances nor a range.
    NoReplicas,
    /// The time after which an instance counts as dead is out of range.
    DeadAfter,
    /// The names of the instances would be too long.
    LongName(ServiceName),
    /// The instances would belong to another owner than the switch.
    Owner {
        /// The switch.
        switch: SwitchName,
        /// Its owner.
        of: Owner,
        /// The other owner.
        wanted: Owner,
    },
    /// A port at a face is attached to something else.
    Face(u8),
    /// All instances would have the same Ethernet address at this port.
    Address(u8),
    /// All instances would be attached to one pipe, at this port.
    Pipe(u8),
    /// There are too many destinations.
    Destinations(usize),
    /// A translator has only one face.
    OneFace,
    /// What the service translates addresses to is impossible.
    Translation(TranslationError),
    /// Instances may send to a service that the switch does not have, or to a port.
    NoDestination(SwitchName, Destination),
    /// A chain has no services, or too many.
    ChainLength(usize),
    /// A chain in both directions has no port that it starts at.
    NoStart,
    /// A chain ends at the port where it starts.
    SameEnds(PortName),
    /// A chain is to be changed to one of another name or switch.
    OtherChain(SwitchName, ChainName),
    /// A chain has a service twice in a row.
    Repeated(ServiceName),
    /// A stack moves a service to another switch than the one that it is at.
    OtherSwitch(ServiceName, SwitchName),
    /// Packets of a port take another chain already.
    PortInUse(PortName, ChainName),
    /// The definition of an instance has another name than the service.
    InstanceName(ServiceName, BoxName),
    /// The chains of two translators with addresses in common would end at one port.
    SharedAddresses {
        /// The translators.
        services: [ServiceName; 2],
        /// The port.
        port: PortName,
        /// What both translate to.
        range: AddressRange,
    },
    /// The stack defines a service twice.
    DuplicateService(ServiceName),
    /// The stack defines a chain twice.
    DuplicateChain(ChainName),
    /// A service of functions in containers has settings of boxes.
    BoxSettings,
    /// A service has a wrong number of places for functions.
    Places(u16),
    /// The caller has a quota, and the service has no number of places.
    NoPlaces,
    /// A service whose instances are boxes has the setting of functions that join the pool of their owner.
    TrustPool,
    /// A service of functions in containers is to be scaled or to get a configuration.
    Container(ServiceName),
    /// A port is one of a function that joined a service.
    PortOfFunction(PortName, BoxName),
    /// The daemon has no folder for the sockets of functions.
    NoFunctionFolder,
    /// The path of a socket would be too long.
    LongSocketPath(String),
    /// The stack defines a box that a service makes.
    InstanceInStack(BoxName),
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replicas(count) => {
                write!(f, "a service has 1 to {MAX_REPLICAS} instances, and not {count}")
            }
            Self::NoReplicas => f.write_str("say how many instances the service has, or a range in `auto`"),
            Self::DeadAfter => {
                f.write_str("the time after which a silent instance counts as dead is from 10 ms to 1 h")
            }
            Self::LongName(name) => write!(
                f,
                "the name {name} is too long for a service: its instances have the names {name}-1, {name}-2 and so on"
            ),
            Self::Owner { switch, of, wanted } => write!(
                f,
                "switch {switch} belongs to {of}, so its services do too, and not to {wanted}: leave the owner out, or \
                 use a switch of {wanted}"
            ),
            Self::Face(port) => write!(
                f,
                "port {port} of the instances is a face of the service, which is attached to its switch: leave its \
                 attachment out"
            ),
            Self::Address(port) => write!(
                f,
                "all instances would have the same Ethernet address at port {port}: leave it out, so that each gets its \
                 own"
            ),
            Self::Pipe(port) => write!(
                f,
                "port {port} of the instances can't be attached to a pipe, which connects two boxes: attach it to a switch"
            ),
            Self::Destinations(count) => {
                write!(f, "{count} destinations: a service has at most {MAX_DESTINATIONS}")
            }
            Self::OneFace => f.write_str(
                "a service that translates addresses has an inside and an outside: name both faces, as in `in=0,out=1`",
            ),
            Self::Translation(error) => error.fmt(f),
            Self::NoDestination(switch, Destination::Service(name)) => write!(
                f,
                "switch {switch} has no service {name}, which the instances may send packets to: create it first, or define it in \
                 the same stack"
            ),
            Self::NoDestination(switch, Destination::Port(name)) => write!(
                f,
                "switch {switch} has no port {name}, which the instances may send packets to: add it first, or define it in \
                 the same stack"
            ),
            Self::NoDestination(switch, Destination::Chain(name)) => write!(
                f,
                "switch {switch} has no chain {name}, which the instances may send packets to: create it first, or define it in \
                 the same stack"
            ),
            Self::ChainLength(0) => f.write_str("a chain needs at least one service"),
            Self::ChainLength(count) => {
                write!(f, "{count} services: a chain has at most {MAX_CHAIN_LENGTH}")
            }
            Self::NoStart => {
                f.write_str("a chain in both directions needs a port that it starts at, which packets leave through in reverse")
            }
            Self::SameEnds(port) => write!(
                f,
                "the chain starts and ends at port {port}, and a packet never returns to the port that it came from: name another \
                 port in one of them (`--from`, `--to`)"
            ),
            Self::OtherChain(switch, chain) => {
                write!(f, "the request is about chain {chain} of switch {switch}: its name and its switch can't change")
            }
            Self::Repeated(name) => write!(f, "the chain has the service {name} twice in a row: leave one out"),
            Self::OtherSwitch(name, switch) => write!(
                f,
                "service {name} is at switch {switch} and can't move to another one: choose another name in the stack"
            ),
            Self::PortInUse(port, chain) => write!(
                f,
                "packets from port {port} take chain {chain} already: leave the port out, and add flows that choose \
                 between the chains"
            ),
            Self::InstanceName(service, name) => write!(
                f,
                "the instances of service {service} are named {service}-1, {service}-2 and so on: let the `name` of `instance` be \
                 {service}, and not {name}"
            ),
            Self::SharedAddresses { services: [one, other], port, range } => write!(
                f,
                "services {one} and {other} both translate to {range}, so a packet from port {port} could be for either: give one of \
                 them other addresses or ports, or let its chains end at another port"
            ),
            Self::DuplicateService(name) => write!(f, "the stack has two services {name}"),
            Self::DuplicateChain(name) => write!(f, "the stack has two chains {name} at one switch"),
            Self::BoxSettings => f.write_str(
                "the instances of a container service are processes and containers that join it: leave out configuration, \
                 files, image, ports and replicas",
            ),
            Self::Places(count) => write!(
                f,
                "{count} places are not possible: a container service has 1 to {MAX_REPLICAS}, and another one has none"
            ),
            Self::TrustPool => f.write_str(
                "only the functions of a container service can be trusted with a packet pool: for boxes, use --share-packets",
            ),
            Self::NoPlaces => f.write_str(
                "your token has a quota: say how many functions may join the service at a time (--places N, or `places` in a \
                 stack file); each counts as a box",
            ),
            Self::Container(name) => write!(
                f,
                "the instances of service {name} are processes and containers that join it: start or stop them instead"
            ),
            Self::PortOfFunction(port, name) => {
                write!(f, "port {port} is that of the function {name}: stop the function, or remove its service")
            }
            Self::NoFunctionFolder => {
                f.write_str("this daemon has no folder for the sockets of functions: start it with a socket of its own")
            }
            Self::LongSocketPath(path) => write!(
                f,
                "the path {path} is too long for a socket: choose a shorter name, or start the daemon with a socket in \
                 another folder"
            ),
            Self::InstanceInStack(name) => {
                write!(f, "the stack has a box {name}, which is an instance of a service: leave it out")
            }
        }
    }
}

impl std::error::Error for ServiceError {}
