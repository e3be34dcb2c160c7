//! The memory that a box and its host share: boot info, rings, mailbox, status and crash pages.
//!
//! Both sides compile this crate, so both use the same offsets. It does not depend on virtual machines, processes, the
//! contents of packets or Click.
//!
//! Invariants:
//! - All shared memory is accessed through [`SharedMemory`]; nothing else dereferences it.
//! - A word that the peer can write is loaded once, checked, and only then used. No value found in shared memory makes
//!   this crate panic, read or write outside its region, or loop without bound.
//! - What the peer may claim is bounded by constants that name the reason ([`limits`]).
//!
//! Absent on purpose: doorbells, sleeping and clocks. A ring reports *that* its peer must be woken; the crate that runs
//! the box decides how.

#![allow(unsafe_code, reason = "box and host share memory")]
#![no_std]

extern crate alloc;

mod answer;
mod boot;
mod codec;
mod crash;
pub mod exit;
mod idle;
mod layout;
mod leases;
pub mod limits;
mod mailbox;
mod memory;
mod owners;
mod platform;
mod port;
mod ring;
mod source;
mod status;
mod tags;
mod version;

pub use answer::{Answer, MAX_DESTINATION};
pub use boot::{BootError, BootInfo, CpuFeatures, MemoryKind, MemoryRegion, PlatformKind, PortInfo};
pub use codec::DecodeError;
pub use crash::{CrashBatch, CrashCause, CrashPacket, CrashPage, CrashReport, Registers, fault};
pub use idle::IdleBackoff;
pub use layout::{LayoutError, PortLayout, RegionLayout, control};
pub use leases::{BoxRegion, BufferLeases};
pub use mailbox::{
    ChannelError, Diagnostic, DiscardedPackets, Event, FlowExport, FlowList, FlowPosition, Frame,
    FrameReader, FrameWriter, Inbox, LostPackets, Message, MessageKind, Outbox, PacketAccount, PacketFates,
    PortStats, RefusedState, RefusedWrite, Reply, Request, Severity, SpreadRange, StateRecord, StateTuple,
    Stats, WaitingPackets, WriteEffect, Written, decode_answers, decode_groups, decode_states,
    encode_answers, encode_groups, encode_states,
};
pub use memory::{CACHE_LINE, Mapped, SharedMemory, end_stream};
pub use owners::{BufferOwners, PoolMember, PoolShare};
pub use platform::{DoorbellCount, HeapUse, Platform};
pub use port::{DirectBatch, DirectPacket, ForwardReport, HostPort, NEAR_PREFETCH, PortFault, TakenPacket};
pub use ring::{
    Consumer, CorruptIndex, Descriptor, DescriptorError, FreeSlots, PoolLayout, Producer, RingError, Slots,
    indices,
};
pub use source::{PayloadTail, SourceRegion};
pub use status::{BoxState, MAX_PUBLISHED_REASONS, PublishedAccount, StatusPage};
pub use tags::BufferTags;
pub use version::{NOTE_NAME, NOTE_TYPE, NoteError, PROTOCOL, VersionNote};
