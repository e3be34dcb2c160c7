//! What is behind a port of a switch, as options of a command and as entries of a stack's file.

use std::path::{Path, PathBuf};

use api::{AddPort, CapturePoint, Device, Limits, MacAddr, PortDriver, PortName, Weight};
use clap::{Args, ValueEnum};
use serde::Deserialize;

use super::command_error::CommandError;

/// The drivers of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub(crate) enum Driver {
    /// A tap device of the host.
    Tap,
    /// A network interface of the host.
    AfPacket,
    /// Capture files.
    Pcap,
    /// Nothing.
    Null,
    /// A port of another switch.
    Pipe,
    /// A port of a box.
    Box,
}

/// A port.
#[derive(Args, Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PortOptions {
    /// What is behind the port.
    #[arg(long, value_enum)]
    driver: Driver,
    /// tap, af_packet: the device of the host; without it the one that has the port's name.
    #[arg(long)]
    device: Option<Device>,
    /// pcap: a capture whose packets come in.
    #[arg(long, value_name = "FILE")]
    read: Option<PathBuf>,
    /// pcap: a capture to write of what goes out.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// pcap: how often the capture is played; 0: until the port is removed.
    #[arg(long, value_name = "N")]
    repeat: Option<u32>,
    /// pcap: packets a second that come in; without it as many as the switch takes.
    #[arg(long, value_name = "N")]
    rate: Option<u64>,
    /// pipe: SWITCH/PORT, the other end. box: BOX:N, the N-th port of a box.
    #[arg(long, value_name = "PLACE")]
    to: Option<CapturePoint>,
    /// An Ethernet address that is at the port, in a static switch.
    #[arg(long = "address", value_name = "MAC")]
    #[serde(default)]
    addresses: Vec<MacAddr>,
    /// Frames to unknown addresses go to this port, in a static switch.
    #[arg(long)]
    #[serde(default)]
    default: bool,
    /// The port's share of the switch beside others; 100 is usual.
    #[arg(long, value_name = "N")]
    weight: Option<Weight>,
    /// Most frames a second that it may send.
    #[arg(long, value_name = "N")]
    max_frames: Option<u64>,
    /// Most bits a second that it may send.
    #[arg(long, value_name = "N")]
    max_bits: Option<u64>,
    /// The only source address that it may send from.
    #[arg(long, value_name = "MAC")]
    source: Option<MacAddr>,
}

impl PortOptions {
    /// What adds the port. Paths are meant from `folder` on.
    pub(crate) fn add(&self, name: PortName, folder: &Path) -> Result<AddPort, CommandError> {
        self.check(&name)?;
        let path = |path: &Option<PathBuf>| {
            let absolute = path.as_ref().map(|path| std::path::absolute(folder.join(path)));
            let absolute = absolute.transpose().map_err(|error| CommandError::file(folder, error))?;
            Ok::<_, CommandError>(absolute.map(|path| path.to_string_lossy().into_owned()))
        };
        let driver = match (self.driver, self.to.clone()) {
            (Driver::Tap, _) => PortDriver::Tap { device: self.device.clone() },
            (Driver::AfPacket, _) => PortDriver::AfPacket { device: self.device.clone() },
            (Driver::Pcap, _) if self.read.is_none() && self.write.is_none() => {
                return Err(CommandError::Usage(format!(
                    "port {name}: a pcap port needs --read, --write or both"
                )));
            }
            (Driver::Pcap, _) => PortDriver::Pcap {
                read: path(&self.read)?,
                write: path(&self.write)?,
                repeat: self.repeat.unwrap_or(1),
                rate: self.rate,
            },
            (Driver::Null, _) => PortDriver::Null {},
            (Driver::Pipe, Some(CapturePoint::Switch(switch, port))) => PortDriver::Pipe { switch, port },
            (Driver::Pipe, _) => {
                return Err(CommandError::Usage(format!(
                    "port {name}: a pipe needs --to SWITCH/PORT, its other end"
                )));
            }
            (Driver::Box, Some(CapturePoint::Box(name, port))) => PortDriver::Box { name, port },
            (Driver::Box, _) => {
                return Err(CommandError::Usage(format!(
                    "port {name}: a box needs --to BOX:N, the port of the box"
                )));
            }
        };
        let limits = Limits {
            weight: self.weight.unwrap_or_default(),
            frames: self.max_frames,
            bits: self.max_bits,
            source: self.source,
        };
        Ok(AddPort { name, driver, addresses: self.addresses.clone(), default: self.default, limits })
    }

    /// Refuses what the driver doesn't have.
    fn check(&self, name: &PortName) -> Result<(), CommandError> {
        let devices: &[Driver] = &[Driver::Tap, Driver::AfPacket];
        let captures: &[Driver] = &[Driver::Pcap];
        let given = [
            ("device", self.device.is_some(), devices),
            ("read", self.read.is_some(), captures),
            ("write", self.write.is_some(), captures),
            ("repeat", self.repeat.is_some(), captures),
            ("rate", self.rate.is_some(), captures),
            ("to", self.to.is_some(), &[Driver::Pipe, Driver::Box]),
        ];
        match given.iter().find(|(_, is_given, drivers)| *is_given && !drivers.contains(&self.driver)) {
            Some((option, ..)) => {
                let driver = self.driver.to_possible_value();
                let driver = driver.as_ref().map_or("", |value| value.get_name());
                Err(CommandError::Usage(format!("port {name}: the driver {driver} has no {option:?}")))
            }
            None => Ok(()),
        }
    }
}
