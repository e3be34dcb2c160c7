//! What boxes are told to do while they are measured.

/// What a box does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// Takes packets.
    Drop,
    /// Sends packets of so many bytes as fast as it can.
    Send(u16),
    /// Sends packets back with their Ethernet addresses exchanged.
    Mirror,
    /// Sends packets back, and never rests.
    Poll,
    /// Sends packets on, from port 0 to 1 and back.
    Forward,
    /// Uses its core without end.
    Loop,
}

impl Program {
    /// The image that it is a configuration for.
    pub(crate) const IMAGE: &'static [u8] = image::PROBE;

    /// The text that is installed.
    pub(crate) fn configuration(self) -> String {
        match self {
            Self::Drop => "drop".into(),
            Self::Send(bytes) => format!("send {bytes}"),
            Self::Mirror => "mirror".into(),
            Self::Poll => "busy".into(),
            Self::Forward => "forward".into(),
            Self::Loop => "loop".into(),
        }
    }

    /// Ports that it uses.
    pub(crate) fn ports(self) -> usize {
        match self {
            Self::Forward => 2,
            Self::Loop => 0,
            _ => 1,
        }
    }
}
