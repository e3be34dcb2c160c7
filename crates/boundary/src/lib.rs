//! The memory that a box and its host share: boot info, rings, mailbox, status and crash pages.
//!
//! Both sides compile this crate, so that each has the same idea of every offset. It knows nothing of
//! virtual machines, processes, packets' contents or Click.
//!
//! Invariants:
//! - All shared memory is reached through [`SharedMemory`]; nothing else dereferences it.
//! - A word that the peer can write is loaded once, checked, and only then used. No value found in shared
//!   memory makes this crate panic, read or write outside its region, or loop without bound.
//! - What the peer may claim is bounded by constants that name the reason ([`limits`]).
//!
//! Absent on purpose: doorbells, sleeping and clocks. A ring says *that* its peer wants to be woken; how
//! that is done is the business of whoever runs the box.
#![no_std]

extern crate alloc;

mod boot;
mod codec;
mod crash;
mod ground;
mod holders;
mod layout;
pub mod leave;
pub mod limits;
mod loans;
mod mailbox;
mod memory;
mod origin;
mod patience;
mod port;
mod ring;
mod status;
mod version;

pub use boot::{BootError, BootInfo, CpuFeatures, MemoryKind, MemoryRegion, Platform, PortInfo};
pub use codec::DecodeError;
pub use crash::{CrashBatch, CrashCause, CrashPacket, CrashPage, CrashReport, Registers, fault};
pub use ground::{Ground, HeapUse, Rest};
pub use holders::{Holder, Holders};
pub use layout::{AreaLayout, LayoutError, PortLayout, control};
pub use loans::Loans;
pub use mailbox::{
    ChannelError, Diagnostic, Event, Frame, FrameReader, FrameWriter, Inbox, Kind, Message, Outbox,
    PortStats, Reply, Request, Severity, Stats,
};
pub use memory::{LINE, Mapped, SharedMemory};
pub use origin::{Origin, Remainder};
pub use patience::Patience;
pub use port::{HostPort, NEAR, Passed, PortFault, Taken};
pub use ring::{Consumer, Corrupt, Descriptor, DescriptorError, Pool, Producer, RingError, Slots, indices};
pub use status::{BoxState, StatusPage};
pub use version::{NOTE_NAME, NOTE_TYPE, NoteError, PROTOCOL, VersionNote};
