//! An OpenFlow controller for tests.

use super::TIMEOUT;
use flow_table::{Change, Command, Instructions, Match, Output};
use openflow::VERSION;
use openflow::message::{
    FlowMod, FlowSelection, FlowStats, HEADER, Header, Hello, Message, MultipartReply, MultipartRequest,
    PacketIn, Port,
};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// A controller with one connection.
pub(crate) struct Controller {
    pub(crate) stream: TcpStream,
    pub(crate) unread: Vec<u8>,
    /// Packets that came while something else was waited for.
    pub(crate) packets: VecDeque<PacketIn>,
}

impl Controller {
    /// A controller with this connection.
    pub(crate) fn of(stream: TcpStream) -> Self {
        Self { stream, unread: Vec::new(), packets: VecDeque::new() }
    }

    /// Waits for the switch, and exchanges greetings.
    pub(crate) fn accept(listener: &TcpListener) -> Self {
        let (stream, _) = listener.accept().expect("the switch connects");
        let mut controller = Self::of(stream);
        controller.send(&Message::Hello(Hello { versions: Some(1 << VERSION) }));
        controller.wait(|message| matches!(message, Message::Hello(_)).then_some(()));
        controller
    }

    pub(crate) fn send(&mut self, message: &Message) {
        let bytes = message.encode(7).expect("a short message");
        self.stream.write_all(&bytes).expect("the switch reads");
    }

    /// The next message that comes in this time.
    pub(crate) fn next(&mut self, timeout: Duration) -> Option<Message> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(header) = Header::decode(&self.unread)
                && self.unread.len() >= usize::from(header.length)
            {
                let message: Vec<u8> = self.unread.drain(..usize::from(header.length)).collect();
                return Some(Message::decode(header.message_type, &message[HEADER..]).expect("a message"));
            }
            let left = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
            self.stream.set_read_timeout(Some(left)).expect("a timeout");
            let mut buffer = [0; 65536];
            match self.stream.read(&mut buffer) {
                Ok(0) => panic!("the switch closed the connection"),
                Ok(count) => self.unread.extend_from_slice(&buffer[..count]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Waits for a message.
    pub(crate) fn wait<T>(&mut self, wanted: impl Fn(&Message) -> Option<T>) -> T {
        let begin = Instant::now();
        loop {
            let message = self.next(TIMEOUT).expect("a message");
            if let Message::EchoRequest(data) = &message {
                let reply = Message::EchoReply(data.clone());
                self.send(&reply);
            }
            if let Some(found) = wanted(&message) {
                return found;
            }
            if let Message::PacketIn(packet) = &message {
                self.packets.push_back(packet.clone());
            }
            assert!(begin.elapsed() < TIMEOUT, "only other messages, such as {message:?}");
        }
    }

    /// Adds an entry, and waits until it is there.
    pub(crate) fn add(&mut self, priority: u16, cookie: u64, output: Output) {
        self.add_where(Match::any(), priority, cookie, output);
    }

    /// Adds an entry with a condition, and waits until it is there.
    pub(crate) fn add_where(&mut self, matching: Match, priority: u16, cookie: u64, output: Output) {
        let instructions = Instructions::output(output);
        let change = Change { cookie, instructions, ..Change::new(Command::Add, matching, priority) };
        self.send(&Message::FlowMod(FlowMod { change, buffer: None }));
        self.send(&Message::BarrierRequest);
        self.wait(|message| match message {
            Message::Error { code, .. } => panic!("the entry is refused: {code:?}"),
            message => matches!(message, Message::BarrierReply).then_some(()),
        });
    }

    pub(crate) fn packet_in(&mut self) -> PacketIn {
        if let Some(packet) = self.packets.pop_front() {
            return packet;
        }
        self.wait(|message| match message {
            Message::PacketIn(packet) => Some(packet.clone()),
            _ => None,
        })
    }

    /// The entries with a cookie.
    pub(crate) fn flows(&mut self, cookie: u64) -> Vec<FlowStats> {
        self.flows_where(cookie, u64::MAX)
    }

    /// The entries whose cookie has these bits where the mask has some, of all parts of the reply.
    pub(crate) fn flows_where(&mut self, cookie: u64, cookie_mask: u64) -> Vec<FlowStats> {
        let selection = FlowSelection {
            table: None,
            out_port: None,
            out_group: None,
            cookie,
            cookie_mask,
            matching: Match::any(),
        };
        self.send(&Message::MultipartRequest { request: MultipartRequest::Flow(selection), more: false });
        let mut all = Vec::new();
        loop {
            let (part, more) = self.wait(|message| match message {
                Message::MultipartReply { reply: MultipartReply::Flow(flows), more } => {
                    Some((flows.clone(), *more))
                }
                _ => None,
            });
            all.extend(part);
            if !more {
                return all;
            }
        }
    }

    /// The descriptions of the ports.
    pub(crate) fn ports(&mut self) -> Vec<Port> {
        self.send(&Message::MultipartRequest { request: MultipartRequest::PortDescription, more: false });
        self.wait(|message| match message {
            Message::MultipartReply { reply: MultipartReply::PortDescription(ports), .. } => {
                Some(ports.clone())
            }
            _ => None,
        })
    }

    /// The number of a port. Descriptions have the first 15 bytes of its name (OpenFlow 1.3.5, 7.2.1).
    pub(crate) fn port(&mut self, name: &str) -> u32 {
        let name = name.get(..15).unwrap_or(name);
        self.ports().iter().find(|port| port.name == name).expect("the port").number
    }
}

pub(crate) fn to_controller() -> Output {
    Output::Controller { max_length: 0xffff }
}

pub(crate) fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("tcp:{}", listener.local_addr().expect("an address"));
    (listener, address)
}
