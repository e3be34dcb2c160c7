//! Forwarding: decides where a frame goes. One contract, and one file per method.

mod cache_care;
mod chains;
mod contract;
mod controllers;
mod flow;
mod ingress;
mod ingress_flows;
mod learning;
mod lookup;
mod mode;
mod openflow;
mod operations;
mod static_table;
mod steering;
mod timeouts;

pub use chains::{
    ChainBooks, ChainCounters, ChainPlan, Chains, ChainsPlan, DestinationPlan, HopCounters, HostPair,
    InstancePlan, InstanceStatus, MAX_HOPS, MAX_SLOTS, MappingPlan, OverruledAnswers, RangePlan,
    RefusedTuples, RemovedInstances, ServicePlan, TranslationPlan,
};
pub use contract::{Decision, Forward, FrameHead, MAX_HEADS, Outcome, Target};
pub use controllers::{ControlError, ControllerPacket, FailMode, PacketOutStep, PacketReason};
pub use flow::{EndedFlow, Flow, FlowError, FlowOutput, FlowStatus, PortKey};
pub use learning::{LearningBridge, LearningSettings};
pub use mode::ForwardingMode;
pub use openflow::SteeringShards;
pub use static_table::{StaticTable, TableError};
pub use steering::{Steering, SteeringSettings};
