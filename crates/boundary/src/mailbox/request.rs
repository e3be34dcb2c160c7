//! Requests of the host to a box.

use super::channel::MessageKind;
use super::flow_state::FlowPosition;
use super::message::Message;
use crate::codec::{DecodeError, Decoder, Encoder};

/// A request. Texts and bytes are borrowed from the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Installs a configuration under a name. If one of that name is running, this is a hot swap: the new one takes
    /// over its state, and the old one keeps running if the new one is rejected. The empty name is the box's main
    /// configuration. The reply holds the warnings: see [`Diagnostic`](crate::Diagnostic).
    Install {
        /// The configuration's name in this box.
        name: &'a str,
        /// Its text in Click's language.
        configuration: &'a str,
    },
    /// States what configurations that are installed from now on may send packets to. The number of a destination in an
    /// [`Answer`](crate::Answer) is its place in this list.
    Destinations {
        /// The names, each on a line of its own: that of a service, or `port:` and that of a port.
        names: &'a str,
    },
    /// Gives variables a value, for configurations that are installed, checked or rewritten from now on. It overrides the
    /// texts' own definitions.
    Parameters {
        /// Each on a line of its own: the name without `$`, `=`, and the value.
        values: &'a str,
    },
    /// Removes a configuration.
    Remove {
        /// Its name.
        name: &'a str,
    },
    /// Calls a read handler; the reply holds its value.
    Read {
        /// Name of the configuration.
        name: &'a str,
        /// `element.handler`.
        handler: &'a str,
        /// The handler's argument; usually empty.
        argument: &'a [u8],
    },
    /// Calls a write handler. The reply holds [`Written`](crate::Written).
    Write {
        /// Name of the configuration.
        name: &'a str,
        /// `element.handler`.
        handler: &'a str,
        /// The value to write.
        value: &'a [u8],
    },
    /// Keeps a write for the next installation of the configuration, which executes all kept ones in order before the first
    /// packet moves.
    Prepare {
        /// Name of the configuration.
        name: &'a str,
        /// `element.handler`.
        handler: &'a str,
        /// The value to write.
        value: &'a [u8],
    },
    /// Requests the prepared writes that the last installation executed without success. The reply holds
    /// [`RefusedWrite`](crate::RefusedWrite)s. The box then forgets them, and those that were not executed.
    Prepared,
    /// Gives an element of a configuration other arguments, without running it. The reply holds the new text.
    Rewrite {
        /// The text.
        configuration: &'a str,
        /// The name of the element.
        element: &'a str,
        /// Its arguments.
        arguments: &'a str,
    },
    /// Requests the counters: the reply holds [`Stats`](crate::Stats).
    Stats,
    /// Stores a file that configurations can read by its name.
    File {
        /// The file's name in configurations.
        name: &'a str,
        /// The contents.
        contents: &'a [u8],
    },
    /// Checks a configuration without running it. The reply holds its diagnostics, if any: see
    /// [`Diagnostic`](crate::Diagnostic).
    Check {
        /// Its text.
        configuration: &'a str,
    },
    /// Lists flows of the main configuration whose state can be handed over. The reply holds a [`FlowList`](crate::FlowList).
    ListFlows {
        /// Where to go on.
        position: FlowPosition,
        /// The number of groups of flows.
        most: u32,
        /// Only flows with an end at this address, from the first of these ports to the last one.
        range: Option<(u32, u16, u16)>,
    },
    /// Hands over the state of flows of the main configuration, and removes it. The reply holds a
    /// [`FlowExport`](crate::FlowExport).
    ExportFlows {
        /// Nanoseconds since no packet of these flows was given to the box. Packets that wait in it for longer are waited for.
        age: u64,
        /// The [groups](crate::encode_groups) of flows.
        groups: &'a [u8],
    },
    /// Takes over the state of flows. The reply holds [`RefusedState`](crate::RefusedState)s.
    ImportFlows {
        /// The [states](crate::encode_states).
        states: &'a [u8],
    },
    /// Makes the box one of several that run one configuration together, each with a part of the flows. It precedes the first
    /// configuration.
    Shard {
        /// Its number, from 0.
        index: u32,
        /// How many there are.
        count: u32,
    },
    /// Requests the ranges that the translators of all configurations divide among the shards. The reply holds
    /// [`SpreadRange`](crate::SpreadRange)s. From then on they can't change.
    Ranges,
    /// Prepares a configuration as [`Install`](Self::Install) does, but leaves the old one running until
    /// [`Commit`](Self::Commit). The reply holds the warnings. Only one is prepared at a time.
    Stage {
        /// The configuration's name in this box.
        name: &'a str,
        /// Its text in Click's language.
        configuration: &'a str,
    },
    /// Lets the prepared configuration take over.
    Commit,
    /// Drops the prepared configuration, if there is one.
    Abort,
    /// Makes one answer of those that all shards gave to a read handler.
    Merge {
        /// Name of the configuration.
        name: &'a str,
        /// `element.handler`.
        handler: &'a str,
        /// The [answers](crate::encode_answers), in the order of the shards.
        answers: &'a [u8],
    },
}

impl<'a> Request<'a> {
    /// The message with this request and this number.
    pub fn encode(&self, number: u32) -> Message {
        let mut fields = Encoder::default();
        let kind = match *self {
            Self::Install { name, configuration } => {
                fields.bytes(name.as_bytes()).bytes(configuration.as_bytes());
                MessageKind::Install
            }
            Self::Destinations { names } => {
                fields.bytes(names.as_bytes());
                MessageKind::Destinations
            }
            Self::Parameters { values } => {
                fields.bytes(values.as_bytes());
                MessageKind::Parameters
            }
            Self::Remove { name } => {
                fields.bytes(name.as_bytes());
                MessageKind::Remove
            }
            Self::Read { name, handler, argument } => {
                fields.bytes(name.as_bytes()).bytes(handler.as_bytes()).bytes(argument);
                MessageKind::Read
            }
            Self::Write { name, handler, value } => {
                fields.bytes(name.as_bytes()).bytes(handler.as_bytes()).bytes(value);
                MessageKind::Write
            }
            Self::Prepare { name, handler, value } => {
                fields.bytes(name.as_bytes()).bytes(handler.as_bytes()).bytes(value);
                MessageKind::Prepare
            }
            Self::Prepared => MessageKind::Prepared,
            Self::Rewrite { configuration, element, arguments } => {
                fields.bytes(configuration.as_bytes()).bytes(element.as_bytes()).bytes(arguments.as_bytes());
                MessageKind::Rewrite
            }
            Self::Stats => MessageKind::Stats,
            Self::File { name, contents } => {
                fields.bytes(name.as_bytes()).bytes(contents);
                MessageKind::File
            }
            Self::Check { configuration } => {
                fields.bytes(configuration.as_bytes());
                MessageKind::Check
            }
            Self::ListFlows { position, most, range } => {
                position.encode(&mut fields);
                let (address, first, last) = range.unwrap_or_default();
                let ports = u32::from(first) << 16 | u32::from(last);
                fields.u32(most).u32(range.is_some().into()).u32(address).u32(ports);
                MessageKind::ListFlows
            }
            Self::ExportFlows { age, groups } => {
                fields.u64(age).bytes(groups);
                MessageKind::ExportFlows
            }
            Self::ImportFlows { states } => {
                fields.bytes(states);
                MessageKind::ImportFlows
            }
            Self::Shard { index, count } => {
                fields.u32(index).u32(count);
                MessageKind::Shard
            }
            Self::Ranges => MessageKind::Ranges,
            Self::Stage { name, configuration } => {
                fields.bytes(name.as_bytes()).bytes(configuration.as_bytes());
                MessageKind::Stage
            }
            Self::Commit => MessageKind::Commit,
            Self::Abort => MessageKind::Abort,
            Self::Merge { name, handler, answers } => {
                fields.bytes(name.as_bytes()).bytes(handler.as_bytes()).bytes(answers);
                MessageKind::Merge
            }
        };
        Message { kind, number, payload: fields.0 }
    }

    /// Decodes the request in a message.
    pub fn decode(message: &'a Message) -> Result<Self, DecodeError> {
        let mut fields = Decoder(&message.payload);
        let request = match message.kind {
            MessageKind::Install => Self::Install { name: fields.text()?, configuration: fields.text()? },
            MessageKind::Destinations => Self::Destinations { names: fields.text()? },
            MessageKind::Parameters => Self::Parameters { values: fields.text()? },
            MessageKind::Remove => Self::Remove { name: fields.text()? },
            MessageKind::Read => {
                Self::Read { name: fields.text()?, handler: fields.text()?, argument: fields.bytes()? }
            }
            MessageKind::Write => {
                Self::Write { name: fields.text()?, handler: fields.text()?, value: fields.bytes()? }
            }
            MessageKind::Prepare => {
                Self::Prepare { name: fields.text()?, handler: fields.text()?, value: fields.bytes()? }
            }
            MessageKind::Prepared => Self::Prepared,
            MessageKind::Rewrite => Self::Rewrite {
                configuration: fields.text()?,
                element: fields.text()?,
                arguments: fields.text()?,
            },
            MessageKind::Stats => Self::Stats,
            MessageKind::File => Self::File { name: fields.text()?, contents: fields.bytes()? },
            MessageKind::Check => Self::Check { configuration: fields.text()? },
            MessageKind::ListFlows => {
                let (position, most) = (FlowPosition::decode(&mut fields)?, fields.u32()?);
                let (is_bounded, address, ports) = (fields.u32()? != 0, fields.u32()?, fields.u32()?);
                let range = is_bounded.then_some((address, (ports >> 16) as u16, ports as u16));
                Self::ListFlows { position, most, range }
            }
            MessageKind::ExportFlows => Self::ExportFlows { age: fields.u64()?, groups: fields.bytes()? },
            MessageKind::ImportFlows => Self::ImportFlows { states: fields.bytes()? },
            MessageKind::Shard => Self::Shard { index: fields.u32()?, count: fields.u32()? },
            MessageKind::Ranges => Self::Ranges,
            MessageKind::Stage => Self::Stage { name: fields.text()?, configuration: fields.text()? },
            MessageKind::Commit => Self::Commit,
            MessageKind::Abort => Self::Abort,
            MessageKind::Merge => {
                Self::Merge { name: fields.text()?, handler: fields.text()?, answers: fields.bytes()? }
            }
            other => return Err(DecodeError::Value(other as u64)),
        };
        fields.end()?;
        Ok(request)
    }
}
