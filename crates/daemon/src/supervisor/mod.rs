//! The operations of the daemon: each operation of the API is a method of [`Supervisor`].

mod access;
mod account;
mod autoscale;
mod boxes;
mod chains;
mod check;
mod claims;
mod configurations;
mod confirmation;
mod controller_entries;
mod destinations;
mod diff;
mod drain;
mod fabric_counter;
mod fabrics;
mod flows;
mod forwarding;
mod function_sockets;
mod functions;
mod handlers;
mod hop_meter;
mod image_table;
mod images;
mod launcher;
mod lifecycle;
mod link_table;
mod links;
mod load;
mod load_watch;
mod maintenance;
mod managed_box;
mod monitor;
mod operation;
mod parallel;
mod pending_confirmation;
mod port_devices;
mod port_figures;
mod port_numbers;
mod port_recovery;
mod rate_meter;
mod rebuilds;
mod reconcile;
mod restarts;
mod save;
mod service_monitor;
mod service_status;
#[cfg(test)]
mod service_tests;
mod services;
mod shared_addresses;
mod sharing;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod stack_reference_tests;
mod stack_services;
mod stacks;
mod state;
mod status;
mod steering;
mod steering_step;
mod step_subjects;
mod streams;
mod switches;
#[cfg(test)]
mod test_bed;
#[cfg(test)]
mod translator_tests;
mod upgrade;
mod writes;

pub(crate) use images::HeldImage;
pub(crate) use port_figures::PortFigures;
pub(crate) use services::check_instance_names;
pub use state::{StartError, Supervisor};
pub(crate) use status::sandbox_to_api;
pub(crate) use streams::{Capture, Contents, HistoryReader};
