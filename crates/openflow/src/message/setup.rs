//! Messages about the session itself: hello, features, configuration, roles (OpenFlow 1.3.5, 7.3.1, 7.3.2, 7.3.9,
//! 7.3.10, 7.5.1 and 7.5.4).

use crate::ErrorCode;
use crate::wire::{Reader, Writer};

/// The element of a hello message with a bitmap of versions (`OFPHET_VERSIONBITMAP`).
const VERSION_BITMAP: u16 = 1;

/// The first message of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Hello {
    /// Bit n is set if the sender speaks the version numbered n. Without it, the version of the header is the highest.
    pub versions: Option<u32>,
}

impl Hello {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let mut hello = Self::default();
        while reader.left() >= 4 {
            let (kind, length) = (reader.u16()?, usize::from(reader.u16()?));
            let size = length.checked_sub(4).ok_or(ErrorCode::BRC_BAD_LEN)?;
            let mut body = reader.part(size, ErrorCode::BRC_BAD_LEN)?;
            let padding = length.next_multiple_of(8) - length;
            reader.skip(padding.min(reader.left()))?;
            if kind == VERSION_BITMAP && hello.versions.is_none() {
                // All versions that exist are in the first word.
                hello.versions = Some(body.u32()?);
            }
        }
        Ok(hello)
    }

    pub(crate) fn write(self, writer: &mut Writer) {
        if let Some(versions) = self.versions {
            writer.u16(VERSION_BITMAP).u16(8).u32(versions);
        }
    }
}

/// A message of an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Experimenter {
    /// Who defined it.
    pub experimenter: u32,
    /// Its type.
    pub kind: u32,
    /// Its contents.
    pub data: Vec<u8>,
}

impl Experimenter {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        Ok(Self { experimenter: reader.u32()?, kind: reader.u32()?, data: reader.rest().to_vec() })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.u32(self.experimenter).u32(self.kind).bytes(&self.data);
    }
}

/// What a switch is (`ofp_switch_features`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// The identity of the switch.
    pub datapath: u64,
    /// Packets that it can keep for the controller.
    pub buffers: u32,
    /// Tables of its pipeline.
    pub tables: u8,
    /// The number of an auxiliary connection; zero for the main one.
    pub auxiliary: u8,
    /// Capabilities (`OFPC_*`).
    pub capabilities: u32,
}

impl Features {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let (datapath, buffers) = (reader.u64()?, reader.u32()?);
        let (tables, auxiliary) = (reader.u8()?, reader.u8()?);
        reader.skip(2)?;
        let capabilities = reader.u32()?;
        reader.skip(4)?;
        Ok(Self { datapath, buffers, tables, auxiliary, capabilities })
    }

    pub(crate) fn write(self, writer: &mut Writer) {
        writer.u64(self.datapath).u32(self.buffers).u8(self.tables).u8(self.auxiliary).pad(2);
        writer.u32(self.capabilities).pad(4);
    }
}

/// The configuration of a switch (`ofp_switch_config`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// What happens to fragments (`OFPC_FRAG_*`).
    pub flags: u16,
    /// Bytes of a packet that the switch sends to the controller for reasons other than an output action.
    pub miss_send_length: u16,
}

impl Config {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        Ok(Self { flags: reader.u16()?, miss_send_length: reader.u16()? })
    }

    pub(crate) fn write(self, writer: &mut Writer) {
        writer.u16(self.flags).u16(self.miss_send_length);
    }
}

/// Configures a table (`ofp_table_mod`). Version 1.3 has nothing to configure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableMod {
    /// The table; 0xff for all.
    pub table: u8,
    /// Its configuration.
    pub config: u32,
}

impl TableMod {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let table = reader.u8()?;
        reader.skip(3)?;
        Ok(Self { table, config: reader.u32()? })
    }

    pub(crate) fn write(self, writer: &mut Writer) {
        writer.u8(self.table).pad(3).u32(self.config);
    }
}

/// What a controller may do (OpenFlow 1.3.5, 6.3.6). The names are the specification's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Everything, as other controllers.
    Equal,
    /// Everything; at most one controller.
    Master,
    /// Only read.
    Slave,
}

/// Asks for a role, or answers with it (`ofp_role_request`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleRequest {
    /// The role; `None` asks for the present one.
    pub role: Option<Role>,
    /// The number of the election of a master. Lower ones are stale.
    pub generation: u64,
}

impl RoleRequest {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let role = match reader.u32()? {
            0 => None,
            1 => Some(Role::Equal),
            2 => Some(Role::Master),
            3 => Some(Role::Slave),
            _ => return Err(ErrorCode::RRFC_BAD_ROLE),
        };
        reader.skip(4)?;
        Ok(Self { role, generation: reader.u64()? })
    }

    pub(crate) fn write(self, writer: &mut Writer) {
        let role = match self.role {
            None => 0,
            Some(Role::Equal) => 1,
            Some(Role::Master) => 2,
            Some(Role::Slave) => 3,
        };
        writer.u32(role).pad(4).u64(self.generation);
    }
}

/// Which reasons the switch reports unasked (`ofp_async_config`): bit n for the reason numbered n. The first of each
/// pair applies to masters and equals, the second to slaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncConfig {
    /// Reasons of packet-in messages.
    pub packet_in: [u32; 2],
    /// Reasons of port status messages.
    pub port_status: [u32; 2],
    /// Reasons of flow-removed messages.
    pub flow_removed: [u32; 2],
}

impl Default for AsyncConfig {
    /// The initial configuration (OpenFlow 1.3.5, 6.3.6): slaves get the state of ports only. Invalid times to live are
    /// reported to those that ask.
    fn default() -> Self {
        Self { packet_in: [0b011, 0], port_status: [0b111, 0b111], flow_removed: [0b1111, 0] }
    }
}

impl AsyncConfig {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        Ok(Self {
            packet_in: [reader.u32()?, reader.u32()?],
            port_status: [reader.u32()?, reader.u32()?],
            flow_removed: [reader.u32()?, reader.u32()?],
        })
    }

    pub(crate) fn write(self, writer: &mut Writer) {
        for [first, second] in [self.packet_in, self.port_status, self.flow_removed] {
            writer.u32(first).u32(second);
        }
    }
}
