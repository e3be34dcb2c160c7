//! Shared parts of the commands that talk to a daemon.

mod client;
mod complete;
mod config_bundle;
mod connection;
mod destination;
mod diagnostics;
mod drift;
mod escape;
mod format;
mod image_file;
mod other_kind;
mod port_options;
mod replicas;
mod stack_error;
mod stack_export;
mod stack_file;
mod steering;
mod table;
mod uploads;

pub(crate) use client::Client;
pub(crate) use complete::{
    attachments, boxes, boxes_and_switches, capture_points, chains, configurations, destinations, elements,
    handlers, objects, ports, services, stacks, switches, written_files,
};
pub(crate) use config_bundle::{ConfigBundle, file, named};
pub(crate) use connection::Connection;
pub(crate) use destination::{destination, written};
pub(crate) use diagnostics::print as diagnostics;
pub(crate) use drift::drift;
pub(crate) use escape::{line, lines};
pub(crate) use format::{ago, cores_of, rate, runs_in, sandbox, share, state, uptime};
pub(crate) use image_file::Image;
pub(crate) use port_options::{PortOptions, PortOptionsError};
pub(crate) use replicas::{Milliseconds, Replicas};
pub(crate) use stack_error::{ChainError, StackError, StackFileError};
pub(crate) use stack_export::exported;
pub(crate) use stack_file::StackFile;
pub(crate) use steering::{
    SWITCH_OPTION, chosen_chain, chosen_switch, none_of, require_switch, same_switch, split_port,
    steering_switches,
};
pub(crate) use table::{Column, Table, print, print_success};
pub(crate) use uploads::Uploads;
