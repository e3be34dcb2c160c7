//! Switches and their ports.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::boxes::{Rates, Traffic};
use crate::mac_addr::MacAddr;
use crate::name::{BoxName, PortName, StackName, SwitchName};
use crate::size::Weight;
use crate::text::as_text;
use crate::time::Time;

/// How a switch finds the port of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SwitchMode {
    /// By where an address was last seen as a source; a frame to an unknown one goes to all ports.
    #[default]
    Learning,
    /// By a table that is set; a frame to an address that is not in it goes to the port that is `default`, or nowhere.
    /// Group addresses go to all ports.
    Static,
}

/// Makes a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSwitch {
    /// Its name.
    pub name: SwitchName,
    /// How it finds ports.
    #[serde(default)]
    pub mode: SwitchMode,
    /// Seconds for which a learned address is believed.
    #[serde(default = "default_age")]
    pub age_seconds: u32,
    /// Addresses that one port may teach: it stops a port from filling the table with invented ones.
    #[serde(default = "default_addresses")]
    pub addresses_per_port: u32,
    /// Ports that it has from the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<AddPort>,
}

impl CreateSwitch {
    /// A switch with everything else as usual.
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

/// What IEEE 802.1D recommends.
fn default_age() -> u32 {
    300
}

fn default_addresses() -> u32 {
    1024
}

/// Adds a port to a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddPort {
    /// Its name.
    pub name: PortName,
    /// What is behind it.
    pub driver: PortDriver,
    /// Addresses that are at it, for a static switch: the same as setting each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<MacAddr>,
    /// Whether frames to unknown addresses go to it, in a static switch. The last port that says so is it.
    #[serde(default)]
    pub default: bool,
    /// What it may cost the switch.
    #[serde(default, skip_serializing_if = "Limits::is_default")]
    pub limits: Limits,
}

/// What is behind a port of a switch. In JSON an object: `{"kind": "tap", "device": "tap0"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum PortDriver {
    /// A tap device of the host, made if there is none.
    Tap {
        /// Its name; without it the port's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<Device>,
    },
    /// A network interface of the host, through packet sockets. The host goes on seeing its packets.
    AfPacket {
        /// Its name; without it the port's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<Device>,
    },
    /// Capture files on the daemon's host; at least one of the two.
    Pcap {
        /// The absolute path of a capture whose packets come in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        read: Option<String>,
        /// The absolute path of a capture that is written of what goes out; it must not exist.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        write: Option<String>,
        /// How often the capture is played; 0: until the port is removed.
        #[serde(default = "once")]
        repeat: u32,
        /// Packets a second that come in; without it as fast as the switch takes them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rate: Option<u64>,
    },
    /// Nothing: what goes out is gone, nothing comes in.
    Null {},
    /// A port of another switch, or of the same one. Both ends are made together, and go together.
    Pipe {
        /// The other switch.
        switch: SwitchName,
        /// The name of the port there.
        port: PortName,
    },
    /// A port of a box that is attached to nothing.
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

/// A text that is no name of a network device.
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

/// What a port may send, and how much of the switch it gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Its share of the switch beside ports with other weights.
    #[serde(default)]
    pub weight: Weight,
    /// Most frames a second that it may send; what is more is dropped as `over_cap`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
    /// Most bits a second that it may send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits: Option<u64>,
    /// The only source address that it may send from; without it any.
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
    /// Seconds for which a learned address is believed.
    pub age_seconds: u32,
    /// Addresses that one port may teach.
    pub addresses_per_port: u32,
    /// The stack that it was made by.
    #[serde(default)]
    pub stack: Option<StackName>,
    /// When it was made.
    pub created: Time,
    /// Number of its ports.
    pub ports: u32,
    /// Addresses that it knows.
    pub addresses: u32,
    /// What came in and went out, all ports together.
    pub traffic: Traffic,
    /// How much does at present; `cores` is what the switch itself costs.
    pub rates: Rates,
    /// Lost frames by reason, all ports together.
    #[serde(default)]
    pub drops: BTreeMap<String, u64>,
}

/// A switch, in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchDetail {
    /// What stands in the list.
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
    /// What it may cost the switch.
    pub limits: Limits,
    /// Whether frames to unknown addresses go to it, in a static switch.
    #[serde(default)]
    pub default: bool,
    /// Why nothing passes it, as when its device is gone or its box has ended; none while it works.
    #[serde(default)]
    pub fault: Option<String>,
    /// What passed it.
    pub traffic: Traffic,
    /// How much does at present.
    pub rates: Rates,
    /// Lost frames by reason.
    #[serde(default)]
    pub drops: BTreeMap<String, u64>,
}

/// Says at which port of a static switch an address is.
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
    /// Seconds since it was last seen; none for one that was set.
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
