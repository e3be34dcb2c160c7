//! A switch in the fabric, as the sessions see it.

use super::line::Line;
use flow_table::Change;
use openflow::ErrorCode;
use openflow::message::{
    Features, FlowMod, GroupMod, Message, MeterMod, MultipartReply, MultipartRequest, PacketOut,
    PacketOutAction, PortMod, Queue,
};
use openflow::session::{Datapath, Event, PacketForController, Report};
use protocol::agent::{AgentPacket, Reply, Request};
use serde_bytes::ByteBuf;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// Time between two questions for events, if nothing says that there are any: ports have none.
const PAUSE: Duration = Duration::from_secs(1);

/// Bytes of an OpenFlow message before its body.
const HEADER: usize = 8;

/// Flows, tables, ports and groups have statistics (`OFPC_*`).
const CAPABILITIES: u32 = 0b1111;

/// A switch in the fabric.
pub(super) struct RemoteSwitch {
    line: Rc<RefCell<Line>>,
    number: u64,
    datapath: u64,
    /// What the line counted when this switch was last asked for events.
    wakes: u64,
    asked: Duration,
    /// There may be events of which the fabric does not say so.
    is_changed: bool,
}

impl RemoteSwitch {
    /// The switch with this number.
    pub(super) fn new(line: Rc<RefCell<Line>>, number: u64, datapath: u64) -> Self {
        Self { line, number, datapath, wakes: 0, asked: Duration::ZERO, is_changed: true }
    }

    fn ask(&self, request: Request) -> Result<Reply, ErrorCode> {
        match self.line.borrow_mut().ask(request) {
            Some(Reply::Refused { error_type, code }) => Err(ErrorCode::new(error_type, code)),
            Some(Reply::NoSwitch) | None => Err(ErrorCode::BRC_EPERM),
            Some(reply) => Ok(reply),
        }
    }

    fn perform(&mut self, message: &Message) -> Result<(), ErrorCode> {
        // A fabric of the first version does not say whether there are events.
        self.is_changed = !self.line.borrow().wakes_before_replies();
        let body = body(message).ok_or(ErrorCode::BRC_BAD_LEN)?;
        let request = Request::Perform { switch: self.number, message_type: message.message_type(), body };
        self.ask(request).map(drop)
    }
}

impl Datapath for RemoteSwitch {
    fn features(&self) -> Features {
        let tables = flow_table::TABLES as u8;
        Features { datapath: self.datapath, buffers: 0, tables, auxiliary: 0, capabilities: CAPABILITIES }
    }

    fn change_flows(&mut self, change: &Change, _: Duration) -> Result<(), ErrorCode> {
        self.perform(&Message::FlowMod(FlowMod { change: change.clone(), buffer: None }))
    }

    fn change_groups(&mut self, change: &GroupMod, _: Duration) -> Result<(), ErrorCode> {
        self.perform(&Message::GroupMod(change.clone()))
    }

    fn change_meters(&mut self, change: &MeterMod, _: Duration) -> Result<(), ErrorCode> {
        self.perform(&Message::MeterMod(change.clone()))
    }

    fn change_port(&mut self, change: &PortMod) -> Result<(), ErrorCode> {
        self.perform(&Message::PortMod(*change))
    }

    fn packet_out(
        &mut self,
        in_port: u32,
        actions: &[PacketOutAction],
        frame: &[u8],
        _: Duration,
    ) -> Result<(), ErrorCode> {
        let (actions, data) = (actions.to_vec(), frame.to_vec());
        self.perform(&Message::PacketOut(PacketOut { buffer: None, in_port, actions, data }))
    }

    fn report(&mut self, request: &MultipartRequest, from: u64, _: Duration) -> Result<Report, ErrorCode> {
        let message = Message::MultipartRequest { request: request.clone(), more: false };
        let body = body(&message).ok_or(ErrorCode::BRC_MULTIPART_BUFFER_OVERFLOW)?;
        let reply = self.ask(Request::Report { switch: self.number, body, from })?;
        let Reply::Report { bodies, next } = reply else { return Err(ErrorCode::BRC_EPERM) };
        let mut whole: Option<MultipartReply> = None;
        for body in bodies {
            let Ok(Message::MultipartReply { reply, .. }) = Message::decode(19, &body) else {
                return Err(ErrorCode::BRC_EPERM);
            };
            match &mut whole {
                Some(whole) => whole.append(reply),
                None => whole = Some(reply),
            }
        }
        let reply = whole.ok_or(ErrorCode::BRC_EPERM)?;
        // A part that does not follow this one would never end.
        Ok(Report { reply, next: next.filter(|next| *next > from) })
    }

    fn queues(&mut self, port: Option<u32>) -> Result<Vec<Queue>, ErrorCode> {
        self.report(&MultipartRequest::Queue { port, queue: None }, 0, Duration::ZERO).map(|_| Vec::new())
    }

    fn refresh(&mut self) {
        self.is_changed = true;
    }

    fn events(&mut self, now: Duration) -> Vec<Event> {
        let wakes = self.line.borrow().wakes();
        if wakes == self.wakes && !self.is_changed && now.saturating_sub(self.asked) < PAUSE {
            return Vec::new();
        }
        (self.wakes, self.asked, self.is_changed) = (wakes, now, false);
        let Ok(Reply::Events { packets, messages }) = self.ask(Request::Events { switch: self.number })
        else {
            return Vec::new();
        };
        let decoded = messages.iter().filter_map(|(kind, body)| match Message::decode(*kind, body).ok()? {
            Message::FlowRemoved(removed) => Some(Event::FlowRemoved(removed)),
            Message::PortStatus(status) => Some(Event::Port(status)),
            _ => None,
        });
        decoded.chain(packets.iter().filter_map(packet)).collect()
    }
}

/// What follows the header of a message; `None` if it is too long.
fn body(message: &Message) -> Option<ByteBuf> {
    let mut bytes = message.encode(0).ok()?;
    (bytes.len() >= HEADER).then(|| ByteBuf::from(bytes.split_off(HEADER)))
}

fn packet(packet: &AgentPacket) -> Option<Event> {
    let Ok(Message::PacketIn(message)) = Message::decode(10, &packet.body) else { return None };
    Some(Event::Packet(PacketForController {
        reason: message.reason,
        table: message.table,
        cookie: message.cookie,
        fields: message.fields,
        max_length: packet.max_length,
        frame: message.data,
    }))
}
