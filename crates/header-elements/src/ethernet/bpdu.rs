//! Bridge protocol data units (IEEE 802.1D-1998, clause 9), the messages of the spanning tree protocol.

use packet::MacAddr;

use super::header;

/// The destination of all messages: the bridge group address.
const BRIDGES: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0, 0, 0]);
/// The logical link control header before a message.
const LINK_CONTROL: [u8; 3] = [0x42, 0x42, 3];
/// Where a message starts in a frame.
const START: usize = header::LENGTH + LINK_CONTROL.len();
/// Length of a configuration message.
const CONFIGURATION_LENGTH: usize = 35;
/// Length of a topology change notification.
const NOTIFICATION_LENGTH: usize = 4;
/// Length of a frame: the minimum of Ethernet.
pub(super) const FRAME_LENGTH: usize = 60;

/// The type of a topology change notification. That of a configuration message is 0.
const NOTIFICATION: u8 = 0x80;
const TOPOLOGY_CHANGE: u8 = 0x01;
const ACKNOWLEDGEMENT: u8 = 0x80;

/// What a bridge says of the root. Of two, the lesser is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Claim {
    /// The root's priority and address.
    pub(super) root: u64,
    /// The cost of the path to the root.
    pub(super) cost: u32,
    /// The priority and address of the bridge that says so.
    pub(super) bridge: u64,
    /// Its port, with the priority of the port.
    pub(super) port: u16,
}

/// The times that a root sets, in 1/256 of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) max_age: u16,
    pub(super) hello: u16,
    pub(super) forward_delay: u16,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Configuration {
        claim: Claim,
        /// How old the root's message is, in 1/256 of a second.
        age: u16,
        times: Times,
        /// Whether the topology changed lately.
        changed: bool,
        /// Whether a notification has arrived.
        acknowledges: bool,
    },
    /// The topology has changed.
    Notification,
}

/// Why a frame holds no message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    Short,
    /// It is a message of another protocol, or of a later version, which bridges of this one ignore.
    Other,
}

/// The bytes of an integer at `at`.
fn field<const LENGTH: usize>(bytes: &[u8], at: usize) -> Result<[u8; LENGTH], Malformed> {
    bytes.get(at..).and_then(<[u8]>::first_chunk).copied().ok_or(Malformed::Short)
}

impl Message {
    /// Reads the message in a frame.
    pub(super) fn parse(frame: &[u8]) -> Result<Message, Malformed> {
        let message = frame.get(START..).ok_or(Malformed::Short)?;
        if field(message, 0)? != [0, 0]
            || frame.get(header::LENGTH..START).is_none_or(|at| at != LINK_CONTROL)
        {
            return Err(Malformed::Other);
        }
        let [_, kind] = field(message, 2)?;
        if kind == NOTIFICATION {
            return Ok(Message::Notification);
        }
        if kind != 0 {
            return Err(Malformed::Other);
        }
        let [flags] = field(message, 4)?;
        let time = |at| field(message, at).map(u16::from_be_bytes);
        Ok(Message::Configuration {
            claim: Claim {
                root: u64::from_be_bytes(field(message, 5)?),
                cost: u32::from_be_bytes(field(message, 13)?),
                bridge: u64::from_be_bytes(field(message, 17)?),
                port: u16::from_be_bytes(field(message, 25)?),
            },
            age: time(27)?,
            times: Times { max_age: time(29)?, hello: time(31)?, forward_delay: time(33)? },
            changed: flags & TOPOLOGY_CHANGE != 0,
            acknowledges: flags & ACKNOWLEDGEMENT != 0,
        })
    }

    /// The frame that carries the message.
    pub(super) fn frame(&self, source: MacAddr) -> [u8; FRAME_LENGTH] {
        let mut frame = [0; FRAME_LENGTH];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            if let Some(place) = frame.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(bytes);
            }
            at += bytes.len();
        };
        put(&BRIDGES.0);
        put(&source.0);
        let length = match self {
            Message::Configuration { .. } => CONFIGURATION_LENGTH,
            Message::Notification => NOTIFICATION_LENGTH,
        };
        put(&((LINK_CONTROL.len() + length) as u16).to_be_bytes());
        put(&LINK_CONTROL);
        match self {
            Message::Notification => put(&[0, 0, 0, NOTIFICATION]),
            Message::Configuration { claim, age, times, changed, acknowledges } => {
                let flag = |set: bool, flag| if set { flag } else { 0 };
                put(&[0, 0, 0, 0, flag(*changed, TOPOLOGY_CHANGE) | flag(*acknowledges, ACKNOWLEDGEMENT)]);
                put(&claim.root.to_be_bytes());
                put(&claim.cost.to_be_bytes());
                put(&claim.bridge.to_be_bytes());
                for number in [claim.port, *age, times.max_age, times.hello, times.forward_delay] {
                    put(&number.to_be_bytes());
                }
            }
        }
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const MESSAGE: Message = Message::Configuration {
        claim: Claim { root: 0x8000_0200_0000_0001, cost: 4, bridge: 0xe000_0200_0000_0002, port: 0x8001 },
        age: 256,
        times: Times { max_age: 20 * 256, hello: 2 * 256, forward_delay: 15 * 256 },
        changed: true,
        acknowledges: false,
    };

    #[test]
    fn messages_have_the_bytes_of_the_standard() {
        let source = MacAddr([2, 0, 0, 0, 0, 2]);
        let mut bytes = vec![
            1, 0x80, 0xc2, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 38, 0x42, 0x42, 3, 0, 0, 0, 0, 1, 0x80, 0, 2, 0, 0,
            0, 0, 1, 0, 0, 0, 4, 0xe0, 0, 2, 0, 0, 0, 0, 2, 0x80, 1, 1, 0, 20, 0, 2, 0, 15, 0,
        ];
        bytes.resize(60, 0);
        assert_eq!(MESSAGE.frame(source)[..], bytes);
        let mut bytes = vec![1, 0x80, 0xc2, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 7, 0x42, 0x42, 3, 0, 0, 0, 0x80];
        bytes.resize(60, 0);
        assert_eq!(Message::Notification.frame(source)[..], bytes);
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        for message in [MESSAGE, Message::Notification] {
            assert_eq!(Message::parse(&message.frame(MacAddr::ZERO)), Ok(message));
        }
        let frame = MESSAGE.frame(MacAddr::ZERO);
        for length in 0..START + CONFIGURATION_LENGTH {
            assert_eq!(Message::parse(&frame[..length]), Err(Malformed::Short), "{length}");
        }
        // Link control, protocol, and the type of the rapid spanning tree protocol.
        for (at, value) in [(14, 0xaa), (17, 1), (20, 2)] {
            let mut other = frame;
            other[at] = value;
            assert_eq!(Message::parse(&other), Err(Malformed::Other), "{at}");
        }
    }
}
