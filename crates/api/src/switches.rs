//! Switches and their ports.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mac_addr::MacAddr;
use crate::name::{BoxName, PortName, StackName, SwitchName};
use crate::size::Weight;
use crate::text::as_text;
use crate::time::Time;
use crate::traffic::{Rates, Traffic};

/// How a switch finds the port of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SwitchMode {
    /// It learns addresses from the sources of frames; frames to unknown addresses go to all ports.
    #[default]
    Learning,
    /// It has a fixed table. Frames to other addresses go to the `default` port, or are dropped. Frames to group
    /// addresses go to all ports.
    Static,
}

/// The definition of a switch to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSwitch {
    /// Its name.
    pub name: SwitchName,
    /// How it finds ports.
    #[serde(default)]
    pub mode: SwitchMode,
    /// Seconds after which a learned address expires.
    #[serde(default = "default_age")]
    pub age_seconds: u32,
    /// Maximum number of addresses learned from one port, so that no port can fill the table with forged ones.
    #[serde(default = "default_addresses")]
    pub addresses_per_port: u32,
    /// Its ports at creation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<AddPort>,
}

impl CreateSwitch {
    /// A switch with defaults for everything else.
    pub fn new(name: SwitchName) -> Self {
        Self {
            name,
            mode: SwitchMode::default(),
            age_seconds: default_age(),
            addresses_per_port: default_addresses(),
            ports: Vec::new(),
        }
    }
}

/// The ageing time that IEEE 802.1D recommends.
fn default_age() -> u32 {
    300
}

fn default_addresses() -> u32 {
    1024
}

/// The definition of a port to add to a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddPort {
    /// Its name.
    pub name: PortName,
    /// What is behind it.
    pub driver: PortDriver,
    /// Addresses at this port, for a static switch. This is the same as adding each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<MacAddr>,
    /// Whether frames to unknown addresses go to it, in a static switch. The last such port counts.
    #[serde(default)]
    pub default: bool,
    /// The limits on what it sends.
    #[serde(default, skip_serializing_if = "Limits::is_default")]
    pub limits: Limits,
}

/// What is behind a port of a switch. In JSON an object: `{"kind": "tap", "device": "tap0"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum PortDriver {
    /// A tap device of the host, created if it does not exist.
    Tap {
        /// Its name; absent: the port's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<Device>,
    },
    /// A network interface of the host, through packet sockets. The host still receives its packets.
    AfPacket {
        /// Its name; absent: the port's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<Device>,
    },
    /// Capture files on the daemon's host; at least one of the two.
    Pcap {
        /// The absolute path of a capture to read packets from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        read: Option<String>,
        /// The absolute path of a capture to write sent packets to; the file must not exist.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        write: Option<String>,
        /// How often the capture is replayed; 0: until the port is removed.
        #[serde(default = "once")]
        repeat: u32,
        /// Packets read per second; absent: as fast as the switch takes them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rate: Option<u64>,
    },
    /// Discards what is sent to it, and receives nothing.
    Null {},
    /// A port of another switch, or of the same one. Both ends are created and removed together.
    Pipe {
        /// The other switch.
        switch: SwitchName,
        /// The name of the port there.
        port: PortName,
    },
    /// A detached port of a box.
    Box {
        /// The box.
        name: BoxName,
        /// The port's number in the box.
        port: u8,
    },
}

fn once() -> u32 {
    1
}

/// The name of a network device of the host: 1 to 15 bytes without white space and slashes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Device(String);

/// Text that is not a valid name of a network device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceError;

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a network device has 1 to 15 bytes, without white space and slashes")
    }
}

impl std::error::Error for DeviceError {}

impl Device {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Device {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        let plain = |byte: u8| byte.is_ascii_graphic() && !b"/:".contains(&byte);
        let good = (1..=15).contains(&text.len()) && text.bytes().all(plain) && ![".", ".."].contains(&text);
        if good { Ok(Self(text.to_string())) } else { Err(DeviceError) }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

as_text!(Device, "Device", "^[!-.0-9;-~]{1,15}$", "The name of a network device of the daemon's host.");

/// Limits on what a port sends, and its share of the switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Its share of the switch when ports compete.
    #[serde(default)]
    pub weight: Weight,
    /// Maximum frames per second that it may send. The excess is dropped as `capped`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
    /// Maximum bits per second that it may send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits: Option<u64>,
    /// The only source address that it may send from; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<MacAddr>,
}

impl Limits {
    /// Whether nothing is limited.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A switch, in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchStatus {
    /// Its name.
    pub name: SwitchName,
    /// How it finds ports.
    pub mode: SwitchMode,
    /// Seconds after which a learned address expires.
    pub age_seconds: u32,
    /// Maximum number of addresses learned from one port.
    pub addresses_per_port: u32,
    /// The stack that it belongs to.
    #[serde(default)]
    pub stack: Option<StackName>,
    /// When it was created.
    pub created: Time,
    /// Number of its ports.
    pub ports: u32,
    /// Addresses that it knows.
    pub addresses: u32,
    /// The traffic of all ports together.
    pub traffic: Traffic,
    /// Its current rates; `cores` is the CPU time of the switch itself.
    pub rates: Rates,
    /// Lost frames by reason, all ports together.
    #[serde(default)]
    pub drops: BTreeMap<String, u64>,
}

/// A switch, in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchDetail {
    /// The fields of the list entry.
    #[serde(flatten)]
    pub status: SwitchStatus,
    /// Its ports, by name.
    pub port_list: Vec<SwitchPort>,
}

/// A port of a switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchPort {
    /// Its name.
    pub name: PortName,
    /// What is behind it.
    pub driver: PortDriver,
    /// The limits on what it sends.
    pub limits: Limits,
    /// Whether frames to unknown addresses go to it, in a static switch.
    #[serde(default)]
    pub default: bool,
    /// Why it does not work, for example because its device or box is gone; absent while it works.
    #[serde(default)]
    pub fault: Option<String>,
    /// Its traffic.
    pub traffic: Traffic,
    /// Its current rates.
    pub rates: Rates,
    /// Lost frames by reason.
    #[serde(default)]
    pub drops: BTreeMap<String, u64>,
}

/// The port of an address in a static switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetAddress {
    /// The port.
    pub port: PortName,
}

/// An address that a switch knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AddressEntry {
    /// The address.
    pub mac: MacAddr,
    /// The port that it is at.
    pub port: PortName,
    /// How the switch knows it.
    pub kind: AddressKind,
    /// Seconds since it was last seen; absent for a static address.
    #[serde(default)]
    pub age_seconds: Option<u32>,
}

/// How a switch knows an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AddressKind {
    /// It was set.
    Static,
    /// It was learned.
    Learned,
}
