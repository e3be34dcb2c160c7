//! Ports and queues (OpenFlow 1.3.5, 7.2.1, 7.3.4.3, 7.3.6 and 7.4.3).

use packet::MacAddr;

use crate::ErrorCode;
use crate::wire::{Reader, Writer};

/// A port of a switch (`ofp_port`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its number.
    pub number: u32,
    /// Its Ethernet address.
    pub address: MacAddr,
    /// Its name, of at most 15 characters.
    pub name: String,
    /// What the controller configured (`OFPPC_*`).
    pub config: u32,
    /// Its state (`OFPPS_*`).
    pub state: u32,
    /// Present features (`OFPPF_*`).
    pub current: u32,
    /// Features that it offers to its peer.
    pub advertised: u32,
    /// Features that it has.
    pub supported: u32,
    /// Features that its peer offers.
    pub peer: u32,
    /// Present bit rate in kilobits a second.
    pub speed: u32,
    /// Highest bit rate in kilobits a second.
    pub max_speed: u32,
}

impl Port {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let number = reader.u32()?;
        reader.skip(4)?;
        let address = reader.mac()?;
        reader.skip(2)?;
        Ok(Self {
            number,
            address,
            name: reader.text(16)?,
            config: reader.u32()?,
            state: reader.u32()?,
            current: reader.u32()?,
            advertised: reader.u32()?,
            supported: reader.u32()?,
            peer: reader.u32()?,
            speed: reader.u32()?,
            max_speed: reader.u32()?,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.u32(self.number).pad(4).bytes(&self.address.0).pad(2).text(&self.name, 16);
        writer.u32(self.config).u32(self.state).u32(self.current).u32(self.advertised);
        writer.u32(self.supported).u32(self.peer).u32(self.speed).u32(self.max_speed);
    }
}

/// Configures a port (`ofp_port_mod`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortMod {
    /// The port.
    pub port: u32,
    /// Its address, which must be right.
    pub address: MacAddr,
    /// The new configuration (`OFPPC_*`).
    pub config: u32,
    /// The bits of the configuration to change.
    pub mask: u32,
    /// Features to offer to the peer; zero changes nothing.
    pub advertise: u32,
}

impl PortMod {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let port = reader.u32()?;
        reader.skip(4)?;
        let address = reader.mac()?;
        reader.skip(2)?;
        let (config, mask, advertise) = (reader.u32()?, reader.u32()?, reader.u32()?);
        reader.skip(4)?;
        Ok(Self { port, address, config, mask, advertise })
    }

    pub(crate) fn write(self, writer: &mut Writer) {
        writer.u32(self.port).pad(4).bytes(&self.address.0).pad(2);
        writer.u32(self.config).u32(self.mask).u32(self.advertise).pad(4);
    }
}

/// What happened to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PortStatusReason {
    /// It was added.
    Add,
    /// It was removed.
    Delete,
    /// Its configuration or state changed.
    Modify,
}

impl PortStatusReason {
    /// The number (`OFPPR_*`).
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Add => 0,
            Self::Delete => 1,
            Self::Modify => 2,
        }
    }
}

/// A change of a port (`ofp_port_status`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortStatus {
    /// What happened.
    pub reason: PortStatusReason,
    /// The port.
    pub port: Port,
}

impl PortStatus {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let reason = match reader.u8()? {
            0 => PortStatusReason::Add,
            1 => PortStatusReason::Delete,
            2 => PortStatusReason::Modify,
            _ => return Err(ErrorCode::BRC_BAD_TYPE),
        };
        reader.skip(7)?;
        Ok(Self { reason, port: Port::read(reader)? })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.u8(self.reason.number()).pad(7);
        self.port.write(writer);
    }
}

/// A queue of a port (`ofp_packet_queue`). Rates are in tenths of a percent; `None` means not configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its number.
    pub queue: u32,
    /// The port.
    pub port: u32,
    /// The rate that it is guaranteed.
    pub min_rate: Option<u16>,
    /// The rate that it may reach.
    pub max_rate: Option<u16>,
}

/// A queue's guaranteed rate (`OFPQT_MIN_RATE`).
const MIN_RATE: u16 = 1;
/// A queue's highest rate (`OFPQT_MAX_RATE`).
const MAX_RATE: u16 = 2;

impl Queue {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let (queue, port, length) = (reader.u32()?, reader.u32()?, usize::from(reader.u16()?));
        let size = length.checked_sub(10).ok_or(ErrorCode::BRC_BAD_LEN)?;
        let mut body = reader.part(size, ErrorCode::BRC_BAD_LEN)?;
        body.skip(6)?;
        let (mut min_rate, mut max_rate) = (None, None);
        while !body.is_empty() {
            let (kind, length) = (body.u16()?, usize::from(body.u16()?));
            let size = length.checked_sub(4).ok_or(ErrorCode::BRC_BAD_LEN)?;
            let mut property = body.part(size, ErrorCode::BRC_BAD_LEN)?;
            property.skip(4)?;
            match kind {
                MIN_RATE => min_rate = Some(property.u16()?),
                MAX_RATE => max_rate = Some(property.u16()?),
                _ => {}
            }
        }
        Ok(Self { queue, port, min_rate, max_rate })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        let start = writer.len();
        writer.u32(self.queue).u32(self.port).u16(0).pad(6);
        for (kind, rate) in [(MIN_RATE, self.min_rate), (MAX_RATE, self.max_rate)] {
            if let Some(rate) = rate {
                writer.u16(kind).u16(16).pad(4).u16(rate).pad(6);
            }
        }
        writer.set_length(start + 8, start);
    }
}
