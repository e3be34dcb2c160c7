//! `CheckARPHeader`: separates packets with invalid ARP headers.

use element::prelude::*;
use packet::EtherType;
use packet::view::arp::HARDWARE_ETHERNET;

use super::header::read_u16;

/// Validates ARP headers, and sets the network header annotation of packets that pass.
///
/// The header at OFFSET must be complete, with addresses of the right length: 6 bytes for Ethernet, 4 for IPv4, 16 for
/// IPv6. Other packets go to output 1, or are dropped as `too_short`, `bad_hardware` or `bad_protocol`. The first bad
/// packet is logged; with VERBOSE, every one is.
/// ```click
/// InfiniteSource(DATA \<0001 0800 06 04 0001 020202020202 01000001 000000000000 01000002>, LIMIT 2, STOP true)
///     -> t :: Tee -> c :: CheckARPHeader(DETAILS true) -> right :: Counter -> Discard;
/// t[1] -> Truncate(27) -> c;
/// c[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// c.drops = 2
/// right.count = 2
/// wrong.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "CheckARPHeader",
    group = "ethernet",
    ports = "1/1-2",
    processing = "a/ah",
    shards = "sum",
    sums = "drops, drop_details",
    logs,
    see = "ARPPrint, ARPQuerier, ARPResponder",
    drops = "too_short, bad_hardware, bad_protocol"
)]
pub struct CheckARPHeaderArgs {
    /// Offset of the header.
    #[arg(position, default = "0")]
    offset: u32,
    /// Log every bad packet.
    #[arg(default = "false")]
    verbose: bool,
    /// Count bad packets by fault in `drop_details`.
    #[arg(default = "false")]
    details: bool,
}

/// Length of the fixed part of the header, which contains the address lengths.
const FIXED_LENGTH: usize = 8;

/// The reasons for rejecting a packet, in the order of `drop_details`: drop reason and description.
const FAULTS: [(Reason, &str); 4] = [
    (Reason::TOO_SHORT, "tiny packet"),
    (Reason::TOO_SHORT, "too small for addresses"),
    (Reason::BAD_HARDWARE, "bad hardware type/length"),
    (Reason::BAD_PROTOCOL, "bad protocol type/length"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Tiny,
    Short,
    Hardware,
    Protocol,
}

pub struct CheckARPHeader {
    args: CheckARPHeaderArgs,
    drops: u64,
    faults: [u64; FAULTS.len()],
}

impl Filter for CheckARPHeader {
    type Args = CheckARPHeaderArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("drops", "Bad packets.", |check| check.drops.to_string()),
        Handler::read_with("drop_details", "Bad packets by fault.", |check, _, _| {
            if !check.args.details {
                return Err(HandlerError::NoHandler("drop_details".to_string()));
            }
            let counts = check.faults.iter().zip(FAULTS);
            Ok(counts.map(|(count, (_, text))| format!("{count}\t{text}\n")).collect())
        }),
    ];

    fn new(args: CheckARPHeaderArgs, _: &mut Setup) -> Result<CheckARPHeader, SetupError> {
        Ok(CheckARPHeader { args, drops: 0, faults: [0; FAULTS.len()] })
    }

    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        let offset = self.args.offset as usize;
        match check(packet.data().get(offset..).unwrap_or(&[])) {
            Ok(length) => {
                packet.set_network(offset as isize, length);
                Verdict::Pass(packet)
            }
            Err(fault) => self.divert(cx, packet, fault),
        }
    }
}

impl CheckARPHeader {
    #[cold]
    fn divert(&mut self, cx: &mut Context, packet: Packet, fault: Fault) -> Verdict {
        let (reason, text) = FAULTS[fault as usize];
        if self.drops == 0 || self.args.verbose {
            cx.log(&format!("ARP header check failed: {text}"));
        }
        self.drops += 1;
        self.faults[fault as usize] += 1;
        Verdict::Divert(packet, reason)
    }
}

/// The length of the ARP header at the start of `bytes`.
fn check(bytes: &[u8]) -> Result<usize, Fault> {
    let fixed: &[u8; FIXED_LENGTH] = bytes.first_chunk().ok_or(Fault::Tiny)?;
    let [.., hardware, protocol, _, _] = *fixed;
    let length = FIXED_LENGTH + 2 * usize::from(hardware) + 2 * usize::from(protocol);
    if bytes.len() < length {
        return Err(Fault::Short);
    }
    if read_u16(fixed, 0) == Some(HARDWARE_ETHERNET) && hardware != 6 {
        return Err(Fault::Hardware);
    }
    let wanted = match read_u16(fixed, 2).map(EtherType) {
        Some(EtherType::IP4) => 4,
        Some(EtherType::IP6) => 16,
        _ => return Ok(length),
    };
    if protocol == wanted { Ok(length) } else { Err(Fault::Protocol) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_found() {
        let long = |start: &[u8]| {
            let mut bytes = start.to_vec();
            bytes.resize(80, 0);
            bytes
        };
        assert_eq!(check(&[]), Err(Fault::Tiny));
        assert_eq!(check(&[0; 7]), Err(Fault::Tiny));
        assert_eq!(check(&[0, 1, 8, 0, 6, 4, 0, 1]), Err(Fault::Short));
        assert_eq!(check(&long(&[0, 1, 8, 0, 6, 4, 0, 1])), Ok(28));
        assert_eq!(check(&long(&[0, 1, 8, 0, 5, 4, 0, 1])), Err(Fault::Hardware));
        assert_eq!(check(&long(&[0, 2, 8, 0, 5, 4, 0, 1])), Ok(26));
        assert_eq!(check(&long(&[0, 1, 8, 0, 6, 16, 0, 1])), Err(Fault::Protocol));
        assert_eq!(check(&long(&[0, 1, 0x86, 0xdd, 6, 16, 0, 1])), Ok(52));
    }
}
