//! The conversation between a fabric and its OpenFlow agent, the process that holds the sessions with controllers.
//!
//! After the greetings the agent sends one [`Request`] at a time, and the fabric answers it with a [`Reply`]. Changes,
//! requests and reports are OpenFlow 1.3 messages without their header, in bytes: the fabric decodes and checks them as if a
//! controller had sent them to it. Unasked, the fabric sends [`FromFabric::Wake`] when something waits. If a request made it wait, the
//! wake comes before the reply, so that the agent need not ask after each request.

use crate::hello::{Hello, StoreIdentity};
use model::{ControllerMethod, ControllerRole, SwitchName};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use std::net::SocketAddr;

/// The version of this conversation. Either side also speaks the one before.
pub const VERSION: u16 = 2;

/// The first version in which what a request causes is announced before its reply.
const WAKES_BEFORE_REPLIES: u16 = 2;

/// Maximum number of bytes of a request: an OpenFlow message and its framing.
pub const MAX_REQUEST: usize = 80 << 10;

/// Maximum number of bytes of a message of the fabric: the switches of a fabric, or a part of a report.
pub const MAX_REPLY: usize = 8 << 20;

/// Maximum number of bytes of the error of a controller's connection.
pub const MAX_ERROR: usize = 200;

/// Whether a fabric of this version announces what a request causes before it replies.
#[must_use]
pub fn wakes_before_replies(version: u16) -> bool {
    version >= WAKES_BEFORE_REPLIES
}

/// A message of the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToFabric {
    /// The first message.
    Hello(Hello),
    /// A request.
    Request(Request),
}

/// A message of the fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromFabric {
    /// The first message.
    Hello(Hello),
    /// The answer to the last request.
    Reply(Reply),
    /// Something waits at a switch, or the switches have changed. It is no answer.
    Wake,
}

/// What the agent asks of the fabric. Switches are named by the number of [`AgentSwitch`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// The switches that have controllers.
    Switches,
    /// Performs a message of a controller: of the types flow, group, meter and port modification, and packet-out.
    Perform {
        /// The switch.
        switch: u64,
        /// The type of the message.
        message_type: u8,
        /// What follows its header.
        body: ByteBuf,
    },
    /// Answers a multipart request, from the part that begins at `from`; the first one begins at 0.
    Report {
        /// The switch.
        switch: u64,
        /// The request: what follows the header of the message.
        body: ByteBuf,
        /// The part.
        from: u64,
    },
    /// What happened since the last such request.
    Events {
        /// The switch.
        switch: u64,
    },
    /// How the connections to the controllers of a switch are.
    Status {
        /// The switch.
        switch: u64,
        /// In the order of [`AgentSwitch::controllers`].
        controllers: Vec<ControllerState>,
    },
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// It was done.
    Done,
    /// It is refused, with this OpenFlow error.
    Refused {
        /// The type of the error.
        error_type: u16,
        /// Its code.
        code: u16,
    },
    /// The switches that have controllers.
    Switches(Vec<AgentSwitch>),
    /// A part of a report.
    Report {
        /// The multipart reply: what follows the header of the message.
        bodies: Vec<ByteBuf>,
        /// Where the next part begins; `None` after the last one.
        next: Option<u64>,
    },
    /// What happened.
    Events {
        /// Packets for the controllers.
        packets: Vec<AgentPacket>,
        /// Flow-removed and port-status messages: their types, and what follows their headers.
        messages: Vec<(u8, ByteBuf)>,
    },
    /// There is no such switch any more.
    NoSwitch,
}

/// The identity of a switch (OpenFlow 1.3.5, 7.3.1): an address that no network adapter has, and no number. It depends on the
/// store and the name alone, so that controllers know the switch again after a restart (FNV-1a).
#[must_use]
pub fn datapath(store: StoreIdentity, switch: &SwitchName) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in store.iter().chain(switch.as_str().as_bytes()) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash & 0xfcff_ffff_ffff | 0x0200_0000_0000
}

/// A switch that has controllers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSwitch {
    /// The number that requests name: never used for another switch of this fabric.
    pub number: u64,
    /// Its name.
    pub name: SwitchName,
    /// Its identity, which stays when the fabric is replaced.
    pub datapath: u64,
    /// Its controllers: addresses of TCP servers, or own addresses to listen at.
    pub controllers: Vec<SocketAddr>,
    /// How the connection to each comes about; TCP where there is none.
    #[serde(default)]
    pub methods: Vec<ControllerMethod>,
}

/// A packet for the controllers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentPacket {
    /// A packet-in message, without its header: with the whole packet and without a buffer.
    pub body: ByteBuf,
    /// Bytes of the packet to send; `None` for as many as the controller configured.
    pub max_length: Option<u16>,
}

/// How the connection to a controller is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerState {
    /// Its role, if it is connected and has sent its greeting.
    pub role: Option<ControllerRole>,
    /// Seconds since it was connected, or since the connection ended.
    pub since_seconds: u64,
    /// Why the last attempt to connect failed, or the last connection ended.
    pub error: Option<String>,
    /// Whether a controller of OpenFlow 1.0 is connected, which gets packets that no entry matches.
    #[serde(default)]
    pub gets_misses: bool,
}
