//! All messages, and their encoding.

use std::fmt;

use super::flow::{FlowMod, FlowRemoved};
use super::group::{GroupMod, MeterMod};
use super::header::{finish, start};
use super::multipart::{MULTIPART_REPLY, MultipartReply, MultipartRequest};
use super::packet::{PacketIn, PacketOut};
use super::port::{PortMod, PortStatus, Queue};
use super::setup::{AsyncConfig, Config, Experimenter, Features, Hello, RoleRequest, TableMod};
use crate::wire::{Reader, Writer, optional, or_any};
use crate::{ErrorCode, MAX_MESSAGE};

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The first message of both sides.
    Hello(Hello),
    /// A refusal, or a fault.
    Error {
        /// What is wrong.
        code: ErrorCode,
        /// The beginning of the message that is wrong, or a text if hello failed.
        data: Vec<u8>,
    },
    /// Asks whether the other side lives.
    EchoRequest(Vec<u8>),
    /// Repeats the contents of the request.
    EchoReply(Vec<u8>),
    /// A message of an extension.
    Experimenter(Experimenter),
    /// Asks what the switch is.
    FeaturesRequest,
    /// What the switch is.
    FeaturesReply(Features),
    /// Asks for the configuration.
    GetConfigRequest,
    /// The configuration.
    GetConfigReply(Config),
    /// Sets the configuration.
    SetConfig(Config),
    /// A packet for the controller.
    PacketIn(PacketIn),
    /// A flow entry was removed.
    FlowRemoved(FlowRemoved),
    /// A port changed.
    PortStatus(PortStatus),
    /// A packet from the controller.
    PacketOut(PacketOut),
    /// Changes flow entries.
    FlowMod(FlowMod),
    /// Changes groups.
    GroupMod(GroupMod),
    /// Configures a port.
    PortMod(PortMod),
    /// Configures a table.
    TableMod(TableMod),
    /// Asks for what may take several messages.
    MultipartRequest {
        /// The request.
        request: MultipartRequest,
        /// Whether more parts follow.
        more: bool,
    },
    /// A part of the reply.
    MultipartReply {
        /// The reply.
        reply: MultipartReply,
        /// Whether more parts follow.
        more: bool,
    },
    /// Asks to perform all earlier messages first.
    BarrierRequest,
    /// All earlier messages are performed.
    BarrierReply,
    /// Asks for the queues of a port, or of all ports.
    QueueConfigRequest(Option<u32>),
    /// The queues.
    QueueConfigReply {
        /// The port of the request.
        port: Option<u32>,
        /// Its queues.
        queues: Vec<Queue>,
    },
    /// Asks for a role.
    RoleRequest(RoleRequest),
    /// The role.
    RoleReply(RoleRequest),
    /// Asks what the switch reports unasked.
    GetAsyncRequest,
    /// What the switch reports unasked.
    GetAsyncReply(AsyncConfig),
    /// Sets what the switch reports unasked.
    SetAsync(AsyncConfig),
    /// Changes meters.
    MeterMod(MeterMod),
}

/// A message is longer than 64 KB and cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the message would be longer than {MAX_MESSAGE} bytes")
    }
}

impl std::error::Error for TooLong {}

impl Message {
    /// Decodes what follows the header of a message.
    ///
    /// # Errors
    /// The error to answer with.
    pub fn decode(message_type: u8, body: &[u8]) -> Result<Self, ErrorCode> {
        let mut reader = Reader::new(body, ErrorCode::BRC_BAD_LEN);
        let message = Self::read(message_type, &mut reader)?;
        reader.end()?;
        Ok(message)
    }

    fn read(message_type: u8, reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        Ok(match message_type {
            0 => {
                let hello = Self::Hello(Hello::read(reader)?);
                reader.rest();
                hello
            }
            1 => Self::Error {
                code: ErrorCode::new(reader.u16()?, reader.u16()?),
                data: reader.rest().to_vec(),
            },
            2 => Self::EchoRequest(reader.rest().to_vec()),
            3 => Self::EchoReply(reader.rest().to_vec()),
            4 => Self::Experimenter(Experimenter::read(reader)?),
            5 => Self::FeaturesRequest,
            6 => Self::FeaturesReply(Features::read(reader)?),
            7 => Self::GetConfigRequest,
            8 => Self::GetConfigReply(Config::read(reader)?),
            9 => Self::SetConfig(Config::read(reader)?),
            10 => Self::PacketIn(PacketIn::read(reader)?),
            11 => Self::FlowRemoved(FlowRemoved::read(reader)?),
            12 => Self::PortStatus(PortStatus::read(reader)?),
            13 => Self::PacketOut(PacketOut::read(reader)?),
            14 => Self::FlowMod(FlowMod::read(reader)?),
            15 => Self::GroupMod(GroupMod::read(reader)?),
            16 => Self::PortMod(PortMod::read(reader)?),
            17 => Self::TableMod(TableMod::read(reader)?),
            18 => {
                let (request, more) = MultipartRequest::read(reader)?;
                Self::MultipartRequest { request, more }
            }
            MULTIPART_REPLY => {
                let (reply, more) = MultipartReply::read(reader)?;
                Self::MultipartReply { reply, more }
            }
            20 => Self::BarrierRequest,
            21 => Self::BarrierReply,
            22 => Self::QueueConfigRequest(read_port(reader)?),
            23 => {
                let (port, mut queues) = (read_port(reader)?, Vec::new());
                while !reader.is_empty() {
                    queues.push(Queue::read(reader)?);
                }
                Self::QueueConfigReply { port, queues }
            }
            24 => Self::RoleRequest(RoleRequest::read(reader)?),
            25 => Self::RoleReply(RoleRequest::read(reader)?),
            26 => Self::GetAsyncRequest,
            27 => Self::GetAsyncReply(AsyncConfig::read(reader)?),
            28 => Self::SetAsync(AsyncConfig::read(reader)?),
            29 => Self::MeterMod(MeterMod::read(reader)?),
            _ => return Err(ErrorCode::BRC_BAD_TYPE),
        })
    }

    /// The type in the header (`OFPT_*`).
    #[must_use]
    pub fn message_type(&self) -> u8 {
        match self {
            Self::Hello(_) => 0,
            Self::Error { .. } => 1,
            Self::EchoRequest(_) => 2,
            Self::EchoReply(_) => 3,
            Self::Experimenter(_) => 4,
            Self::FeaturesRequest => 5,
            Self::FeaturesReply(_) => 6,
            Self::GetConfigRequest => 7,
            Self::GetConfigReply(_) => 8,
            Self::SetConfig(_) => 9,
            Self::PacketIn(_) => 10,
            Self::FlowRemoved(_) => 11,
            Self::PortStatus(_) => 12,
            Self::PacketOut(_) => 13,
            Self::FlowMod(_) => 14,
            Self::GroupMod(_) => 15,
            Self::PortMod(_) => 16,
            Self::TableMod(_) => 17,
            Self::MultipartRequest { .. } => 18,
            Self::MultipartReply { .. } => MULTIPART_REPLY,
            Self::BarrierRequest => 20,
            Self::BarrierReply => 21,
            Self::QueueConfigRequest(_) => 22,
            Self::QueueConfigReply { .. } => 23,
            Self::RoleRequest(_) => 24,
            Self::RoleReply(_) => 25,
            Self::GetAsyncRequest => 26,
            Self::GetAsyncReply(_) => 27,
            Self::SetAsync(_) => 28,
            Self::MeterMod(_) => 29,
        }
    }

    /// Encodes the message with a header.
    ///
    /// # Errors
    /// It is longer than 64 KB. [`super::encode_multipart`] encodes replies of any length.
    pub fn encode(&self, xid: u32) -> Result<Vec<u8>, TooLong> {
        let mut writer = start(self.message_type(), xid);
        self.write(&mut writer);
        if writer.len() > MAX_MESSAGE { Err(TooLong) } else { Ok(finish(writer)) }
    }

    fn write(&self, writer: &mut Writer) {
        match self {
            Self::Hello(hello) => hello.write(writer),
            Self::Error { code, data } => {
                writer.u16(code.error_type).u16(code.code).bytes(data);
            }
            Self::EchoRequest(data) | Self::EchoReply(data) => {
                writer.bytes(data);
            }
            Self::Experimenter(experimenter) => experimenter.write(writer),
            Self::FeaturesReply(features) => features.write(writer),
            Self::GetConfigReply(config) | Self::SetConfig(config) => config.write(writer),
            Self::PacketIn(packet) => packet.write(writer),
            Self::FlowRemoved(removed) => removed.write(writer),
            Self::PortStatus(status) => status.write(writer),
            Self::PacketOut(packet) => packet.write(writer),
            Self::FlowMod(change) => change.write(writer),
            Self::GroupMod(change) => change.write(writer),
            Self::PortMod(change) => change.write(writer),
            Self::TableMod(change) => change.write(writer),
            Self::MultipartRequest { request, more } => request.write(writer, *more),
            Self::MultipartReply { reply, more } => reply.write(writer, *more),
            Self::QueueConfigRequest(port) => write_port(writer, *port),
            Self::QueueConfigReply { port, queues } => {
                write_port(writer, *port);
                queues.iter().for_each(|queue| queue.write(writer));
            }
            Self::RoleRequest(role) | Self::RoleReply(role) => role.write(writer),
            Self::GetAsyncReply(config) | Self::SetAsync(config) => config.write(writer),
            Self::MeterMod(change) => change.write(writer),
            Self::FeaturesRequest
            | Self::GetConfigRequest
            | Self::BarrierRequest
            | Self::BarrierReply
            | Self::GetAsyncRequest => {}
        }
    }
}

fn read_port(reader: &mut Reader<'_>) -> Result<Option<u32>, ErrorCode> {
    let port = optional(reader.u32()?);
    reader.skip(4)?;
    Ok(port)
}

fn write_port(writer: &mut Writer, port: Option<u32>) {
    writer.u32(or_any(port)).pad(4);
}
