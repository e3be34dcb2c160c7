//! An OpenFlow controller, as the measurements need one.

use crate::error::MeasureError;
use openflow::VERSION;
use openflow::message::{HEADER, Header, Hello, Message};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the switch may take to connect, and to answer.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The pause between two looks for a connection.
const PAUSE: Duration = Duration::from_millis(1);

/// Where a switch finds a controller.
pub(super) struct Meeting {
    listener: TcpListener,
}

impl Meeting {
    /// A free port of this host.
    pub(super) fn new() -> Result<Self, MeasureError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(MeasureError::Controller)?;
        listener.set_nonblocking(true).map_err(MeasureError::Controller)?;
        Ok(Self { listener })
    }

    /// The address.
    pub(super) fn address(&self) -> Result<SocketAddr, MeasureError> {
        self.listener.local_addr().map_err(MeasureError::Controller)
    }

    /// Waits for the switch. It has left connections that it made too long ago, and makes another one.
    pub(super) fn wait(&self) -> Result<Controller, MeasureError> {
        let begin = Instant::now();
        loop {
            let last = match self.listener.accept() {
                Ok((stream, _)) => match Controller::greet(stream) {
                    Ok(controller) => return Ok(controller),
                    Err(error) => error,
                },
                Err(error) => MeasureError::Controller(error),
            };
            if begin.elapsed() > TIMEOUT {
                return Err(last);
            }
            sleep(PAUSE);
        }
    }
}

/// A session with a switch.
pub(super) struct Controller {
    stream: TcpStream,
    /// Received bytes; those before `begin` are read.
    unread: Vec<u8>,
    begin: usize,
}

impl Controller {
    /// A session on a new connection, when the switch answers.
    fn greet(stream: TcpStream) -> Result<Self, MeasureError> {
        let prepare = || {
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            stream.set_nodelay(true)
        };
        prepare().map_err(MeasureError::Controller)?;
        let mut controller = Self { stream, unread: Vec::new(), begin: 0 };
        controller.send(&encoded(&Message::Hello(Hello { versions: Some(1 << VERSION) })))?;
        controller.until(|message| matches!(message, Message::Hello(_)).then_some(()))?;
        controller.barrier()?;
        Ok(controller)
    }

    /// Sends encoded messages.
    pub(super) fn send(&mut self, messages: &[u8]) -> Result<(), MeasureError> {
        self.stream.write_all(messages).map_err(MeasureError::Controller)
    }

    /// Waits until the switch has performed all messages.
    pub(super) fn barrier(&mut self) -> Result<(), MeasureError> {
        self.send(&encoded(&Message::BarrierRequest))?;
        self.performed()
    }

    /// Waits for the answer to a barrier that was sent.
    pub(super) fn performed(&mut self) -> Result<(), MeasureError> {
        self.until(|message| matches!(message, Message::BarrierReply).then_some(()))
    }

    /// Reads messages until one is the wanted one. Errors end it.
    fn until<T>(&mut self, wanted: impl Fn(&Message) -> Option<T>) -> Result<T, MeasureError> {
        loop {
            let message = self.next()?;
            if let Some(found) = wanted(&message) {
                return Ok(found);
            }
            match message {
                Message::Error { code, .. } => return Err(MeasureError::Refused(code)),
                Message::EchoRequest(data) => self.send(&encoded(&Message::EchoReply(data)))?,
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Result<Message, MeasureError> {
        loop {
            let unread = self.unread.get(self.begin..).unwrap_or_default();
            if let Some(header) = Header::decode(unread)
                && let Some(message) = unread.get(HEADER..header.length.into())
            {
                self.begin += usize::from(header.length);
                return Message::decode(header.message_type, message).map_err(MeasureError::Refused);
            }
            self.unread.drain(..self.begin);
            self.begin = 0;
            let mut buffer = [0; 1 << 12];
            match self.stream.read(&mut buffer).map_err(MeasureError::Controller)? {
                0 => return Err(MeasureError::Late { what: "an answer of the switch" }),
                count => self.unread.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            }
        }
    }
}

/// The bytes of a message, all of which are short here.
pub(super) fn encoded(message: &Message) -> Vec<u8> {
    message.encode(1).unwrap_or_default()
}
