//! The pcapng format (draft-ietf-opsawg-pcapng): blocks in sections, several interfaces with a clock each.
//!
//! A block is a type, a length, a body, and the length again. Enhanced, simple and obsolete packet blocks are records;
//! interface descriptions give the link type of an interface and the unit of its timestamps. Other blocks are skipped.

mod read;
mod write;

pub(crate) use read::{Reader, is_section_header};
pub use write::{PacketOptions, PcapngEncoder};

use crate::MAX_CAPTURED;

/// The longest block that is parsed, in bytes, with headers and options. A longer one is damaged or hostile.
pub const MAX_BLOCK: u32 = 2 * MAX_CAPTURED;
/// The largest number of interfaces in a section. A description takes twenty bytes of the capture but more of memory, so
/// without a limit a hostile capture could fill the memory.
pub const MAX_INTERFACES: usize = 4096;

/// The type of a section header; it reads the same in both byte orders.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// The number in a section header that tells its byte order.
const BYTE_ORDER_MARK: u32 = 0x1a2b_3c4d;
/// Bytes of the shortest block: a type and two lengths.
const MIN_BLOCK: u32 = 12;

/// Options of an interface description.
const OPTION_NAME: u16 = 2;
const OPTION_RESOLUTION: u16 = 9;
const OPTION_OFFSET: u16 = 14;
