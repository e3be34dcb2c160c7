//! The switches: the thread with all switches, pipes and their ports.
//!
//! A fabric may have several such threads, each with a shard of every switch. The first one has the records: other threads
//! send it commands, which it runs between two rounds of forwarding of all of them; commands never block. The `switch` crate handles all frames; this module keeps records of names, owners and limits.

mod account;
mod attach;
mod capture_stream;
mod controller_news;
mod controllers;
mod device;
mod ended_flows;
mod faces;
mod flows;
mod functions;
mod handover;
mod handover_record;
mod looks;
mod numbers;
mod pairs;
mod port_numbers;
mod records;
mod services;
mod shard_threads;
mod silence;
mod switches;
mod thread;
mod traffic;

pub(crate) use account::{NetworkAccount, add_to_service};
pub(crate) use attach::Network;
pub(crate) use capture_stream::CaptureStream;
pub(crate) use controller_news::ControllerNews;
pub(crate) use controllers::AgentFault;
pub(crate) use device::{adopt, placeholder};
pub(crate) use ended_flows::{EndedFlows, EndedNote, MAX_ENDED_FLOWS};
pub(crate) use functions::{FunctionFault, ServiceKey};
pub(crate) use handover::{GivenPackets, HandoverWork, NextHandover, host_pair};
pub(crate) use pairs::Port;
pub(crate) use records::{AttachRequest, Disconnected, Silent};
pub(crate) use thread::{Begun, SwitchThread};
