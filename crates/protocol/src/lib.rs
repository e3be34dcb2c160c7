//! The messages between daemon, launcher and fabric, and the channel that carries them.
//!
//! - The **daemon** serves the API and keeps the store.
//! - A **fabric** is a process that holds boxes and moves packets.
//! - The **launcher** keeps the privileges: it starts fabrics, and opens the devices that they use.
//! - The **agent** of a fabric holds the sessions with OpenFlow controllers.
//! - A **function** is a process that attaches itself to a service.
//!
//! Each pair of them talks over a [`Channel`]. The first message of a conversation is [`Hello`].
//!
//! Invariants:
//! - Every byte and every descriptor that arrives is checked as if a stranger had sent it: no message makes a receiver
//!   panic, block, leak a descriptor, or allocate more than the bound that it states.
//! - No message type is recursive, and no list has elements of zero length: either would let a few bytes cost much
//!   stack or time.
//! - Messages are MessagePack with the names of fields and variants, so that either may be added.
//!
//! Absent on purpose: what the messages make a process do, and configuration texts, JSON and SQL.

#![forbid(unsafe_code)]

pub mod agent;
pub mod channel;
pub mod codec;
pub mod fabric;
pub mod function;
mod hello;
pub mod launcher;
mod poll;

pub use channel::memory_file;
pub use channel::{Channel, ChannelError, MAX_DESCRIPTORS, MemoryFileFault, Received};
pub use hello::{Hello, HelloError, StoreIdentity};
pub use poll::poll_briefly;
