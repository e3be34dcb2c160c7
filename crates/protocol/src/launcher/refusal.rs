//! Why a launcher does not carry out a request.

use crate::hello::HelloError;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt;
use std::io;

/// Why a launcher does not carry out a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// Daemon and launcher cannot work together.
    Hello(HelloError),
    /// The message is no request.
    NotARequest,
    /// The path of a capture is relative.
    RelativePath,
    /// The capture is a pipe, a device or a folder.
    NotAFile,
    /// The descriptor is not that of the device.
    OtherDevice,
    /// No fabric has this number.
    NoFabric(u32),
    /// The launcher already has the most fabrics or devices.
    TooMany,
    /// The launcher is about to end.
    Ending,
    /// A step failed.
    Failed(Shortfall),
}

/// A step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortfall {
    /// The step.
    pub step: Step,
    /// The number of the system's error.
    pub errno: i32,
}

/// What a launcher does, in words that complete "can't".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Open a TAP device.
    OpenTap,
    /// Open a packet socket.
    OpenInterface,
    /// Fit frames of the interface's MTU into buffers for XDP.
    FitXdpBuffers,
    /// Use the receive queues of an interface.
    UseQueues,
    /// Make the memory for XDP sockets, and the sockets.
    OpenXdpSocket,
    /// Attach the XDP program.
    AttachXdpProgram,
    /// Open a capture.
    OpenReplay,
    /// Create a capture.
    CreateRecording,
    /// Listen at a Unix socket.
    ListenSocket,
    /// Connect to a Unix socket.
    ConnectSocket,
    /// Make a channel.
    MakeChannel,
    /// Start the program of a fabric.
    StartFabric,
    /// Start the program of an agent.
    StartAgent,
    /// Hand a descriptor to a fabric.
    TellFabric,
    /// End a fabric.
    EndFabric,
    /// Open `/dev/kvm`.
    OpenKvm,
    /// Give up the capabilities that a fabric could otherwise get back.
    DropCapabilities,
    /// Let fabrics lower their niceness.
    RaiseNiceLimit,
    /// Let fabrics open more descriptors.
    RaiseFileLimit,
    /// Protect fabrics from being ended first when memory is short.
    LowerOomScore,
    /// Make the socket at which the next launcher reaches a fabric.
    MakeSuccessorSocket,
    /// Put a fabric in a control group of its own.
    MakeCgroup,
    /// Keep a fabric on its own processors.
    SetProcessors,
    /// Hand that control group to the fabric's user.
    DelegateCgroup,
    /// Open the folder for the files that boxes write.
    OpenFolder,
    /// Run fabrics as a user other than root.
    ChangeUser,
    /// Find the address of this host for a tunnel.
    FindRoute,
    /// Reserve the UDP port of a tunnel.
    ReservePort,
    /// Open the socket of a tunnel.
    OpenTunnel,
}

impl Shortfall {
    /// The system's error.
    pub fn error(&self) -> io::Error {
        io::Error::from_raw_os_error(self.errno)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hello(HelloError::Store) => f.write_str(
                "the launcher serves another store: use another socket, or stop its fabrics first",
            ),
            Self::Hello(error) => error.fmt(f),
            Self::NotARequest => f.write_str("the launcher does not understand the message"),
            Self::RelativePath => f.write_str("the path is not absolute"),
            Self::NotAFile => f.write_str("it is not an ordinary file"),
            Self::OtherDevice => f.write_str("the descriptor is not that of the device"),
            Self::NoFabric(number) => write!(f, "no fabric has the number {number}"),
            Self::TooMany => f.write_str("the launcher can't hold any more"),
            Self::Ending => f.write_str("the launcher is about to end"),
            Self::Failed(shortfall) => shortfall.fmt(f),
        }
    }
}

impl Error for Refusal {}

/// The error number for a device whose frames are too long (EMSGSIZE).
const TOO_LONG: i32 = 90;
/// The error numbers for a device that is not there (ENODEV), and for one that is not of the expected kind (EINVAL).
const NO_DEVICE: i32 = 19;
const NO_TAP: i32 = 22;
/// The error number for a tap device that a program uses, and for a device that has an XDP program (EBUSY).
const BUSY: i32 = 16;
/// The error number for a veth that receives through fewer queues than its other end sends through (ENOSPC).
const FEW_QUEUES: i32 = 28;
/// The error number for an address that no interface has (EADDRNOTAVAIL).
const NO_ADDRESS: i32 = 99;
/// The error numbers for a server that does not answer yet (EAGAIN), and for one that says something else (EPROTO).
const NOT_YET: i32 = 11;
const OTHER_PROTOCOL: i32 = 71;

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.step, self.errno) {
            (Step::OpenTap | Step::OpenInterface, TOO_LONG) => f.write_str(
                "can't use an interface with this MTU, which must be at most 2,034, as frames in switches have up to 2,048 bytes: \
                 ip link set DEVICE mtu 1500",
            ),
            (Step::OpenTap, NO_TAP) => f.write_str("there is a device of this name that is no tap device"),
            (Step::OpenTap, BUSY) => f.write_str("another program uses it"),
            (Step::ReservePort, NO_ADDRESS) => f.write_str("this host does not have the local address"),
            (Step::OpenInterface, NO_DEVICE) => {
                f.write_str("there is none of this name in the network namespace of the launcher")
            }
            (Step::AttachXdpProgram, BUSY) => {
                write!(f, "can't {}, because the interface has another one: ip link set DEVICE xdp off", self.step)
            }
            (Step::AttachXdpProgram, FEW_QUEUES) => write!(
                f,
                "can't {}, because the other end of the veth sends through more queues than the interface receives through: \
                 ethtool -L DEVICE rx N",
                self.step
            ),
            (Step::ConnectSocket, NOT_YET) => {
                write!(f, "can't {}: its server does not accept the connection, or does not answer", self.step)
            }
            (Step::ConnectSocket, OTHER_PROTOCOL) => {
                write!(f, "can't {}: its server speaks another protocol", self.step)
            }
            // The step says all.
            (Step::FitXdpBuffers | Step::UseQueues, _) => write!(f, "can't {}", self.step),
            _ => write!(f, "can't {}: {}", self.step, self.error()),
        }
    }
}

impl Error for Shortfall {}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenTap => "open the tap device",
            Self::OpenInterface => "open the network interface",
            Self::FitXdpBuffers => "use XDP with this MTU, which must be at most 1,774",
            Self::UseQueues => "use so many receive queues: at most 16, and no more than the interface has",
            Self::OpenXdpSocket => "open an XDP socket",
            Self::AttachXdpProgram => "attach the XDP program",
            Self::FindRoute => "find a route to the remote address",
            Self::ReservePort => {
                "reserve the UDP port of the tunnel, which another program or a kernel device may use"
            }
            Self::OpenTunnel => "open the socket of the tunnel",
            Self::OpenReplay => "open the capture",
            Self::CreateRecording => "create the capture",
            Self::ListenSocket => "listen at the socket",
            Self::ConnectSocket => "connect to the socket",
            Self::MakeChannel => "make a channel",
            Self::StartFabric => "start a fabric",
            Self::StartAgent => "start an agent",
            Self::TellFabric => "reach the fabric",
            Self::EndFabric => "end the fabric",
            Self::OpenKvm => "open /dev/kvm",
            Self::DropCapabilities => "drop all capabilities",
            Self::RaiseNiceLimit => "raise the limit of priorities",
            Self::RaiseFileLimit => "raise the limit of open files",
            Self::LowerOomScore => "lower the score for the end of processes without memory",
            Self::MakeSuccessorSocket => "make the socket for the next launcher",
            Self::MakeCgroup => "make a control group",
            Self::SetProcessors => "keep a fabric on its processors",
            Self::DelegateCgroup => "delegate the control group",
            Self::OpenFolder => "open the folder for the files of boxes",
            Self::ChangeUser => "run fabrics as a user other than root",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortfall_says_what_to_do() {
        for (step, errno, expected) in [
            (Step::OpenTap, NO_TAP, "there is a device of this name that is no tap device"),
            (Step::OpenTap, BUSY, "another program uses it"),
            (Step::ReservePort, NO_ADDRESS, "this host does not have the local address"),
            (Step::OpenInterface, TOO_LONG, "ip link set DEVICE mtu 1500"),
            (
                Step::OpenInterface,
                NO_DEVICE,
                "there is none of this name in the network namespace of the launcher",
            ),
            (
                Step::AttachXdpProgram,
                BUSY,
                "can't attach the XDP program, because the interface has another one: ip link set DEVICE xdp off",
            ),
            (Step::AttachXdpProgram, FEW_QUEUES, "ethtool -L DEVICE rx N"),
            (Step::AttachXdpProgram, 95, "can't attach the XDP program: Operation not supported"),
            (Step::ConnectSocket, NOT_YET, "its server does not accept the connection, or does not answer"),
            (Step::FitXdpBuffers, TOO_LONG, "can't use XDP with this MTU, which must be at most 1,774"),
        ] {
            let text = Refusal::Failed(Shortfall { step, errno }).to_string();
            assert!(text.contains(expected), "{text}");
        }
    }
}
