//! Why a fabric did not do as ordered.

use ::model::{BoxName, Diagnostic, ImageDigest, MacAddr, PipeName, PortName, Subject, SwitchName};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Why a box could not be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CreateFailure {
    /// Its definition is impossible.
    Settings,
    /// It needs a virtual machine, and this host has none.
    NoKvm,
    /// The host lacks memory, processes or descriptors.
    Exhausted,
    /// Anything else.
    Internal,
}

/// Why a fabric did not do as ordered. The order had no effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FabricError {
    /// There is no such box.
    NoBox(BoxName),
    /// There is no such switch.
    NoSwitch(SwitchName),
    /// The switch has no such port.
    NoPort(SwitchName, PortName),
    /// The box has no such port.
    NoBoxPort(BoxName, u8),
    /// The address is not in the switch's table.
    NoAddress(SwitchName, MacAddr),
    /// The box has written no such file.
    NoFile(BoxName, String),
    /// The box has no such handler; the text is the box's, escaped.
    NoHandler(BoxName, String),
    /// The name is taken.
    Exists(Subject),
    /// The box's state does not allow it.
    State {
        /// The box.
        name: BoxName,
        /// Its state, as a predicate.
        state: String,
        /// What to do.
        hint: String,
    },
    /// The box rejected the configuration.
    Rejected(Vec<Diagnostic>),
    /// The box refused a handler's value; the text is the box's, escaped.
    HandlerRefused(String),
    /// The pipe has two ends already.
    PipeInUse(PipeName),
    /// The box's image is not loaded.
    NoImage(ImageDigest),
    /// The image can't be used.
    Image(String),
    /// The box's port is attached already.
    Attached(BoxName, u8),
    /// The address table refuses an entry.
    Table(String),
    /// The switch learns its addresses.
    Learning(SwitchName),
    /// The switch has no such flow.
    NoFlow(SwitchName, u64),
    /// The switch has no flows: it is no steering one.
    NotSteering(SwitchName),
    /// The switch refuses the flow.
    Flow(String),
    /// The port's driver needs a device, and none came with the order.
    NoDevice,
    /// The box's name is too long for a port of a switch.
    LongBoxName(BoxName),
    /// A box with several cores can't do this: what.
    Cores(BoxName, String),
    /// The port's device or file can't be used.
    Device(String),
    /// A limit is reached.
    Limit(String, u64),
    /// No processor is left for a dedicated box.
    NoProcessor {
        /// The number of processors.
        all: u32,
    },
    /// The box can't be created.
    Create(CreateFailure, String),
    /// The box did not answer in time.
    Timeout(BoxName, Duration),
    /// The box ended during the operation.
    Gone(BoxName),
    /// The box violated the protocol of its mailbox and was ended.
    Broken(BoxName, String),
    /// A system call failed.
    System(String),
    /// The fabric is ending.
    Ending,
    /// The fabric is not there: it has ended, or the connection to it failed.
    Disconnected,
    /// The fabric's message is not understood.
    Protocol(String),
    /// The fabric has an earlier version, and does not know this order or a part of it.
    Unsupported,
}

impl fmt::Display for FabricError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBox(name) => write!(f, "there is no box {name}"),
            Self::NoSwitch(name) => write!(f, "there is no switch {name}"),
            Self::NoPort(switch, port) => write!(f, "switch {switch} has no port {port}"),
            Self::NoBoxPort(name, port) => write!(f, "box {name} has no port {port}"),
            Self::NoAddress(switch, mac) => write!(f, "{mac} is not in the table of switch {switch}"),
            Self::NoFile(name, file) => write!(f, "box {name} has written no file {file}"),
            Self::NoHandler(_, message) | Self::HandlerRefused(message) => f.write_str(message),
            Self::Exists(object) => write!(f, "a {} named {} already exists", object.kind(), object.name()),
            Self::State { name, state, hint } => write!(f, "box {name} {state}; {hint}"),
            Self::Rejected(details) => {
                f.write_str("the configuration was rejected")?;
                if let Some(first) = details.first() {
                    let lines: Vec<&str> = first.message.lines().map(str::trim).collect();
                    write!(f, ": {}", lines.join(" "))?;
                }
                match details.len() {
                    0 | 1 => Ok(()),
                    count => write!(f, " (and {} more)", count - 1),
                }
            }
            Self::PipeInUse(name) => {
                write!(f, "pipe {name} already has two ends: use another name for a pipe between other boxes")
            }
            Self::NoImage(image) => write!(f, "the fabric does not have the image {image}"),
            Self::Image(message) => write!(f, "the image can't be used: {message}"),
            Self::Attached(name, port) => {
                write!(f, "port {port} of box {name} is already attached: detach it first")
            }
            Self::Table(message) | Self::System(message) | Self::Device(message) | Self::Flow(message) => {
                f.write_str(message)
            }
            Self::NoFlow(switch, id) => write!(f, "switch {switch} has no flow {id}"),
            Self::NotSteering(switch) => {
                write!(f, "switch {switch} has no flows: only a switch of the mode `steering` has")
            }
            Self::Learning(switch) => {
                write!(f, "switch {switch} learns its addresses: only a static switch accepts addresses")
            }
            Self::NoDevice => f.write_str("the port has no device"),
            Self::LongBoxName(name) => {
                write!(f, "the name {name} is too long for a box at a switch: shorten it by 3 characters")
            }
            Self::Cores(name, what) => write!(f, "box {name} has several cores: {what}"),
            Self::Limit(what, limit) => write!(f, "the limit of {limit} {what} is reached"),
            Self::NoProcessor { all } => write!(
                f,
                "no processor is left for a dedicated box: boxes may have {} of the {all} processors to themselves",
                all.saturating_sub(1)
            ),
            Self::Create(_, message) => write!(f, "the box can't be created: {message}"),
            Self::Timeout(name, time) => write!(
                f,
                "box {name} did not answer within {} ms; it may be busy, or in an endless loop",
                time.as_millis()
            ),
            Self::Gone(name) => write!(f, "box {name} ended during the operation"),
            Self::Broken(name, message) => {
                write!(f, "box {name} violated the protocol and was ended: {message}")
            }
            Self::Ending => f.write_str("the daemon is shutting down"),
            Self::Disconnected => f.write_str("the fabric has ended; it is being restarted"),
            Self::Unsupported => f.write_str(
                "the fabric has an earlier version, which can't do this: restart the fabric, which interrupts its boxes",
            ),
            Self::Protocol(message) => write!(f, "the fabric's message is not understood: {message}"),
        }
    }
}

impl std::error::Error for FabricError {}
