//! The commands that talk to a daemon.

mod account;
mod address;
mod audit;
mod capture;
mod create;
mod dispatch;
mod doctor;
mod events;
mod files;
mod flow;
mod handlers;
mod install;
mod lifecycle;
mod list;
mod logs;
mod port;
mod save;
mod show;
mod stack;
mod store;
mod switch;
mod top;

pub(crate) use dispatch::{Command, run};
