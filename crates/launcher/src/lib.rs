//! The launcher: a small process that keeps the privileges which daemons and fabrics give up.
//!
//! It starts fabrics, hands each a connection to the daemon that asks for it, opens `/dev/kvm`, tap devices, packet
//! sockets and capture files, and passes their descriptors. It keeps duplicates of some descriptors, so that these
//! devices outlive a fabric. [`protocol::launcher`] describes the conversations.
//!
//! A launcher may be killed at any time. Its fabrics go on, and the next launcher adopts them.
//!
//! Invariants:
//! - One thread does everything, and waits in one place. No peer can make it wait elsewhere: sockets are non-blocking,
//!   files are opened without waiting.
//! - Only its own user and root can connect. It serves one store at a time.
//! - A fabric starts without capabilities, and neither it nor what it executes can get one.
//! - What a fabric sends is never read.
//! - A process becomes a fabric because this launcher started it, or because the kernel says that it listens at a socket
//!   that an earlier launcher of the same user made for a fabric, and that it is the fabrics' user. Other processes are refused.
//!
//! Absent on purpose: threads, packets, boxes, configuration files, and knowledge of who uses a device.

#![forbid(unsafe_code)]

mod agent;
mod cgroup;
mod child;
mod client;
mod devices;
mod error;
mod event;
mod fabric;
mod listener;
mod output_folder;
mod peer_socket;
mod privileges;
mod run;
mod service;
mod settings;
mod spare;
mod successor;

pub use error::RunError;
pub use event::Event;
pub use run::run;
pub use settings::Settings;
pub use successor::AdoptError;
