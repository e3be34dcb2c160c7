//! Constructs ARP frames.

use core::net::Ipv4Addr;

use element::prelude::*;
use packet::view::arp;
use packet::{ArpViewMut, EtherType, MacAddr};

use super::header::{LENGTH, ethernet};

/// The length of an ARP frame for IPv4 over Ethernet.
pub(super) const FRAME_LENGTH: usize = LENGTH + arp::LENGTH;

/// An end of an ARP exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Endpoint {
    pub(super) mac: MacAddr,
    pub(super) ip: Ipv4Addr,
}

/// Creates a query for `target`; `None` if the pool is exhausted, which is counted.
pub(super) fn query(
    cx: &mut Context,
    sender: Endpoint,
    target: Ipv4Addr,
    destination: MacAddr,
) -> Option<Packet> {
    frame(cx, destination, arp::REQUEST, sender, Endpoint { mac: MacAddr::ZERO, ip: target })
}

/// Creates a reply with the address of `sender` for `target`; `None` if the pool is exhausted, which is counted.
pub(super) fn reply(cx: &mut Context, sender: Endpoint, target: Endpoint) -> Option<Packet> {
    frame(cx, target.mac, arp::REPLY, sender, target)
}

fn frame(
    cx: &mut Context,
    destination: MacAddr,
    operation: u16,
    sender: Endpoint,
    target: Endpoint,
) -> Option<Packet> {
    let mut bytes = [0; FRAME_LENGTH];
    let (front, rest) = bytes.split_first_chunk_mut()?;
    *front = ethernet(destination, sender.mac, EtherType::ARP);
    let mut view = ArpViewMut::new(rest)?;
    view.set_ethernet_ip4();
    view.set_operation(operation);
    view.set_sender_mac(sender.mac);
    view.set_sender_ip(sender.ip);
    view.set_target_mac(target.mac);
    view.set_target_ip(target.ip);
    let mut packet = cx.packet(&bytes)?;
    packet.set_mac_header(0, LENGTH);
    Some(packet)
}
