//! How frames are addressed.

/// How a frame was addressed, as the link layer saw it; the values are Click's and Linux's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum PacketType {
    /// To this host.
    #[default]
    Host = 0,
    /// To all hosts.
    Broadcast = 1,
    /// To a group.
    Multicast = 2,
    /// To another host, received in promiscuous mode.
    OtherHost = 3,
    /// Sent by this host.
    Outgoing = 4,
    /// A loopback broadcast.
    Loopback = 5,
    /// From the fast route.
    FastRoute = 6,
}

impl PacketType {
    /// From Click's number; an unknown number is `Host`.
    pub fn from_number(number: u8) -> PacketType {
        use PacketType::*;
        [Host, Broadcast, Multicast, OtherHost, Outgoing, Loopback, FastRoute]
            .get(usize::from(number))
            .copied()
            .unwrap_or_default()
    }
}
