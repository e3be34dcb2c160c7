//! Packets: buffers from fixed pools, batches, annotations, time, header views, the names of assigned numbers,
//! and programs that select packets.
//!
//! Invariants:
//! - a packet's bytes are always initialised memory, in its own buffer or in one that it keeps alive;
//! - a packet's bytes are written only while no other packet shares them;
//! - no method panics, for any lengths and offsets;
//! - once a pool has grown to the size that its user needs, nothing in this crate allocates for a packet.
//!
//! Absent: input and output, clocks, elements, and threads: a pool and its packets stay on one thread.

#![allow(unsafe_code, reason = "buffers are reached through raw pointers")]
#![no_std]

extern crate alloc;

pub mod address;
pub mod annotation;
mod batch;
mod batch_trace;
mod bulk;
mod cache_line;
pub mod checksum;
pub mod iana;
mod packet;
mod packet_type;
mod pool;
mod prefetch;
mod receiving;
pub mod services;
mod shared_bytes;
mod simd;
mod slot;
pub mod socket_filter;
pub mod steering;
mod time;
pub mod view;

pub use address::{AddressError, Ip4Prefix, Ip6Prefix, Ip6Text, MacAddr};
pub use batch::{Batch, MAX_BATCH, MAX_SCATTER};
pub use batch_trace::BatchTrace;
pub use packet::Packet;
pub use packet_type::PacketType;
pub use pool::{HEADROOM, Pool};
pub use prefetch::prefetch;
pub use receiving::Receiving;
pub use shared_bytes::SharedBytes;
pub use simd::{add_where_at_least, equal_lanes, lanes_in_range, replace_lanes, transpose_words};
pub use slot::{CAPACITY, MAX_CAPACITY};
pub use time::{SECOND, Timestamp};
pub use view::{
    ArpView, ArpViewMut, EtherType, EthernetView, EthernetViewMut, Icmp4View, Icmp4ViewMut, Icmp6View,
    Icmp6ViewMut, Ip4View, Ip4ViewMut, Ip6View, Ip6ViewMut, PppView, PppViewMut, PppoeView, PppoeViewMut,
    TcpView, TcpViewMut, UdpView, UdpViewMut, VlanView, VlanViewMut, protocol,
};
