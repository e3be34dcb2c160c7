//! A launcher in a process of its own, with a fabric that describes itself.

mod adoption;
mod agent;
mod devices;
mod fabrics;
mod service;
mod sockets;
mod spare;
mod support;
