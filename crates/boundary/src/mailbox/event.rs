//! Events: log lines and file output that a box sends without a request.

use super::channel::MessageKind;
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
}

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
            other => return Err(DecodeError::Value(other as u64)),
        };
        fields.end()?;
        Ok(event)
    }
}
