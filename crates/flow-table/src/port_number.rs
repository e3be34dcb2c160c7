//! Numbers of ports (OpenFlow 1.3.5, 7.2.1), and the outputs that they stand for.

use std::ops::Range;

use crate::Output;

/// The largest number of a port that is not reserved (`OFPP_MAX`).
pub const MAX: u32 = 0xffff_ff00;

/// Ports that stand for the instances of a service: the first one is service 0. An extension. The numbers fit into the 16 bits
/// of OpenFlow 1.0, which are all that Open vSwitch's tools know.
pub const SERVICES: Range<u32> = 0x8000..0xa000;

/// Ports that stand for chains of services: the first one is chain 0. An extension.
pub const CHAINS: Range<u32> = 0xa000..0xc000;

/// The port on which a packet arrived (`OFPP_IN_PORT`).
pub const IN_PORT: u32 = 0xffff_fff8;

/// The first table of the pipeline, in packet-out messages (`OFPP_TABLE`).
pub const TABLE: u32 = 0xffff_fff9;

/// The forwarding of a switch without flow tables (`OFPP_NORMAL`).
pub const NORMAL: u32 = 0xffff_fffa;

/// All ports of that forwarding but the ingress port (`OFPP_FLOOD`).
pub const FLOOD: u32 = 0xffff_fffb;

/// All ports but the ingress port (`OFPP_ALL`).
pub const ALL: u32 = 0xffff_fffc;

/// The controller (`OFPP_CONTROLLER`).
pub const CONTROLLER: u32 = 0xffff_fffd;

/// The network stack of the switch (`OFPP_LOCAL`).
pub const LOCAL: u32 = 0xffff_fffe;

/// No port in particular (`OFPP_ANY`).
pub const ANY: u32 = 0xffff_ffff;

impl Output {
    /// Its number as a port; `None` for dropping, which no port stands for.
    #[must_use]
    pub fn port_number(self) -> Option<u32> {
        let of_range = |range: Range<u32>, number: u32| {
            range.start.checked_add(number).filter(|port| range.contains(port))
        };
        match self {
            Self::Port(port) => Some(port),
            Self::InPort => Some(IN_PORT),
            Self::Normal => Some(NORMAL),
            Self::Flood => Some(FLOOD),
            Self::All => Some(ALL),
            Self::Controller { .. } => Some(CONTROLLER),
            Self::Local => Some(LOCAL),
            Self::Service(service) => of_range(SERVICES, service),
            Self::Chain(chain) => of_range(CHAINS, chain),
            Self::Drop => None,
        }
    }

    /// The output of a port number; `None` if the number stands for no output. `max_length` is for the controller.
    #[must_use]
    pub fn from_port_number(port: u32, max_length: u16) -> Option<Self> {
        Some(match port {
            IN_PORT => Self::InPort,
            NORMAL => Self::Normal,
            FLOOD => Self::Flood,
            ALL => Self::All,
            CONTROLLER => Self::Controller { max_length },
            LOCAL => Self::Local,
            _ if SERVICES.contains(&port) => Self::Service(port - SERVICES.start),
            _ if CHAINS.contains(&port) => Self::Chain(port - CHAINS.start),
            1..=MAX => Self::Port(port),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_stands_for_one_output() {
        for port in [
            1,
            7,
            SERVICES.start,
            SERVICES.end - 1,
            CHAINS.start + 5,
            CHAINS.end,
            MAX,
            IN_PORT,
            NORMAL,
            ALL,
            LOCAL,
        ] {
            let output = Output::from_port_number(port, 0).unwrap();
            assert_eq!(output.port_number(), Some(port), "{output:?}");
        }
        for port in [0, MAX + 1, TABLE, ANY] {
            assert_eq!(Output::from_port_number(port, 0), None);
        }
        let controller = Output::from_port_number(CONTROLLER, 128).unwrap();
        assert_eq!(controller, Output::Controller { max_length: 128 });
        assert_eq!((Output::Drop.port_number(), Output::Service(1 << 28).port_number()), (None, None));
    }
}
