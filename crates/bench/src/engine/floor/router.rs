//! The router's loop: checks, route, time to live, new Ethernet header.

use super::addresses::{Addresses, starts};
use super::frames::Frames;
use super::header::{ETHERNET, destination, ip_header};
use crate::engine::rules::{Prefix, Route};

/// The Ethernet header of each output: neighbour, own address, type.
const INTERFACES: [[u8; ETHERNET]; 3] = [
    [2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 0, 8, 0],
    [2, 0, 0, 0, 2, 1, 2, 0, 0, 0, 2, 0, 8, 0],
    [2, 0, 0, 0, 3, 1, 2, 0, 0, 0, 3, 0, 8, 0],
];

/// The number of addresses without a route.
const NO_ROUTE: u32 = u32::MAX >> 1;

/// A router.
pub(super) struct Router {
    routes: Addresses,
    /// Packets sent by each output.
    sent: [u64; INTERFACES.len()],
}

impl Router {
    /// A router with these routes.
    pub(super) fn new(routes: &[Route]) -> Self {
        let find = |address| {
            let matching = routes.iter().filter(|route| route.prefix.contains(address));
            matching.max_by_key(|route| route.prefix.length()).map_or(NO_ROUTE, |route| route.output)
        };
        let starts = starts(routes.iter().map(|route| route.prefix).map(Prefix::range));
        let ranges: Vec<_> = starts.into_iter().map(|start| (start, find(start))).collect();
        Self { routes: Addresses::new(&ranges), sent: [0; INTERFACES.len()] }
    }

    /// Sends the frames of a batch.
    pub(super) fn process(&mut self, frames: &mut Frames) {
        for frame in frames.iter_mut() {
            if frame.get(12..14) != Some(&[8, 0]) {
                continue;
            }
            let Some(ip) = ip_header(frame) else { continue };
            let output = self.routes.get(destination(ip)) as usize;
            let Some(header) = INTERFACES.get(output).filter(|_| ip[8] > 1) else { continue };
            // The checksum's update for a time to live that is one smaller (RFC 1624).
            ip[8] -= 1;
            let sum = u32::from(u16::from_be_bytes([ip[10], ip[11]])) + 0x100;
            let sum = (sum + (sum >> 16)) as u16;
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            frame[..ETHERNET].copy_from_slice(header);
            self.sent[output] += 1;
        }
    }

    /// Packets sent.
    pub(super) fn passed(&self) -> u64 {
        self.sent.iter().sum()
    }
}
