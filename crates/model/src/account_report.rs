//! The accounts of all places through which packets pass.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::{
    BoxName, ChainName, ConfigurationName, Owner, PipeName, PortName, ServiceName, SwitchName,
};
use crate::time::Time;

/// A place through which packets pass: an object such as `{"kind": "port", "switch": "lan", "port": "up"}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AccountPlace {
    /// A switch, between its ports.
    Switch {
        /// The switch.
        switch: SwitchName,
    },
    /// A port of a switch, between the switch and the device, file or box behind the port.
    Port {
        /// The switch.
        switch: SwitchName,
        /// The port.
        port: PortName,
    },
    /// A pipe between ports of switches. Between the fabrics of two owners: since the link was last made.
    Link {
        /// The switch at one end.
        switch: SwitchName,
        /// Its port.
        port: PortName,
        /// The switch at the other end.
        far_switch: SwitchName,
        /// Its port.
        far_port: PortName,
    },
    /// The proxy of a switch: with a fabric for each owner, it connects the boxes of another owner to the switch.
    Proxy {
        /// The switch.
        switch: SwitchName,
        /// The owner of the boxes.
        owner: Owner,
    },
    /// A port of a proxy, between the proxy and the box or the link behind the port.
    ProxyPort {
        /// The switch.
        switch: SwitchName,
        /// The owner of the boxes.
        owner: Owner,
        /// The port of the proxy.
        port: PortName,
    },
    /// The link between a switch and a proxy of it, since it was last made.
    ProxyLink {
        /// The switch.
        switch: SwitchName,
        /// Its port.
        port: PortName,
        /// The owner of the boxes at the proxy.
        owner: Owner,
    },
    /// A chain of services, in the switch: what entered it or came back from functions, and where that went. What is lost in
    /// functions or on the way to them is in the rows of these.
    Chain {
        /// The switch.
        switch: SwitchName,
        /// The chain.
        chain: ChainName,
    },
    /// A service: all its instances with their rings, in all their runs.
    Service {
        /// The service.
        service: ServiceName,
    },
    /// A pipe between boxes, or a port of a box that is attached to nothing.
    Pipe {
        /// The pipe. Absent if the port is attached to nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pipe: Option<PipeName>,
        /// The boxes at the pipe, with the numbers of their ports.
        ends: Vec<(BoxName, u8)>,
    },
    /// The ring from which a box receives, since the box was last started.
    ReceiveRing {
        /// The box.
        name: BoxName,
        /// The number of its port.
        port: u8,
    },
    /// The ring into which a box sends, since the box was last started.
    TransmitRing {
        /// The box.
        name: BoxName,
        /// The number of its port.
        port: u8,
    },
    /// The inside of a box, since it was last started.
    Box {
        /// The box.
        name: BoxName,
    },
    /// An element of a box, since its configuration was last changed.
    Element {
        /// The box.
        name: BoxName,
        /// The configuration.
        configuration: ConfigurationName,
        /// The element.
        element: String,
        /// The element's class.
        class: String,
    },
    /// A box with its rings, in all its runs that have ended.
    Ended {
        /// The box.
        name: BoxName,
    },
}

impl fmt::Display for AccountPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch { switch } => write!(f, "switch {switch}"),
            Self::Port { switch, port } => write!(f, "port {switch}/{port}"),
            Self::Link { switch, port, far_switch, far_port } => {
                write!(f, "link {switch}/{port} - {far_switch}/{far_port}")
            }
            Self::Proxy { switch, owner } => write!(f, "proxy {switch}@{owner}"),
            Self::ProxyPort { switch, owner, port } => write!(f, "port {switch}@{owner}/{port}"),
            Self::ProxyLink { switch, port, owner } => write!(f, "link {switch}/{port} - {switch}@{owner}"),
            Self::Chain { switch, chain } => write!(f, "chain {switch}/{chain}"),
            Self::Service { service } => write!(f, "service {service}"),
            Self::Pipe { pipe: Some(pipe), .. } => write!(f, "pipe {pipe}"),
            Self::Pipe { pipe: None, ends } => {
                f.write_str("unattached")?;
                ends.iter().try_for_each(|(name, port)| write!(f, " {name}:{port}"))
            }
            Self::ReceiveRing { name, port } => write!(f, "ring to {name}:{port}"),
            Self::TransmitRing { name, port } => write!(f, "ring from {name}:{port}"),
            Self::Box { name } => write!(f, "box {name}"),
            Self::Element { name, configuration, element, .. } => {
                match *configuration == ConfigurationName::main() {
                    true => write!(f, "{name}/{element}"),
                    false => write!(f, "{name}/{configuration}:{element}"),
                }
            }
            Self::Ended { name } => write!(f, "ended {name}"),
        }
    }
}

/// The account of a place, in packets. Each number is measured on its own; none is computed from the others. At rest,
///
/// `in + made = out + lost + discarded + delivered + consumed + waiting`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccountRow {
    /// The place.
    #[serde(flatten)]
    pub place: AccountPlace,
    /// Whether the box itself reports a number of this row. A hostile box can report anything.
    pub own_word: bool,
    /// Whether there are estimates: of a box that has ended, losses for reasons that a user's function declared are those of its
    /// last report. All numbers are, if the box published nonsense in the end.
    #[serde(default)]
    pub estimated: bool,
    /// Packets that came in. Absent if the box did not report it.
    #[serde(rename = "in", default)]
    pub incoming: Option<u64>,
    /// Packets that were made or copied here. For an element, received packets too.
    pub made: u64,
    /// Packets that went out. Absent if the box did not report it.
    #[serde(default)]
    pub out: Option<u64>,
    /// Lost packets by reason.
    #[serde(default)]
    pub lost: BTreeMap<String, u64>,
    /// Packets that ended here as the configuration says.
    pub discarded: u64,
    /// Packets that left to a port of the box or to a file, at an element.
    pub delivered: u64,
    /// Packets that ended in elements that acted on their contents, or became a part of others.
    pub consumed: u64,
    /// Packets that wait here. Absent if the box did not report it.
    #[serde(default)]
    pub waiting: Option<u64>,
    /// How many more packets came in or were made than went out, ended or wait. 0 at rest, and at most `moved` while
    /// packets pass. Absent if a number is missing.
    #[serde(default)]
    pub difference: Option<i64>,
    /// Packets that passed while the places were read.
    pub moved: u64,
}

impl AccountRow {
    /// An account without packets.
    pub fn new(place: AccountPlace) -> Self {
        Self {
            place,
            own_word: false,
            estimated: false,
            incoming: Some(0),
            made: 0,
            out: Some(0),
            lost: BTreeMap::new(),
            discarded: 0,
            delivered: 0,
            consumed: 0,
            waiting: Some(0),
            difference: None,
            moved: 0,
        }
    }

    /// Lost packets for all reasons.
    pub fn lost(&self) -> u64 {
        self.lost.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Computes the difference of the two sides.
    pub fn compare(mut self) -> Self {
        let wide = |count: u64| i128::from(count);
        let ended = [self.lost(), self.discarded, self.delivered, self.consumed];
        let sides = || {
            let began = wide(self.incoming?) + wide(self.made);
            let went = wide(self.out?) + wide(self.waiting?) + ended.into_iter().map(wide).sum::<i128>();
            Some(began - went)
        };
        self.difference = sides().map(|difference| difference.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
        self
    }
}

/// The accounts of places, read at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccountReport {
    /// When the places were read.
    pub time: Time,
    /// How long that took, in nanoseconds.
    pub took_ns: u64,
    /// The accounts: ports, switches and links, then boxes. With a fabric for each owner, these of each fabric, then the
    /// links between fabrics.
    pub places: Vec<AccountRow>,
}

/// Which places to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountQuery {
    /// A stack, a box, a switch, a service or a chain, such as `box/fw`: a box or a switch with its ports, a service with its
    /// instances, and a chain with its services, without its switch. Absent: everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Whether to read the elements of the boxes too.
    #[serde(default)]
    pub elements: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_is_that_of_the_two_sides() {
        let row = || AccountRow::new(AccountPlace::Box { name: "fw".parse().expect("a name") });
        let lost = BTreeMap::from([("denied".to_string(), 2), ("full".to_string(), 1)]);
        let full = AccountRow {
            incoming: Some(10),
            made: 5,
            out: Some(3),
            lost,
            discarded: 1,
            delivered: 2,
            consumed: 1,
            waiting: Some(4),
            ..row()
        };
        assert_eq!(full.clone().compare().difference, Some(1));
        assert_eq!(AccountRow { out: None, ..full.clone() }.compare().difference, None);
        assert_eq!(AccountRow { out: Some(u64::MAX), ..full }.compare().difference, Some(i64::MIN));
        assert_eq!(row().compare().difference, Some(0));
    }
}
