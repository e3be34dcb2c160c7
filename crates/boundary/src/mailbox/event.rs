//! Events: log lines, file output and own writes that a box sends without a request.

use super::channel::MessageKind;
use super::handler_write::Written;
use super::message::Message;
use crate::codec::{DecodeError, Decoder, Encoder};

/// An event. The box wrote it: texts must be escaped before display, and a name must never be used as a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A line for the box's log, without its line break.
    Console {
        /// The name of the configuration that logged it.
        name: &'a [u8],
        /// The line.
        line: &'a [u8],
    },
    /// The next bytes of a file that an element writes (`ToDump` and similar).
    Output {
        /// The file's name in the configuration.
        file: &'a [u8],
        /// The position of the bytes in the file: 0 truncates the file, and a gap is the number of bytes lost.
        position: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// Elements wrote a handler on their own, which changed the configuration. A later event for the handler replaces this one.
    OwnWrites {
        /// The name of the configuration.
        name: &'a [u8],
        /// The handler's path.
        handler: &'a [u8],
        /// The start of the last value.
        value: &'a [u8],
        /// What it changed.
        written: Written,
        /// How many times it was written.
        count: u64,
    },
    /// Elements also wrote handlers for which there are no events because they are too many.
    MoreOwnWrites {
        /// The name of the configuration.
        name: &'a [u8],
        /// The number of these writes.
        count: u64,
    },
    /// Another configuration replaced the one of which writes were reported.
    OwnWritesGone {
        /// The name of the configuration.
        name: &'a [u8],
    },
}

/// What an [`OwnWrites`](MessageKind::OwnWrites) message says.
const ROW: u32 = 0;
const MORE: u32 = 1;
const GONE: u32 = 2;

impl<'a> Event<'a> {
    /// The message with this event and this number.
    pub fn encode(&self, number: u32) -> Message {
        let mut fields = Encoder::default();
        let kind = match *self {
            Self::Console { name, line } => {
                fields.bytes(name).bytes(line);
                MessageKind::Console
            }
            Self::Output { file, position, bytes } => {
                fields.bytes(file).u64(position).bytes(bytes);
                MessageKind::Output
            }
            Self::OwnWrites { name, handler, value, written, count } => {
                fields.u32(ROW).bytes(name).bytes(handler).bytes(value).bytes(&written.encode()).u64(count);
                MessageKind::OwnWrites
            }
            Self::MoreOwnWrites { name, count } => {
                fields.u32(MORE).bytes(name).u64(count);
                MessageKind::OwnWrites
            }
            Self::OwnWritesGone { name } => {
                fields.u32(GONE).bytes(name);
                MessageKind::OwnWrites
            }
        };
        Message { kind, number, payload: fields.0 }
    }

    /// Decodes the event in a message.
    pub fn decode(message: &'a Message) -> Result<Self, DecodeError> {
        let mut fields = Decoder(&message.payload);
        let event = match message.kind {
            MessageKind::Console => Self::Console { name: fields.bytes()?, line: fields.bytes()? },
            MessageKind::Output => {
                Self::Output { file: fields.bytes()?, position: fields.u64()?, bytes: fields.bytes()? }
            }
            MessageKind::OwnWrites => match fields.u32()? {
                ROW => Self::OwnWrites {
                    name: fields.bytes()?,
                    handler: fields.bytes()?,
                    value: fields.bytes()?,
                    written: Written::decode(fields.bytes()?)?,
                    count: fields.u64()?,
                },
                MORE => Self::MoreOwnWrites { name: fields.bytes()?, count: fields.u64()? },
                GONE => Self::OwnWritesGone { name: fields.bytes()? },
                other => return Err(DecodeError::Value(other.into())),
            },
            other => return Err(DecodeError::Value(other as u64)),
        };
        fields.end()?;
        Ok(event)
    }
}
