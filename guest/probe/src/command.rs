//! The commands of the probe.

/// What is done with packets, or to the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// `drop`: packets are taken and nothing more.
    Drop,
    /// `mirror`: packets go back where they came from, with their Ethernet addresses exchanged.
    Mirror,
    /// `forward`: packets go from each port to its neighbour (0 to 1, 1 to 0, ...).
    Forward,
    /// `send BYTES`: port 0 sends frames of so many bytes as fast as it can.
    Send(u16),
    /// `busy`: mirrors, and is never idle.
    Busy,
    /// `alarm MICROSECONDS`: has itself woken again and again, and says so each time.
    Alarm(u64),
    /// `work MICROSECONDS`: computes for so long, then `drop`.
    Work(u64),
    /// `loop`: an endless loop.
    Loop,
    /// `ring`: rings for the host without end.
    Ring,
    /// `ring-mailbox`: rings for its mailbox without end.
    RingMailbox,
    /// `late MICROSECONDS`: replies to later requests after this time.
    Late(u64),
    /// `mute MICROSECONDS`: the same, and never rings for its mailbox.
    Mute(u64),
    /// `fault KIND`: a processor exception.
    Fault(Fault),
    /// `panic`.
    Panic,
    /// `memory`: takes memory until there is none.
    Memory,
    /// `scribble SEED`: random bytes over everything that is shared, for ever.
    Scribble(u64),
}

/// A way to fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Null,
    Stack,
    WriteText,
    ExecuteData,
    Invalid,
    Divide,
    Privileged,
    NonCanonical,
    SystemCall,
    OtherFutex,
    OtherPort,
}

impl Command {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let command = match (words.next()?, words.next()) {
            ("drop", None) => Self::Drop,
            ("mirror", None) => Self::Mirror,
            ("forward", None) => Self::Forward,
            ("send", Some(bytes)) => {
                Self::Send(bytes.parse().ok().filter(|bytes| (14..=2048).contains(bytes))?)
            }
            ("busy", None) => Self::Busy,
            ("alarm", Some(microseconds)) => Self::Alarm(microseconds.parse().ok()?),
            ("work", Some(microseconds)) => Self::Work(microseconds.parse().ok()?),
            ("loop", None) => Self::Loop,
            ("ring", None) => Self::Ring,
            ("ring-mailbox", None) => Self::RingMailbox,
            ("late", Some(microseconds)) => Self::Late(microseconds.parse().ok()?),
            ("mute", Some(microseconds)) => Self::Mute(microseconds.parse().ok()?),
            ("fault", Some(kind)) => Self::Fault(Fault::parse(kind)?),
            ("panic", None) => Self::Panic,
            ("memory", None) => Self::Memory,
            ("scribble", Some(seed)) => Self::Scribble(seed.parse().ok()?),
            _ => return None,
        };
        words.next().is_none().then_some(command)
    }
}

impl Fault {
    fn parse(kind: &str) -> Option<Self> {
        Some(match kind {
            "null" => Self::Null,
            "stack" => Self::Stack,
            "write-text" => Self::WriteText,
            "execute-data" => Self::ExecuteData,
            "invalid" => Self::Invalid,
            "divide" => Self::Divide,
            "privileged" => Self::Privileged,
            "non-canonical" => Self::NonCanonical,
            "system-call" => Self::SystemCall,
            "other-futex" => Self::OtherFutex,
            "other-port" => Self::OtherPort,
            _ => return None,
        })
    }
}
