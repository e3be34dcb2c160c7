//! The commands that talk to a daemon.

mod account;
mod address;
mod audit;
mod box_options;
mod capture;
mod chain;
mod create;
mod dispatch;
mod doctor;
mod events;
mod files;
mod flow;
mod flow_entries;
mod handlers;
mod install;
mod lifecycle;
mod list;
mod logs;
mod port;
mod save;
mod service;
mod show;
mod stack;
mod store;
mod switch;
mod top;
mod top_chains;

pub(crate) use dispatch::{Command, run};
