//! Answers to the messages of a controller.

use std::time::Duration;

use flow_table::{Change, Command, port_number};

use super::buffers::{self, Buffers};
use super::connection::{Connection, VERSIONS};
use super::datapath::Datapath;
use super::limits::SessionState;
use super::port_config;
use crate::message::{
    Features, FlowMod, FlowSelection, FlowStats, GroupMod, HEADER, Header, Message, MultipartReply,
    MultipartRequest, PacketOut, PacketOutAction, Role, RoleRequest, TableMod,
};
use crate::version1::{self, Decoded};
use crate::{ErrorCode, MAX_MESSAGE, VERSION};

/// Messages that only a switch sends: replies and what it reports unasked.
const OF_SWITCHES: &[u8] = &[6, 8, 10, 11, 12, 19, 21, 23, 25, 27];

/// Messages that change the switch, which slaves may not: packet-out, and changes of entries, groups, ports, tables,
/// meters (OpenFlow 1.3.5, 6.3.6).
const CHANGES: &[u8] = &[13, 14, 15, 16, 17, 29];

/// The refusal of a controller that speaks another version.
const INCOMPATIBLE: &[u8] = b"only OpenFlow 1.3 and 1.0 are spoken here";

/// Bytes that the description of a group has beyond the message that defined it.
const GROUP_OVERHEAD: usize = 16;

/// What sessions of a switch share.
pub(super) struct AgentContext<'a, D> {
    pub(super) datapath: &'a mut D,
    pub(super) buffers: &'a mut Buffers,
    /// The latest number of an election of a master.
    pub(super) generation: &'a mut Option<u64>,
    /// Set if the session became the master: all other masters become slaves.
    pub(super) is_new_master: bool,
}

/// Answers a message. `message` includes the header.
pub(super) fn answer<D: Datapath>(
    connection: &mut Connection,
    header: Header,
    message: &[u8],
    context: &mut AgentContext<'_, D>,
    now: Duration,
) {
    let body = message.get(HEADER..).unwrap_or_default();
    if connection.state == SessionState::Greeting {
        greet(connection, header, body);
        return;
    }
    if let Err(code) = perform(connection, header, message, body, context, now) {
        connection.send_error(header.xid, code, message);
    }
}

/// Agrees on a version (OpenFlow 1.3.5, 6.3.1).
fn greet(connection: &mut Connection, header: Header, body: &[u8]) {
    const HELLO: u8 = 0;
    let agreed = match Message::decode(HELLO, body) {
        Ok(Message::Hello(hello)) if header.message_type == HELLO => {
            // Without a bitmap it is the lower one of both versions.
            let versions = hello.versions.unwrap_or(1u32.checked_shl(header.version.into()).unwrap_or(0));
            let versions =
                if hello.versions.is_none() && header.version > VERSION { VERSIONS } else { versions };
            [VERSION, version1::VERSION].into_iter().find(|version| versions & 1 << version != 0)
        }
        _ => None,
    };
    match agreed {
        Some(version) => (connection.state, connection.version) = (SessionState::Open, version),
        None => {
            // A controller of an older version than 1.3 understands the error in its own.
            if header.version < VERSION {
                connection.version = version1::VERSION;
            }
            connection.send_error(header.xid, ErrorCode::HFC_INCOMPATIBLE, INCOMPATIBLE);
            connection.close();
        }
    }
}

fn perform<D: Datapath>(
    connection: &mut Connection,
    header: Header,
    message: &[u8],
    body: &[u8],
    context: &mut AgentContext<'_, D>,
    now: Duration,
) -> Result<(), ErrorCode> {
    if header.version != connection.version {
        return Err(ErrorCode::BRC_BAD_VERSION);
    }
    if connection.is_version1() {
        return perform_version1(connection, header, message, body, context, now);
    }
    if OF_SWITCHES.contains(&header.message_type) {
        return Err(ErrorCode::BRC_BAD_TYPE);
    }
    if connection.role == Role::Slave && CHANGES.contains(&header.message_type) {
        return Err(ErrorCode::BRC_IS_SLAVE);
    }
    let decoded = match Message::decode(header.message_type, body) {
        // An error is never answered with an error.
        Err(_) if header.message_type == 1 => return Ok(()),
        decoded => decoded?,
    };
    perform_decoded(connection, header, message, decoded, context, now)
}

/// As [`perform`], in OpenFlow 1.0, which has no roles.
fn perform_version1<D: Datapath>(
    connection: &mut Connection,
    header: Header,
    message: &[u8],
    body: &[u8],
    context: &mut AgentContext<'_, D>,
    now: Duration,
) -> Result<(), ErrorCode> {
    let Decoded { message: mut decoded, adds_if_missing } = match version1::decode(header.message_type, body)
    {
        Err(_) if header.message_type == 1 => return Ok(()),
        decoded => decoded?,
    };
    if let (true, Message::FlowMod(change)) = (adds_if_missing, &mut decoded)
        && !has_entries(context.datapath, &change.change, now)?
    {
        change.change.command = Command::Add;
    }
    if decoded == Message::FeaturesRequest {
        let features = Features { buffers: buffers::CAPACITY as u32, ..context.datapath.features() };
        let ports = match context.datapath.report(&MultipartRequest::PortDescription, 0, now)?.reply {
            MultipartReply::PortDescription(ports) => ports,
            _ => Vec::new(),
        };
        connection.send_bytes(&version1::features_reply(header.xid, features, &ports));
        return Ok(());
    }
    perform_decoded(connection, header, message, decoded, context, now)
}

/// Whether there are entries that a modification changes.
fn has_entries<D: Datapath>(datapath: &mut D, change: &Change, now: Duration) -> Result<bool, ErrorCode> {
    let selection = FlowSelection { table: change.table, matching: change.matching, ..FlowSelection::all() };
    let request = MultipartRequest::Flow(selection);
    let mut from = 0;
    loop {
        let part = datapath.report(&request, from, now)?;
        let MultipartReply::Flow(flows) = part.reply else { return Ok(false) };
        let is_meant = |flow: &FlowStats| {
            change.command == Command::Modify
                || (flow.priority == change.priority && flow.matching == change.matching)
        };
        if flows.iter().any(is_meant) {
            return Ok(true);
        }
        match part.next {
            Some(next) if next > from => from = next,
            _ => return Ok(false),
        }
    }
}

/// Performs a message, and answers it.
fn perform_decoded<D: Datapath>(
    connection: &mut Connection,
    header: Header,
    message: &[u8],
    decoded: Message,
    context: &mut AgentContext<'_, D>,
    now: Duration,
) -> Result<(), ErrorCode> {
    let reply = match decoded {
        Message::EchoRequest(data) => Message::EchoReply(data),
        Message::Experimenter(_) => return Err(ErrorCode::BRC_BAD_EXPERIMENTER),
        Message::FeaturesRequest => {
            let features = context.datapath.features();
            Message::FeaturesReply(Features { buffers: buffers::CAPACITY as u32, ..features })
        }
        Message::GetConfigRequest => Message::GetConfigReply(connection.config),
        Message::SetConfig(config) => {
            // Fragments are always processed as they are (`OFPC_FRAG_NORMAL`).
            if config.flags != 0 {
                return Err(ErrorCode::SCFC_BAD_FLAGS);
            }
            connection.config = config;
            return Ok(());
        }
        Message::PacketOut(packet) => return packet_out(&packet, context, now),
        Message::FlowMod(change) => return change_flows(&change, context, now),
        Message::GroupMod(change) => {
            let is_deletion = matches!(change, GroupMod::Delete(_));
            if !is_deletion && message.len() + GROUP_OVERHEAD > MAX_MESSAGE {
                return Err(ErrorCode::GMFC_OUT_OF_BUCKETS);
            }
            return context.datapath.change_groups(&change, now);
        }
        Message::PortMod(change) => {
            let is_version1 = connection.is_version1();
            let change = if is_version1 { change } else { port_config::from_version3(change)? };
            return context.datapath.change_port(&change);
        }
        Message::TableMod(change) => return configure_table(change, context),
        Message::MeterMod(change) => return context.datapath.change_meters(&change, now),
        Message::MultipartRequest { request, more } => {
            check_multipart(connection, &request, more, context)?;
            connection.begin_report(header.xid, request, message);
            return Ok(());
        }
        Message::BarrierRequest => Message::BarrierReply,
        Message::QueueConfigRequest(port) => {
            Message::QueueConfigReply { port, queues: context.datapath.queues(port)? }
        }
        Message::RoleRequest(request) => Message::RoleReply(change_role(connection, request, context)?),
        Message::GetAsyncRequest => Message::GetAsyncReply(connection.reports),
        Message::SetAsync(config) => {
            connection.reports = config;
            return Ok(());
        }
        // A second hello, errors, answers to echo requests; the others were refused before.
        _ => return Ok(()),
    };
    connection.send(header.xid, &reply);
    Ok(())
}

fn packet_out<D: Datapath>(
    packet: &PacketOut,
    context: &mut AgentContext<'_, D>,
    now: Duration,
) -> Result<(), ErrorCode> {
    let buffered = packet.buffer.map(|number| context.buffers.take(number, now)).transpose()?;
    let frame = buffered.as_ref().map_or(packet.data.as_slice(), |buffered| &buffered.frame);
    context.datapath.packet_out(packet.in_port, &packet.actions, frame, now)
}

/// Changes entries, and then processes a packet that waited for them (OpenFlow 1.3.5, 7.3.4.1, `buffer_id`).
fn change_flows<D: Datapath>(
    change: &FlowMod,
    context: &mut AgentContext<'_, D>,
    now: Duration,
) -> Result<(), ErrorCode> {
    context.datapath.change_flows(&change.change, now)?;
    let is_deletion = matches!(change.change.command, Command::Delete | Command::DeleteStrict);
    let Some(number) = change.buffer.filter(|_| !is_deletion) else { return Ok(()) };
    let buffered = context.buffers.take(number, now)?;
    context.datapath.packet_out(buffered.in_port, &[PacketOutAction::Table], &buffered.frame, now)
}

fn configure_table<D: Datapath>(change: TableMod, context: &AgentContext<'_, D>) -> Result<(), ErrorCode> {
    const ALL_TABLES: u8 = 0xff;
    if change.table != ALL_TABLES && change.table >= context.datapath.features().tables {
        return Err(ErrorCode::TMFC_BAD_TABLE);
    }
    // The two lowest bits are deprecated, and reserved (7.3.3).
    if change.config & !0b11 != 0 { Err(ErrorCode::TMFC_BAD_CONFIG) } else { Ok(()) }
}

fn check_multipart<D: Datapath>(
    connection: &Connection,
    request: &MultipartRequest,
    more: bool,
    context: &AgentContext<'_, D>,
) -> Result<(), ErrorCode> {
    // OpenFlow 1.0 has no error for this; there it is a selection of nothing.
    if let MultipartRequest::Flow(selection) | MultipartRequest::Aggregate(selection) = request
        && !connection.is_version1()
        && selection.table.is_some_and(|table| table >= context.datapath.features().tables)
    {
        return Err(ErrorCode::BRC_BAD_TABLE_ID);
    }
    if matches!(request, MultipartRequest::TableFeatures(tables) if !tables.is_empty()) {
        // The features of tables can't be changed.
        return Err(match connection.role {
            Role::Slave => ErrorCode::BRC_IS_SLAVE,
            _ => ErrorCode::TFFC_EPERM,
        });
    }
    // No request needs several messages, so none is collected.
    if more { Err(ErrorCode::BRC_MULTIPART_BUFFER_OVERFLOW) } else { Ok(()) }
}

/// Changes the role (OpenFlow 1.3.5, 6.3.6). Returns the answer.
fn change_role<D: Datapath>(
    connection: &mut Connection,
    request: RoleRequest,
    context: &mut AgentContext<'_, D>,
) -> Result<RoleRequest, ErrorCode> {
    if let Some(Role::Master | Role::Slave) = request.role {
        // Numbers are compared as distances, so that they may wrap around.
        let is_stale = |latest: u64| request.generation.wrapping_sub(latest) as i64 <= -1;
        if context.generation.is_some_and(is_stale) {
            return Err(ErrorCode::RRFC_STALE);
        }
        *context.generation = Some(request.generation);
    }
    if let Some(role) = request.role {
        connection.role = role;
        context.is_new_master = role == Role::Master;
    }
    Ok(RoleRequest { role: Some(connection.role), generation: context.generation.unwrap_or(u64::MAX) })
}

/// The ingress port of a packet that is kept.
pub(super) fn in_port(fields: &flow_table::Match) -> u32 {
    fields.get(flow_table::Field::InPort).map_or(port_number::ANY, |(port, _)| port as u32)
}
