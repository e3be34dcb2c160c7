//! The definition of services and chains, with numbers in place of names.

use crate::forward::PortKey;
use flow_table::FlowEnd;

/// Services of one chain.
pub const MAX_HOPS: usize = 32;

/// Instances of one service.
pub const MAX_SLOTS: usize = 128;

/// The services and chains of a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainsPlan {
    /// The services.
    pub services: Vec<ServicePlan>,
    /// The chains. They name services that are there.
    pub chains: Vec<ChainPlan>,
}

/// A service: a type of function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePlan {
    /// Its number.
    pub number: u16,
    /// Its instances: at most [`MAX_SLOTS`].
    pub instances: Vec<InstancePlan>,
    /// What its instances may send packets to, by the numbers in their answers.
    pub destinations: Vec<DestinationPlan>,
    /// What it translates addresses to. Only a service with two ports can be a translator.
    pub translation: Option<TranslationPlan>,
}

/// What a service translates addresses to, beside the ranges of its instances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranslationPlan {
    /// Packets from outside that are translated without an earlier packet from inside. One instance gets all of them.
    pub mappings: Vec<MappingPlan>,
    /// Further ranges that instances, by their slots, hold for others that are not there.
    pub held: Vec<(u8, RangePlan)>,
}

/// A static mapping of an outside address to an inside one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingPlan {
    /// The protocol; `None` for all packets to the address.
    pub protocol: Option<u8>,
    /// The outside address, and its port if there is a protocol.
    pub outside: FlowEnd,
    /// The same inside.
    pub inside: FlowEnd,
}

/// The addresses that an instance of a translator translates to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangePlan {
    /// The address.
    pub address: u32,
    /// The first port.
    pub first: u16,
    /// The last port.
    pub last: u16,
}

/// An instance of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstancePlan {
    /// Its number in the service, below [`MAX_SLOTS`]. Flows are assigned to numbers.
    pub slot: u8,
    /// The inner port and the outer port; twice the same if there is only one.
    pub ports: [PortKey; 2],
    /// Whether it gets no new flows.
    pub is_draining: bool,
    /// What it translates addresses to, if its service is a translator. No other instance has a part of it.
    pub range: Option<RangePlan>,
}

/// What an instance may send packets to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DestinationPlan {
    /// An instance of this service.
    Service(u16),
    /// This port.
    Port(PortKey),
    /// The chain with this number. It may be there later, or not any more: then the service may not send to it.
    Chain(u16),
}

/// A chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainPlan {
    /// Its number.
    pub number: u16,
    /// The services in the forward direction: 1 to [`MAX_HOPS`].
    pub services: Vec<u16>,
    /// The port whose packets take the chain if no flow concerns them, and through which the packets of the reverse direction
    /// leave.
    pub from: Option<PortKey>,
    /// The port through which packets leave.
    pub to: PortKey,
    /// Whether packets from `to` take the chain in reverse, if no flow concerns them.
    pub both_ways: bool,
}
