//! The state of one session.

use std::time::Duration;

use crate::message::{
    AsyncConfig, Config, Header, Hello, Message, MultipartReply, MultipartRequest, PortStatus, Role, TooLong,
    encode_multipart,
};
use crate::{ErrorCode, MAX_MESSAGE, VERSION, version1};

use super::datapath::Datapath;
use super::limits::{AgentLimits, SessionState};
use super::port_config;

/// Bytes of a refused message that an error message repeats (OpenFlow 1.3.5, 7.4.4: at least 64).
const ERROR_DATA: usize = 64;

/// The number of messages that the switch sends unasked.
pub(crate) const UNASKED: u32 = 0;

/// The versions that are spoken, as bits.
pub(crate) const VERSIONS: u32 = 1 << VERSION | 1 << version1::VERSION;

/// The beginning of a message of the controller, for errors.
pub(crate) fn excerpt(message: &[u8]) -> Vec<u8> {
    message.get(..ERROR_DATA).unwrap_or(message).to_vec()
}

/// A multipart request whose answer is not complete.
pub(crate) struct OpenReport {
    xid: u32,
    request: MultipartRequest,
    from: u64,
    /// The beginning of the request.
    excerpt: Vec<u8>,
}

pub(crate) struct Connection {
    pub(crate) state: SessionState,
    /// The version that both sides speak, as soon as they have greeted.
    pub(crate) version: u8,
    input: Vec<u8>,
    /// Bytes of `input` whose messages were performed.
    performed: usize,
    output: Vec<u8>,
    /// Bytes of `output` that were sent.
    sent: usize,
    pub(crate) role: Role,
    pub(crate) reports: AsyncConfig,
    pub(crate) config: Config,
    report: Option<OpenReport>,
    /// When the session began, or the controller last gave a sign of life.
    pub(crate) heard: Duration,
    /// When an echo request was sent that has no answer.
    pub(crate) asked: Option<Duration>,
}

impl Connection {
    pub(crate) fn new(now: Duration) -> Self {
        let mut connection = Self {
            state: SessionState::Greeting,
            version: VERSION,
            input: Vec::new(),
            performed: 0,
            output: Vec::new(),
            sent: 0,
            role: Role::Equal,
            reports: AsyncConfig::default(),
            config: Config { flags: 0, miss_send_length: 128 },
            report: None,
            heard: now,
            asked: None,
        };
        connection.send(UNASKED, &Message::Hello(Hello { versions: Some(VERSIONS) }));
        connection
    }

    /// Whether the controller speaks OpenFlow 1.0.
    pub(crate) fn is_version1(&self) -> bool {
        self.version == version1::VERSION
    }

    /// A message in the version of the session; `None` if that has no such message.
    pub(crate) fn encode(&self, xid: u32, message: &Message) -> Result<Option<Vec<u8>>, TooLong> {
        match message {
            _ if self.is_version1() => version1::encode(message, xid),
            Message::PortStatus(status) => {
                let port = port_config::to_version3(status.port.clone());
                Message::PortStatus(PortStatus { port, ..*status }).encode(xid).map(Some)
            }
            _ => message.encode(xid).map(Some),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state == SessionState::Open
    }

    /// Closes the session. What is to be sent stays.
    pub(crate) fn close(&mut self) {
        self.state = SessionState::Closed;
        self.input = Vec::new();
        self.report = None;
    }

    /// What is to be sent.
    pub(crate) fn output(&self) -> &[u8] {
        self.output.get(self.sent..).unwrap_or_default()
    }

    /// Notes that bytes were sent.
    pub(crate) fn sent(&mut self, count: usize) {
        self.sent = (self.sent + count).min(self.output.len());
        if self.sent == self.output.len() {
            // The memory of a long answer is returned.
            if self.output.capacity() > MAX_MESSAGE {
                self.output = Vec::new();
            }
            self.output.clear();
            self.sent = 0;
        } else if self.sent > self.output.len() / 2 {
            self.output.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Whether the session performs no messages until some output is sent.
    pub(crate) fn is_clogged(&self, limits: &AgentLimits) -> bool {
        self.output().len() >= limits.output
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
    }

    pub(crate) fn send(&mut self, xid: u32, message: &Message) {
        // Only contents that a controller determines have a variable length, and their messages were no longer.
        match self.encode(xid, message) {
            Ok(bytes) => self.send_bytes(&bytes.unwrap_or_default()),
            Err(TooLong) => self.send_error(xid, ErrorCode::BRC_EPERM, &[]),
        }
    }

    pub(crate) fn send_error(&mut self, xid: u32, code: ErrorCode, data: &[u8]) {
        if let Ok(Some(bytes)) = self.encode(xid, &Message::Error { code, data: excerpt(data) }) {
            self.send_bytes(&bytes);
        }
    }

    /// Takes bytes from the controller, as many as fit.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> usize {
        self.input.drain(..self.performed.min(self.input.len()));
        self.performed = 0;
        let room = MAX_MESSAGE.saturating_sub(self.input.len());
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.input.extend_from_slice(taken);
        taken.len()
    }

    /// The first complete message, with its header. A header that states less than its own length ends the session.
    pub(crate) fn next_message(&mut self) -> Option<(Header, Vec<u8>)> {
        if self.state == SessionState::Closed {
            return None;
        }
        let input = self.input.get(self.performed..)?;
        let header = Header::decode(input)?;
        let length = usize::from(header.length);
        if length < crate::message::HEADER {
            let message = excerpt(input);
            self.send_error(header.xid, ErrorCode::BRC_BAD_LEN, &message);
            self.close();
            return None;
        }
        let message = input.get(..length)?.to_vec();
        self.performed += length;
        Some((header, message))
    }

    /// Begins the answer to a multipart request.
    pub(crate) fn begin_report(&mut self, xid: u32, request: MultipartRequest, message: &[u8]) {
        self.report = Some(OpenReport { xid, request, from: 0, excerpt: excerpt(message) });
    }

    /// Whether an answer is not complete. Messages wait for it.
    pub(crate) fn has_report(&self) -> bool {
        self.report.is_some()
    }

    /// Continues an answer while there is room for it.
    pub(crate) fn continue_report(
        &mut self,
        datapath: &mut impl Datapath,
        limits: &AgentLimits,
        now: Duration,
    ) {
        while !self.is_clogged(limits)
            && let Some(mut open) = self.report.take()
        {
            match datapath.report(&open.request, open.from, now) {
                Ok(mut part) => {
                    let has_more = part.next.is_some();
                    let messages = if self.is_version1() {
                        let max_entries = max_entries(datapath, &part.reply, now);
                        version1::encode_statistics(open.xid, &part.reply, has_more, max_entries)
                    } else {
                        if let MultipartReply::PortDescription(ports) = &mut part.reply {
                            *ports =
                                std::mem::take(ports).into_iter().map(port_config::to_version3).collect();
                        }
                        encode_multipart(open.xid, &part.reply, has_more)
                    };
                    messages.iter().for_each(|message| self.send_bytes(message));
                    if let Some(next) = part.next {
                        open.from = next;
                        self.report = Some(open);
                    }
                }
                Err(code) => self.send_error(open.xid, code, &open.excerpt),
            }
        }
    }
}

/// Entries that fit a table, which OpenFlow 1.0 states with the counters of tables.
fn max_entries(datapath: &mut impl Datapath, reply: &MultipartReply, now: Duration) -> u32 {
    if !matches!(reply, MultipartReply::Table(_)) {
        return 0;
    }
    match datapath.report(&MultipartRequest::TableFeatures(Vec::new()), 0, now).map(|part| part.reply) {
        Ok(MultipartReply::TableFeatures(tables)) => tables.first().map_or(0, |table| table.max_entries),
        _ => 0,
    }
}
