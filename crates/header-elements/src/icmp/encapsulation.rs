//! The element that `ICMPIPEncap` and `ICMPPingEncap` share.

use core::marker::PhantomData;
use core::net::Ipv4Addr;

use element::prelude::*;
use packet::view::icmp4::kind;
use packet::{Icmp4ViewMut, protocol};

use crate::ip::HeaderTemplate;

/// The fields of the headers that are prepended to packets.
pub struct MessageTemplate {
    pub(super) source: Ipv4Addr,
    pub(super) destination: Ipv4Addr,
    pub(super) kind: u8,
    pub(super) code: u8,
    /// The identifier of messages that have one.
    pub(super) identifier: u16,
}

impl MessageTemplate {
    /// Length of the ICMP header; in a timestamp message, three timestamps follow the usual eight bytes.
    fn length(&self) -> usize {
        if matches!(self.kind, kind::TIMESTAMP | kind::TIMESTAMP_REPLY) { 20 } else { 8 }
    }

    fn has_identifier(&self) -> bool {
        use kind::*;
        matches!(self.kind, ECHO | ECHO_REPLY | TIMESTAMP | TIMESTAMP_REPLY | INFORMATION | INFORMATION_REPLY)
    }
}

/// The arguments of either element.
pub trait EncapsulationArguments: Args + 'static {
    /// The header fields that they specify.
    #[doc(hidden)]
    fn template(self) -> Result<MessageTemplate, SetupError>;
}

/// Prepends IPv4 and ICMP headers to each packet.
pub struct Encapsulation<K> {
    message: MessageTemplate,
    /// Length of both headers.
    added: usize,
    /// Whether messages have an identifier and a sequence number.
    numbered: bool,
    header: HeaderTemplate,
    sequence: u16,
    arguments: PhantomData<K>,
}

/// Parses the address that was written to a handler.
fn address(cx: &Context, value: &str) -> Result<Ipv4Addr, HandlerError> {
    cx.argument(value).map_err(|_| HandlerError::new("syntax error"))
}

impl<K: EncapsulationArguments> Filter for Encapsulation<K> {
    type Args = K;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("src", "Source address.", |element| element.message.source.to_string()),
        Handler::setting("src", "Sets the source address.", |element, cx, value| {
            element.message.source = address(cx, value)?;
            element.header.set_source(element.message.source);
            Ok(())
        }),
        Handler::read("dst", "Destination address.", |element| element.message.destination.to_string()),
        Handler::setting("dst", "Sets the destination address.", |element, cx, value| {
            element.message.destination = address(cx, value)?;
            Ok(())
        }),
    ];

    fn new(args: K, _: &mut Setup) -> Result<Self, SetupError> {
        let message = args.template()?;
        let header = HeaderTemplate::new(protocol::ICMP, message.source).with(0, 0, 255);
        let (added, numbered) = (20 + message.length(), message.has_identifier());
        Ok(Encapsulation { message, added, numbered, header, sequence: 1, arguments: PhantomData })
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let MessageTemplate { destination, kind, code, identifier, .. } = self.message;
        let Some(space) = packet.prepend(self.added) else {
            return Verdict::Drop(packet, Reason::TOO_LONG);
        };
        // In the other case, every byte is written below.
        if !self.numbered || self.added > 28 {
            space.fill(0);
        }
        let bytes = packet.data_mut();
        let length = bytes.len() as u16;
        self.header.set_identification(self.sequence);
        self.header.write(bytes, length, destination);
        if let Some(mut message) = bytes.get_mut(20..).and_then(Icmp4ViewMut::new) {
            message.set_kind(kind);
            message.set_code(code);
            if self.numbered {
                message.set_identifier(identifier);
                message.set_sequence(self.sequence);
            }
            message.fill_checksum();
        }
        packet.set_destination_ip(destination);
        packet.set_network(0, 20);
        self.sequence = self.sequence.checked_add(1).unwrap_or(1);
        Verdict::Pass(packet)
    }
}
