//! The boot info: what the host writes for a box before it starts.
//!
//! The host writes it to the boot page. The magic number and the protocol version have the same offsets in all
//! versions, so that an image and a host of different versions can detect this.

use crate::codec::{DecodeError, Decoder, Encoder};
use crate::layout::control;
use crate::limits::{MAX_BOX_PAIRS, MAX_PAIRS, MAX_REGIONS};
use crate::memory::SharedMemory;
use crate::ring::Slots;
use crate::version::PROTOCOL;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// "Clickbox" as a little-endian number.
const MAGIC: u64 = u64::from_le_bytes(*b"Clickbox");

/// Offset of the region table in the page: after magic, version, platform, features, three clock words and four seeds.
const REGIONS: usize = 8 + 4 + 4 + 8 + 3 * 8 + 4 * 8;

/// Maximum bytes of the region table.
const REGIONS_SIZE: usize = 4 + MAX_REGIONS * 20;

/// Why a boot page cannot be written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootError {
    /// The page does not start with the magic number.
    NoBootInfo,
    /// The other side uses another protocol version.
    Version {
        /// The version in the page.
        found: u32,
    },
    /// A field is invalid.
    Field(DecodeError),
    /// The info does not fit into its page.
    TooLong(usize),
}

impl From<DecodeError> for BootError {
    fn from(error: DecodeError) -> Self {
        Self::Field(error)
    }
}

impl fmt::Display for BootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBootInfo => write!(f, "there is no boot info"),
            Self::Version { found } => {
                write!(
                    f,
                    "the boot info has version {found} of the protocol, this image knows version {PROTOCOL}"
                )
            }
            Self::Field(_) => write!(f, "the boot info is damaged"),
            Self::TooLong(bytes) => write!(f, "the boot info ({bytes} bytes) does not fit its page"),
        }
    }
}

impl core::error::Error for BootError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Field(error) => Some(error),
            Self::NoBootInfo | Self::Version { .. } | Self::TooLong(_) => None,
        }
    }
}

/// What runs a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum PlatformKind {
    /// A virtual machine: it exits by writing to a port.
    Vm = 0,
    /// A process: it exits by a system call.
    Process = 1,
    /// A thread of the host's process, for development.
    Thread = 2,
}

/// The processor's features, as a set of bits. A box does not use `cpuid`, which may cause an exit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuFeatures(pub u64);

impl CpuFeatures {
    /// 256-bit integer vectors.
    pub const AVX2: Self = Self(1);
    /// AES rounds.
    pub const AES: Self = Self(1 << 1);
    /// Carry-less multiplication.
    pub const PCLMULQDQ: Self = Self(1 << 2);
    /// `rdrand`.
    pub const RDRAND: Self = Self(1 << 3);
    /// The first and second set of bit manipulation instructions.
    pub const BMI: Self = Self(1 << 4);
    /// 512-bit vectors (foundation, byte and word, vector length).
    pub const AVX512: Self = Self(1 << 5);
    /// A time stamp counter with a constant rate.
    pub const CONSTANT_TSC: Self = Self(1 << 6);

    /// Whether all features of `other` are present.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The union of both sets.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The purpose of a range of a box's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum MemoryKind {
    /// The image's variables.
    Data = 1,
    /// Free memory for the heap.
    Heap = 2,
    /// The stack. The page below it is not mapped.
    Stack = 3,
    /// The region shared with the host.
    SharedRegion = 4,
    /// A packet pool shared with other boxes of the same owner.
    Pool = 5,
}

impl MemoryKind {
    fn from_bits(bits: u32) -> Result<Self, DecodeError> {
        [Self::Data, Self::Heap, Self::Stack, Self::SharedRegion, Self::Pool]
            .into_iter()
            .find(|kind| *kind as u32 == bits)
            .ok_or(DecodeError::Value(bits.into()))
    }
}

/// A range of a box's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRegion {
    /// Its purpose.
    pub kind: MemoryKind,
    /// The first address.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
}

/// A ring pair of a port. Offsets are in bytes from the start of the shared region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortInfo {
    /// The number of slots of each of the two rings.
    pub slots: Slots,
    /// The receive ring.
    pub receive: u32,
    /// The transmit ring.
    pub transmit: u32,
    /// The packet buffers. All ports share them, so that a packet can move from one port to another with its buffer.
    pub buffers: u32,
    /// Their size in bytes.
    pub buffers_size: u32,
    /// The port's MAC address, with the first byte in the lowest bits.
    pub mac: u64,
    /// The longest packet in bytes, without its Ethernet header.
    pub mtu: u32,
}

/// The parameters that a box receives at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootInfo {
    /// What runs the box.
    pub platform: PlatformKind,
    /// The processor's features.
    pub features: CpuFeatures,
    /// The rate of the time stamp counter, per second.
    pub tsc_hz: u64,
    /// The time stamp counter at some moment.
    pub clock_tsc: u64,
    /// The nanoseconds since 1970 (UTC) at the moment of `clock_tsc`.
    pub clock_unix_ns: u64,
    /// Random numbers, different for every start.
    pub seeds: [u64; 4],
    /// The box's memory regions.
    pub regions: Vec<MemoryRegion>,
    /// The ring pairs of the box's ports: all of the first port, then those of the next one.
    pub ports: Vec<PortInfo>,
    /// The number of ring pairs of each port. The box serves all of them, and sends a packet through the pair with the
    /// number of the one through which it came.
    pub pairs: u32,
}

impl BootInfo {
    /// Writes the boot page, which lies at the start of `memory`.
    pub fn write(&self, memory: &impl SharedMemory) -> Result<(), BootError> {
        let mut fields = Encoder::default();
        fields.u64(MAGIC).u32(PROTOCOL).u32(self.platform as u32);
        fields.u64(self.features.0).u64(self.tsc_hz).u64(self.clock_tsc).u64(self.clock_unix_ns);
        for seed in self.seeds {
            fields.u64(seed);
        }
        fields.u32(self.regions.len() as u32);
        for region in &self.regions {
            fields.u32(region.kind as u32).u64(region.address).u64(region.size);
        }
        fields.u32(self.pairs).u32(self.ports.len() as u32);
        for port in &self.ports {
            fields.u32(port.slots.count()).u32(port.receive).u32(port.transmit);
            fields.u32(port.buffers).u32(port.buffers_size).u64(port.mac).u32(port.mtu);
        }
        if fields.0.len() > control::PAGE_SIZE || fields.0.len() > memory.size() {
            return Err(BootError::TooLong(fields.0.len()));
        }
        memory.write(control::BOOT, &fields.0);
        Ok(())
    }

    /// Reads the boot page at the start of `memory`.
    pub fn read(memory: &impl SharedMemory) -> Result<Self, BootError> {
        let mut page = vec![0; control::PAGE_SIZE.min(memory.size())];
        memory.read(control::BOOT, &mut page);
        Self::decode(&page)
    }

    fn decode(page: &[u8]) -> Result<Self, BootError> {
        let mut fields = Decoder(page);
        if fields.u64()? != MAGIC {
            return Err(BootError::NoBootInfo);
        }
        let found = fields.u32()?;
        if found != PROTOCOL {
            return Err(BootError::Version { found });
        }
        let platform = match fields.u32()? {
            0 => PlatformKind::Vm,
            1 => PlatformKind::Process,
            2 => PlatformKind::Thread,
            other => return Err(DecodeError::Value(other.into()).into()),
        };
        let mut info = Self {
            platform,
            features: CpuFeatures(fields.u64()?),
            tsc_hz: fields.u64()?,
            clock_tsc: fields.u64()?,
            clock_unix_ns: fields.u64()?,
            seeds: [fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?],
            regions: Vec::new(),
            ports: Vec::new(),
            pairs: 1,
        };
        for _ in 0..fields.count(MAX_REGIONS)? {
            let kind = MemoryKind::from_bits(fields.u32()?)?;
            info.regions.push(MemoryRegion { kind, address: fields.u64()?, size: fields.u64()? });
        }
        info.pairs = fields.u32()?;
        let count = fields.count(MAX_BOX_PAIRS)?;
        if info.pairs as usize > MAX_PAIRS || count.checked_rem(info.pairs as usize) != Some(0) {
            return Err(DecodeError::Value(info.pairs.into()).into());
        }
        for _ in 0..count {
            let slots = fields.u32()?;
            info.ports.push(PortInfo {
                slots: Slots::new(slots).map_err(|_| DecodeError::Value(slots.into()))?,
                receive: fields.u32()?,
                transmit: fields.u32()?,
                buffers: fields.u32()?,
                buffers_size: fields.u32()?,
                mac: fields.u64()?,
                mtu: fields.u32()?,
            });
        }
        Ok(info)
    }

    /// The first region of a kind in a boot page, found without a heap: for the first steps of an image.
    pub fn find_region(memory: &impl SharedMemory, kind: MemoryKind) -> Option<MemoryRegion> {
        let mut table = [0; REGIONS_SIZE];
        memory.read(control::BOOT + REGIONS, &mut table);
        let mut fields = Decoder(&table);
        for _ in 0..fields.count(MAX_REGIONS).ok()? {
            let found = fields.u32().ok()?;
            let region = MemoryRegion { kind, address: fields.u64().ok()?, size: fields.u64().ok()? };
            if found == kind as u32 {
                return Some(region);
            }
        }
        None
    }

    /// The first region of a kind.
    pub fn region(&self, kind: MemoryKind) -> Option<MemoryRegion> {
        self.regions.iter().copied().find(|region| region.kind == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Mapped;
    use crate::memory::hostile::Hostile;
    use core::ptr::NonNull;

    fn example() -> BootInfo {
        let port = PortInfo {
            slots: Slots::new(256).unwrap(),
            receive: 1,
            transmit: 2,
            buffers: 3,
            buffers_size: 4,
            mac: 5,
            mtu: 1500,
        };
        BootInfo {
            platform: PlatformKind::Process,
            features: CpuFeatures::AVX2.with(CpuFeatures::AES),
            tsc_hz: 2_100_000_000,
            clock_tsc: 1,
            clock_unix_ns: 2,
            seeds: [3, 4, 5, 6],
            regions: vec![MemoryRegion { kind: MemoryKind::Heap, address: 7, size: 8 }; MAX_REGIONS],
            ports: vec![port; MAX_BOX_PAIRS],
            pairs: 4,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut page = [0u64; control::PAGE_SIZE / 8];
        // SAFETY: the array outlives the memory and is not touched while it is used.
        let memory = unsafe { Mapped::new(NonNull::from(&mut page).cast(), control::PAGE_SIZE) };
        assert_eq!(BootInfo::read(&memory), Err(BootError::NoBootInfo));
        let info = example();
        info.write(&memory).unwrap();
        assert_eq!(BootInfo::read(&memory).unwrap(), info);
        for pairs in [0, 3, 9, u32::MAX] {
            BootInfo { pairs, ..info.clone() }.write(&memory).unwrap();
            assert_eq!(BootInfo::read(&memory), Err(BootError::Field(DecodeError::Value(pairs.into()))));
        }
        info.write(&memory).unwrap();
        assert_eq!(info.region(MemoryKind::Heap).unwrap().address, 7);
        assert_eq!(BootInfo::find_region(&memory, MemoryKind::Heap), info.region(MemoryKind::Heap));
        assert_eq!(BootInfo::find_region(&memory, MemoryKind::Pool), None);
        assert!(info.features.has(CpuFeatures::AES) && !info.features.has(CpuFeatures::AVX512));
        memory.write(8, &(PROTOCOL + 1).to_le_bytes());
        assert_eq!(BootInfo::read(&memory), Err(BootError::Version { found: PROTOCOL + 1 }));
    }

    #[test]
    fn a_short_or_random_page_is_refused() {
        let mut full = Encoder::default();
        full.u64(MAGIC).u32(PROTOCOL);
        for seed in 0..2_000 {
            assert!(BootInfo::read(&&Hostile::new(4096, seed)).is_err());
            BootInfo::find_region(&&Hostile::new(4096, seed), MemoryKind::SharedRegion);
            let mut page = full.0.clone();
            page.resize(12 + seed as usize % 200, seed as u8);
            drop(BootInfo::decode(&page));
        }
    }
}
