//! `FTPPortMapper`: rewrites the addresses in FTP's PORT commands.

use core::net::Ipv4Addr;

use element::arguments::ElementName;
use element::prelude::*;
use packet::{Ip4View, Ip4ViewMut, TcpView, TcpViewMut, checksum, protocol};

use super::flows::{Flows, SHIFTABLE_PROTOCOL};
use flow::Ip4Flow;

/// Application-level gateway for active FTP (RFC 959): rewrites PORT commands of clients behind a rewriter.
///
/// When a packet of a flow in CONTROL_REWRITER starts with a PORT command, the element creates a flow in DATA_REWRITER,
/// as if the first packet of the data connection had arrived at DATA_REWRITER_INPUT: from the address and port in the
/// command, to the port below the server's control port. It replaces the address and port in the command by those of
/// the new flow. If that changes the length of the packet, CONTROL_REWRITER adjusts the sequence numbers of the
/// connection.
///
/// The packet's own addresses stay unchanged, so it must pass through CONTROL_REWRITER next, an `IPRewriter` or
/// `TCPRewriter`. DATA_REWRITER may be any rewriter, including the same one. A packet that cannot grow passes
/// unchanged.
/// ```click
/// InfiniteSource(\<4500003b 00000000 40060000 0a000001 05000005 19bb0015 00000001 00000001 50181000 00000000
///         504f5254 2031302c 302c302c 312c332c 390d0a>, LIMIT 2, STOP true)
///     -> SetIPChecksum -> MarkIPHeader -> SetTCPChecksum
///     -> FTPPortMapper(rw, rw, 0) -> rw :: TCPRewriter(pattern 1.0.0.1 9000-9999# - - 0 0)
///     -> CheckIPHeader -> CheckTCPHeader -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 2
/// c.byte_count = 119
/// rw.table_size = 2
/// ```
#[derive(Args)]
#[element(
    name = "FTPPortMapper",
    group = "rewriting",
    ports = "1/1",
    processing = "a/a",
    see = "IPRewriter, TCPRewriter, IPRewriterPatterns",
    fates = "changed"
)]
pub(crate) struct FTPPortMapperArgs {
    /// Rewriter of the control connections.
    #[arg(position)]
    control_rewriter: ElementName,
    /// Rewriter of the data connections.
    #[arg(position)]
    data_rewriter: ElementName,
    /// Input of DATA_REWRITER whose specification applies to data connections.
    #[arg(position)]
    data_rewriter_input: i32,
}

pub(crate) struct FTPPortMapper {
    args: FTPPortMapperArgs,
    rewriters: Option<(Rc<Flows>, Rc<Flows>)>,
}

/// A PORT command.
#[derive(Debug, PartialEq, Eq)]
struct Port {
    /// Byte range of its argument in the data.
    argument: core::ops::Range<usize>,
    address: u32,
    port: u16,
}

/// Parses a complete PORT command at the start of the data.
fn command(data: &[u8]) -> Option<Port> {
    let (word, rest) = data.split_first_chunk::<5>()?;
    if !word.eq_ignore_ascii_case(b"PORT ") {
        return None;
    }
    let start = word.len() + rest.iter().take_while(|byte| **byte == b' ').count();
    let is_end = |byte: &u8| !byte.is_ascii_digit() && *byte != b',';
    let length = data.get(start..)?.iter().position(is_end)?;
    let argument = start..start + length;
    if !matches!(data.get(argument.end), Some(b'\r' | b'\n')) {
        return None;
    }
    let mut numbers = [0u8; 6];
    let mut parts = data.get(argument.clone())?.split(|byte| *byte == b',');
    for number in &mut numbers {
        // A missing number is 0.
        let digits = parts.next()?.iter().map(|digit| u32::from(digit - b'0'));
        let value = digits.fold(0u32, |value, digit| value.saturating_mul(10).saturating_add(digit));
        *number = u8::try_from(value).ok()?;
    }
    let [a, b, c, d, high, low] = numbers;
    let (address, port) = (u32::from_be_bytes([a, b, c, d]), u16::from_be_bytes([high, low]));
    parts.next().is_none().then_some(Port { argument, address, port })
}

/// Replaces a part of a packet's data. Returns `false` and changes nothing if the packet can't grow.
fn replace(packet: &mut Packet, range: core::ops::Range<usize>, text: &[u8]) -> bool {
    let Some(tail) = packet.data().get(range.end..).map(<[u8]>::to_vec) else { return false };
    let grows = text.len().saturating_sub(range.len());
    if grows > 0 && packet.append(grows).is_none() {
        return false;
    }
    packet.truncate(range.start + text.len() + tail.len());
    let data = packet.data_mut();
    if let Some(start) = data.get_mut(range.start..range.start + text.len()) {
        start.copy_from_slice(text);
    }
    if let Some(end) = data.get_mut(range.start + text.len()..) {
        end.copy_from_slice(&tail);
    }
    true
}

impl FTPPortMapperArgs {
    /// The rewriters named by the arguments, if they can create data connections.
    fn rewriters(&self, cx: &Context) -> Result<(Rc<Flows>, Rc<Flows>), SetupError> {
        let FTPPortMapperArgs { control_rewriter, data_rewriter, data_rewriter_input } = self;
        let is_control = |flows: &Rc<Flows>| flows.can_shift_sequence_numbers();
        let control = cx.import::<Flows>(&control_rewriter.0).filter(is_control);
        let data = cx.import::<Flows>(&data_rewriter.0);
        let mut problems = SetupError::default();
        for (keyword, name, class, found) in [
            ("CONTROL_REWRITER", control_rewriter, "TCPRewriter", control.is_some()),
            ("DATA_REWRITER", data_rewriter, "IPRewriterBase", data.is_some()),
        ] {
            let exists = cx.runtime().find(cx.element(), &name.0).is_some();
            if !exists {
                problems.merge(SetupError::argument(keyword, "does not name an element"));
            } else if !found {
                let text = format!("element type mismatch, expected {class}");
                problems.merge(SetupError::argument(keyword, text));
            }
        }
        let (Some(control), Some(data)) = (control, data) else { return Err(problems) };
        let element = cx.runtime().find(cx.element(), &data_rewriter.0);
        let element = element.and_then(|element| cx.runtime().element(element));
        let exists = |input| element.is_some_and(|element| input < element.ports.0);
        if !usize::try_from(*data_rewriter_input).is_ok_and(exists) {
            return Err(SetupError::new("DATA_REWRITER_INPUT out of range"));
        }
        Ok((control, data))
    }
}

impl FTPPortMapper {
    /// Rewrites the PORT command of a packet, if there is one.
    fn rewrite(&self, cx: &Context, packet: &mut Packet) -> Option<()> {
        let (control, data_flows) = self.rewriters.as_ref()?;
        let header = Ip4View::new(packet.network()).filter(|header| header.protocol() == protocol::TCP)?;
        let segment = TcpView::new(packet.transport())?;
        let from = usize::try_from(packet.transport_offset()?).ok()? + segment.header_length();
        let data = packet.data().get(from..)?;
        let port = command(data)?;
        let key = Ip4Flow {
            source: header.source().to_bits(),
            destination: header.destination().to_bits(),
            source_port: segment.source(),
            destination_port: segment.destination(),
        };
        let behind = segment.sequence().wrapping_add(data.len() as u32);
        let control_flow = control.lookup_flow(SHIFTABLE_PROTOCOL, key, false, None, cx)?;
        let data_key = Ip4Flow {
            source: port.address,
            source_port: port.port,
            destination_port: key.destination_port.wrapping_sub(1),
            ..key
        };
        let input = usize::try_from(self.args.data_rewriter_input).ok()?;
        let data_flow = data_flows.lookup_flow(SHIFTABLE_PROTOCOL, data_key, false, Some(input), cx)?;
        let [a, b, c, d] = Ipv4Addr::from_bits(data_flow.rewritten.source).octets();
        let [high, low] = data_flow.rewritten.source_port.to_be_bytes();
        let text = format!("{a},{b},{c},{d},{high},{low}");
        let change = text.len() as i32 - port.argument.len() as i32;
        let range = from + port.argument.start..from + port.argument.end;
        if !replace(packet, range, text.as_bytes()) {
            return None;
        }
        control.shift_sequence_numbers(control_flow, behind, change);
        // Data connections inherit the reply annotation of the control connection.
        let annotation = control_flow.reply_annotation;
        data_flows.change(data_flow, |mapping| mapping.reply_annotation = annotation);
        set_lengths(packet)
    }
}

/// Updates the IP length and both checksums of a packet whose data have changed.
fn set_lengths(packet: &mut Packet) -> Option<()> {
    let length = packet.network().len() as u16;
    let mut header = Ip4ViewMut::new(packet.network_mut())?;
    let sum = checksum::update(header.view().checksum(), header.view().total_length(), length);
    header.set_total_length(length);
    header.set_checksum(sum);
    let transport = packet.transport().len() as u16;
    let pseudo = Ip4View::new(packet.network())?.pseudo_header(transport);
    TcpViewMut::new(packet.transport_mut())?.fill_checksum(pseudo);
    Some(())
}

impl Filter for FTPPortMapper {
    type Args = FTPPortMapperArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read_with("config", "The configuration.", |_, cx, _| Ok(cx.configuration())),
        Handler::setting("config", "Changes the configuration.", |mapper, cx, value| {
            let args: FTPPortMapperArgs = cx.arguments(value)?;
            mapper.rewriters = Some(args.rewriters(cx)?);
            mapper.args = args;
            cx.record_configuration(value);
            Ok(())
        }),
    ];

    fn new(args: FTPPortMapperArgs, setup: &mut Setup) -> Result<FTPPortMapper, SetupError> {
        // Not batched: the packet before a command may be the one for which a rewriter further downstream creates the
        // flow.
        setup.unbatched = true;
        Ok(FTPPortMapper { args, rewriters: None })
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.rewriters = Some(self.args.rewriters(cx)?);
        Ok(())
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let runtime = cx.runtime();
        let element = runtime.find(cx.element(), &self.args.control_rewriter.0);
        let downstream = runtime.neighbours(cx.element(), Some(0), true);
        if let Some(element) = element.filter(|element| !downstream.contains(element)) {
            let (name, class) = (runtime.element_name(element), runtime.class_name(element));
            cx.warn(&format!("control packet rewriter ‘{name} :: {class}’ is not downstream"));
        }
        Ok(())
    }

    #[inline]
    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        self.rewrite(cx, &mut packet);
        Verdict::Pass(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands() {
        let found =
            |text: &str| command(text.as_bytes()).map(|port| (port.argument, port.address, port.port));
        assert_eq!(found("PORT 1,0,0,2,3,9\r\n"), Some((5..16, 0x0100_0002, 777)));
        assert_eq!(found("port   1,,0,2,3,9\nX"), Some((7..17, 0x0100_0002, 777)));
        for wrong in [
            "PORT 1,0,0,2,3,9",
            "PORT 1,0,0,2,3\r\n",
            "PORT 1,0,0,2,3,9,1\r\n",
            "PORT 1,0,0,2,3,256\r\n",
            "PORT 1,0,0,2,3,99999999999999\r\n",
            "PORT 1,0,0,2,3,9 \r\n",
            "PASV\r\n",
            "PORT ",
            "",
        ] {
            assert_eq!(found(wrong), None, "{wrong}");
        }
    }
}
