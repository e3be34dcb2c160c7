//! Forwards batches by a route table.

use alloc::format;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use element::Context;
use element::Reason;
use packet::{Batch, Packet};

use lookup::{Lookup, NO_HOP, NextHop};

/// Packets without a route that are logged; further ones are only counted.
const MAX_LOGGED: u32 = 5;

/// Forwards batches. Keeps the buffers of its lookups.
pub(super) struct Forwarder<A> {
    addresses: Vec<A>,
    hops: Vec<u32>,
    /// Whether the packets from the first one without a route on are put back, unless it is the first of the batch.
    stops_at_misses: bool,
}

impl<A> Default for Forwarder<A> {
    fn default() -> Self {
        Self { addresses: Vec::new(), hops: Vec::new(), stops_at_misses: false }
    }
}

impl<A: Copy> Forwarder<A> {
    /// Sends each packet of a batch to the output of its address's hop. `redirect` sets the hop's gateway in
    /// the packet. `miss` gets the address of a packet that is dropped because it has no route.
    #[inline]
    pub(super) fn forward(
        &mut self,
        cx: &mut Context,
        mut batch: Batch,
        table: &mut impl Lookup<A>,
        address: impl Fn(&Packet) -> A,
        redirect: impl Fn(&mut Packet, A),
        mut miss: impl FnMut(&mut Context, A),
    ) {
        self.addresses.clear();
        self.addresses.extend(batch.iter().map(address));
        self.hops.resize(batch.len(), NO_HOP);
        table.lookup_batch(&self.addresses, &mut self.hops);

        // All packets go to one hop, as in a network with one gateway: the batch stays whole.
        let first = self.hops.first().copied().unwrap_or(NO_HOP);
        if self.hops.iter().all(|&hop| hop == first)
            && let Some(NextHop { gateway, port }) = table.hop(first)
        {
            if let Some(gateway) = gateway {
                batch.iter_mut().for_each(|packet| redirect(packet, gateway));
            }
            return cx.emit(port, batch);
        }

        // A packet without a gateway keeps its address: it is set again, because a branch would be mispredicted.
        let (mut all_have_routes, mut first_rest) = (true, batch.len());
        for (at, ((packet, hop), address)) in
            batch.iter_mut().zip(&mut self.hops).zip(&self.addresses).enumerate()
        {
            let Some(NextHop { gateway, port }) = table.hop(*hop) else {
                if self.stops_at_misses && at > 0 {
                    first_rest = at;
                    break;
                }
                (*hop, all_have_routes) = (NO_HOP, false);
                continue;
            };
            redirect(packet, gateway.unwrap_or(*address));
            *hop = port as u32;
        }
        if first_rest < batch.len() {
            let mut first = cx.batch();
            batch.drain_front(first_rest).for_each(|packet| first.push(packet));
            cx.put_back(core::mem::replace(&mut batch, first));
            self.hops.truncate(first_rest);
        }
        if !all_have_routes {
            let lost = self.hops.iter().zip(&self.addresses).filter(|(hop, _)| **hop == NO_HOP);
            lost.for_each(|(_, address)| miss(cx, *address));
        }
        cx.send_to_ports(batch, &self.hops, Reason::NO_ROUTE);
    }
}

/// Forwards by the destination address annotation.
#[derive(Default)]
pub(super) struct Ip4Forwarder {
    forwarder: Forwarder<u32>,
    logged: u32,
}

impl Ip4Forwarder {
    /// Forwards each packet by the table. With `log_name`, the first few packets without a route are logged.
    #[inline]
    pub(super) fn forward(
        &mut self,
        cx: &mut Context,
        batch: Batch,
        table: &mut impl Lookup<u32>,
        log_name: Option<&str>,
    ) {
        let logged = &mut self.logged;
        self.forwarder.stops_at_misses = log_name.is_some() && *logged < MAX_LOGGED;
        self.forwarder.forward(
            cx,
            batch,
            table,
            |packet| packet.destination_ip().to_bits(),
            |packet, gateway| packet.set_destination_ip(Ipv4Addr::from_bits(gateway)),
            |cx, address| {
                if let Some(name) = log_name.filter(|_| *logged < MAX_LOGGED) {
                    *logged += 1;
                    cx.log(&format!("{name}: no route for {}", Ipv4Addr::from_bits(address)));
                }
            },
        );
    }
}
