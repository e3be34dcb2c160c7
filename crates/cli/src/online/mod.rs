//! What the commands share that talk to a daemon.

mod complete;
mod connection;
mod destination;
mod diagnostics;
mod escape;
mod failure;
mod figures;
mod hint;
mod parcel;
mod port_options;
mod stack_file;
mod table;

pub(crate) use complete::{
    attachments, boxes, configurations, elements, handlers, places, ports, stacks, switches, written_files,
};
pub(crate) use connection::Connection;
pub(crate) use destination::{destination, written};
pub(crate) use diagnostics::print as diagnostics;
pub(crate) use escape::{line, lines};
pub(crate) use failure::{CODES, Failure};
pub(crate) use figures::{ago, place, rate, sandbox, share, state, uptime};
pub(crate) use hint::explain;
pub(crate) use parcel::{Parcel, file, named};
pub(crate) use port_options::PortOptions;
pub(crate) use stack_file::StackFile;
pub(crate) use table::{Column, Table, done, print};
