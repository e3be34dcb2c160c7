//! Opens what is behind a port, before the fabric's thread gets it: opening may wait.

use super::pcap_port::PcapPort;
use crate::error::OperationError;
use api::{AddPort, Device, PortDriver};
use std::path::Path;
use switch::Driver;
use switch::driver::{AfPacket, Null, Tap};

/// An opened port.
pub(crate) struct OpenedPort {
    /// What is behind it.
    pub(crate) driver: Box<dyn Driver>,
    /// Whether packets become due by themselves.
    pub(crate) is_paced: bool,
}

impl std::fmt::Debug for OpenedPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenedPort").field("is_paced", &self.is_paced).finish_non_exhaustive()
    }
}

/// Opens what is behind a port. Nothing: it is a pipe or a box, which the network itself joins.
pub(crate) fn open(port: &AddPort) -> Result<Option<OpenedPort>, OperationError> {
    let device = |device: &Option<Device>| match device {
        Some(device) => device.as_str().to_string(),
        None => port.name.to_string(),
    };
    let refused = |what: String, error: &dyn std::fmt::Display| {
        OperationError::Denied(format!("can't open {what}: {error}"))
    };
    let opened = |driver: Box<dyn Driver>| Ok(Some(OpenedPort { driver, is_paced: false }));
    match &port.driver {
        PortDriver::Tap { device: name } => {
            let name = device(name);
            let tap = Tap::open(&name).map_err(|error| {
                let hint = privilege(&error, "CAP_NET_ADMIN");
                refused(format!("the tap device {name}"), &format!("{error}{hint}"))
            })?;
            opened(Box::new(tap))
        }
        PortDriver::AfPacket { device: name } => {
            let name = device(name);
            let socket = AfPacket::open(&name).map_err(|error| {
                let hint = privilege(&error, "CAP_NET_RAW");
                refused(format!("the interface {name}"), &format!("{error}{hint}"))
            })?;
            opened(Box::new(socket))
        }
        PortDriver::Null {} => opened(Box::new(Null)),
        PortDriver::Pcap { read, write, repeat, rate } => {
            let path = |path: &Option<String>| -> Result<Option<std::path::PathBuf>, OperationError> {
                let Some(text) = path else { return Ok(None) };
                match Path::new(text) {
                    path if path.is_absolute() => Ok(Some(path.to_path_buf())),
                    _ => Err(OperationError::Invalid(format!(
                        "{text:?} is no absolute path: the daemon has a folder of its own"
                    ))),
                }
            };
            let (read, write) = (path(read)?, path(write)?);
            let Some(shown) = read.as_ref().or(write.as_ref()).map(|path| path.display().to_string()) else {
                return Err(OperationError::Invalid(
                    "a pcap port needs a capture to read, to write, or both".into(),
                ));
            };
            let replay = PcapPort::open(read.as_deref(), write.as_deref(), *repeat, *rate)
                .map_err(|error| refused(shown, &error))?;
            let is_paced = replay.is_paced();
            Ok(Some(OpenedPort { driver: Box::new(replay), is_paced }))
        }
        PortDriver::Pipe { .. } | PortDriver::Box { .. } => Ok(None),
    }
}

/// What stands for a device that can't be opened now: nothing comes, and what goes out is lost.
pub(crate) fn missing() -> OpenedPort {
    OpenedPort { driver: Box::new(super::port_slot::PortSlot::default()), is_paced: false }
}

/// What to do when a privilege is missing.
fn privilege(error: &std::io::Error, name: &str) -> String {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            format!("; the daemon needs {name}: start it as root or with it")
        }
        _ => String::new(),
    }
}
