//! What OpenFlow controllers have added to a switch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which page of the entries of controllers to return.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControllerEntriesQuery {
    /// What `next` of the page before is. Absent: the first page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
}

/// A page of what controllers have added: first entries, then groups, then meters. Each page is read at another moment: what is
/// added or removed meanwhile may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControllerEntries {
    /// Flow entries, in no particular order.
    pub entries: Vec<ControllerEntry>,
    /// Groups, by number.
    pub groups: Vec<ControllerGroup>,
    /// Meters, by number.
    pub meters: Vec<ControllerMeter>,
    /// What to ask for as `from` of the next page. Absent: this was the last one. A page may be empty and not the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// A flow entry that a controller has added, with its counters (OpenFlow 1.3.5, 7.3.5.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControllerEntry {
    /// Its table.
    pub table: u8,
    /// Its priority.
    pub priority: u16,
    /// The condition on its packets, in the words of `IPClassifier` as far as it has any, otherwise with the names of OpenFlow's
    /// fields: `vlan_vid=5 and ip vers 4 and tcp dst port 80`. Absent: all packets.
    #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The port, service or chain that its packets come from; a number if the switch has none with this number. Absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_port: Option<String>,
    /// What it does with packets, in the order in which it does so, in the words of Open vSwitch's tools: `output:wan0`,
    /// `set_field:5->vlan_vid`, `goto_table:2`. Empty: it drops them.
    pub instructions: Vec<String>,
    /// Packets that it matched. Absent: the controller asked not to count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// Bytes of these packets. Absent: the controller asked not to count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Seconds since it was added.
    pub age_seconds: u64,
    /// Seconds without packets after which it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<u64>,
    /// Seconds after which it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// The number that the controller gave it, in hexadecimal digits.
    pub cookie: String,
}

/// A group that a controller has added (OpenFlow 1.3.5, 5.6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControllerGroup {
    /// Its number, which entries name as `group:NUMBER`.
    pub number: u32,
    /// How it chooses among its buckets: `all`, `select`, `indirect` or `fast_failover`.
    #[serde(rename = "type")]
    pub group_type: String,
    /// Packets that came to it.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Its buckets, in their order.
    pub buckets: Vec<ControllerBucket>,
}

/// A bucket of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControllerBucket {
    /// Its weight, what it watches, and its actions: `weight:2,watch_port:wan0,output:wan0`.
    pub definition: String,
    /// Packets that it got.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
}

/// A meter that a controller has added (OpenFlow 1.3.5, 5.7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControllerMeter {
    /// Its number, which entries name as `meter:NUMBER`.
    pub number: u32,
    /// Packets that came to it.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Its bands, in their order.
    pub bands: Vec<ControllerBand>,
}

/// A band of a meter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControllerBand {
    /// What it does above which rate: `drop above 1000 kb/s`.
    pub definition: String,
    /// Packets to which it applied: those that it dropped, or whose DSCP it changed.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
}
