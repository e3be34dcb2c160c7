//! What an agent needs of a switch.

use std::time::Duration;

use flow_table::{Change, Match};

use crate::ErrorCode;
use crate::message::{
    Features, FlowRemoved, GroupMod, MeterMod, MultipartReply, MultipartRequest, PacketInReason,
    PacketOutAction, PortMod, PortStatus, Queue,
};

/// A part of the answer to a multipart request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The answer, or a part of it that takes about 64 KB at most.
    pub reply: MultipartReply,
    /// Where the next part begins; `None` after the last one.
    pub next: Option<u64>,
}

impl Report {
    /// A whole answer.
    #[must_use]
    pub fn whole(reply: MultipartReply) -> Self {
        Self { reply, next: None }
    }
}

/// A packet that the switch sends to controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketForController {
    /// Why.
    pub reason: PacketInReason,
    /// The table whose entry sent it.
    pub table: u8,
    /// The cookie of that entry; `u64::MAX` if there is none.
    pub cookie: u64,
    /// The ingress port, and the metadata and tunnel number if they are not zero.
    pub fields: Match,
    /// Bytes of the frame to send, as the output action states it; `None` if no output action sent it.
    pub max_length: Option<u16>,
    /// The frame.
    pub frame: Vec<u8>,
}

/// What controllers are told unasked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A packet for the controllers.
    Packet(PacketForController),
    /// An entry was removed, which had asked for this event.
    FlowRemoved(FlowRemoved),
    /// A port changed.
    Port(PortStatus),
}

/// A switch that an agent speaks for. A refusal changes nothing.
pub trait Datapath {
    /// Identity, tables and capabilities. The agent replaces the number of buffers.
    fn features(&self) -> Features;

    /// Changes flow entries.
    ///
    /// # Errors
    /// The reason of the refusal.
    fn change_flows(&mut self, change: &Change, now: Duration) -> Result<(), ErrorCode>;

    /// Changes groups. A deletion also deletes the flow entries that use the group.
    ///
    /// # Errors
    /// The reason of the refusal.
    fn change_groups(&mut self, change: &GroupMod, now: Duration) -> Result<(), ErrorCode>;

    /// Changes meters. A deletion also deletes the flow entries that use the meter.
    ///
    /// # Errors
    /// The reason of the refusal.
    fn change_meters(&mut self, change: &MeterMod, now: Duration) -> Result<(), ErrorCode>;

    /// Configures a port.
    ///
    /// # Errors
    /// The reason of the refusal.
    fn change_port(&mut self, change: &PortMod) -> Result<(), ErrorCode>;

    /// Performs actions on a frame of a controller, as if it had arrived on `in_port`.
    ///
    /// # Errors
    /// The reason of the refusal.
    fn packet_out(
        &mut self,
        in_port: u32,
        actions: &[PacketOutAction],
        frame: &[u8],
        now: Duration,
    ) -> Result<(), ErrorCode>;

    /// Answers a multipart request, from the part that begins at `from`; the first one begins at 0.
    ///
    /// # Errors
    /// The reason of the refusal.
    fn report(&mut self, request: &MultipartRequest, from: u64, now: Duration) -> Result<Report, ErrorCode>;

    /// The queues of a port, or of all ports.
    ///
    /// # Errors
    /// There is no such port.
    fn queues(&mut self, port: Option<u32>) -> Result<Vec<Queue>, ErrorCode>;

    /// Has the next call of [`Self::events`] return everything that happened until now.
    fn refresh(&mut self) {}

    /// What happened since the last call; at most a few hundred events at a time. Timeouts of entries are noticed here.
    fn events(&mut self, now: Duration) -> Vec<Event>;
}
