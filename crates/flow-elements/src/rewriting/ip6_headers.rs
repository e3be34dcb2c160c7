//! The headers of an IPv6 packet that `AddressTranslator` changes.

use core::net::Ipv6Addr;

use element::prelude::*;
use packet::Ip6View;
use packet::checksum::{Sum, update};
use packet::view::{icmp6, protocol};

use super::ip6_bindings::Endpoint;

/// Offset of the identifier of an echo in its message.
const IDENTIFIER: usize = 4;

/// An end of a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Source,
    Destination,
}

/// What a packet says of its ends.
pub(super) struct Ip6Headers {
    pub(super) protocol: u8,
    pub(super) source: Endpoint,
    pub(super) destination: Endpoint,
    /// Whether it has ports, or the identifier of an echo.
    pub(super) has_ports: bool,
    /// Whether it is an ICMPv6 error.
    pub(super) is_error: bool,
    /// Where its transport header is.
    pub(super) transport: usize,
    /// Whether it is a later fragment, which has no transport header.
    is_later: bool,
}

impl Ip6Headers {
    /// Reads the headers of TCP, UDP and ICMPv6.
    pub(super) fn new(bytes: &[u8]) -> Result<Ip6Headers, Reason> {
        let view = Ip6View::new(bytes).filter(|view| view.version() == 6).ok_or(Reason::NO_IP_HEADER)?;
        let found = view.transport();
        if !matches!(found.protocol, protocol::TCP | protocol::UDP | protocol::ICMP6) {
            return Err(Reason::NOT_REWRITABLE);
        }
        let word = |at: usize| found.bytes.get(at..)?.first_chunk().map(|word| u16::from_be_bytes(*word));
        let is_later = found.fragment.is_some_and(|fragment| fragment.offset > 0);
        let kind = found.bytes.first().filter(|_| found.protocol == protocol::ICMP6 && !is_later).copied();
        let ports = match kind {
            _ if is_later => None,
            Some(icmp6::kind::ECHO | icmp6::kind::ECHO_REPLY) => word(IDENTIFIER).map(|word| (word, word)),
            Some(_) => None,
            None => word(0).zip(word(2)),
        };
        let (from, to) = ports.unwrap_or((0, 0));
        Ok(Ip6Headers {
            protocol: found.protocol,
            source: Endpoint { address: view.source(), port: from },
            destination: Endpoint { address: view.destination(), port: to },
            has_ports: ports.is_some(),
            is_error: kind.is_some_and(|kind| kind < icmp6::kind::ECHO),
            transport: found.offset,
            is_later,
        })
    }

    /// Whether the transport header is ICMPv6.
    fn is_icmp(&self) -> bool {
        self.protocol == protocol::ICMP6
    }

    /// Writes one end, and adapts the checksum of the transport header, which also covers `changes`. Adds the words that were
    /// changed to `changes`, as they were before and after.
    pub(super) fn write(&self, bytes: &mut [u8], end: End, to: Endpoint, changes: &mut [Sum; 2]) {
        let (old, place) = match end {
            End::Source => (self.source, 8),
            End::Destination => (self.destination, 8 + size_of::<Ipv6Addr>()),
        };
        let mut words =
            [(old, changes[0]), (to, changes[1])].map(|(of, sum)| sum.bytes(&of.address.octets()));
        if let Some(field) = bytes.get_mut(place..place + 16) {
            field.copy_from_slice(&to.address.octets());
        }
        let transport = bytes.get_mut(self.transport..).filter(|_| !self.is_later).unwrap_or_default();
        if self.has_ports {
            let place = match end {
                _ if self.is_icmp() => IDENTIFIER,
                End::Source => 0,
                End::Destination => 2,
            };
            if let Some(field) = transport.get_mut(place..place + 2) {
                field.copy_from_slice(&to.port.to_be_bytes());
                words = [words[0].word(old.port), words[1].word(to.port)];
            }
        }
        let place = match self.protocol {
            protocol::TCP => 16,
            protocol::UDP => 6,
            _ => 2,
        };
        if let Some(field) = transport.get_mut(place..).and_then(|rest| rest.first_chunk_mut::<2>()) {
            let before = u16::from_be_bytes(*field);
            let after = match update(before, words[0].fold(), words[1].fold()) {
                _ if self.protocol == protocol::UDP && before == 0 => 0,
                0 if self.protocol == protocol::UDP => 0xffff,
                after => after,
            };
            *field = after.to_be_bytes();
            words = [words[0].word(before), words[1].word(after)];
        }
        *changes = words;
    }
}
