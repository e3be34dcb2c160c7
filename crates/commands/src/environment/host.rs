//! The host's interfaces.

use std::fs;
use std::net::Ipv4Addr;

use element::Interface;

/// An interface's addresses, from the system's tables.
pub(super) fn interface(name: &str) -> Option<Interface> {
    // A name that would leave the folder is not an interface.
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        return None;
    }
    let link = fs::read_to_string(format!("/sys/class/net/{name}/address")).ok()?;
    let mut bytes = link.trim().split(':').map(|byte| u8::from_str_radix(byte, 16).ok());
    let mut address = [0; 6];
    let complete = address.iter_mut().all(|target| match bytes.next() {
        Some(Some(byte)) => {
            *target = byte;
            true
        }
        _ => false,
    });
    Some(Interface { ip: ip(name), link: complete.then_some(address) })
}

/// The interface's first IPv4 prefix: the routing table gives the network of the device, the local table the address.
fn ip(name: &str) -> Option<(Ipv4Addr, u8)> {
    let routes = fs::read_to_string("/proc/net/route").ok()?;
    let locals = local_addresses();
    routes.lines().skip(1).find_map(|line| {
        let mut fields = line.split_whitespace();
        let device = fields.next()?;
        let network = u32::from_str_radix(fields.next()?, 16).ok()?.swap_bytes();
        let mask = u32::from_str_radix(fields.nth(5)?, 16).ok()?.swap_bytes();
        let inside = |address: &&Ipv4Addr| u32::from(**address) & mask == network;
        (device == name && mask != 0)
            .then(|| locals.iter().find(inside).map(|address| (*address, mask.count_ones() as u8)))?
    })
}

fn local_addresses() -> Vec<Ipv4Addr> {
    let Ok(trie) = fs::read_to_string("/proc/net/fib_trie") else { return Vec::new() };
    let mut found = Vec::new();
    let mut last = None;
    for line in trie.lines() {
        let text = line.trim();
        if let Some(address) = text.strip_prefix("|-- ") {
            last = address.parse().ok();
        } else if text.starts_with("/32 host LOCAL")
            && let Some(address) = last
            && !found.contains(&address)
        {
            found.push(address);
        }
    }
    found
}
