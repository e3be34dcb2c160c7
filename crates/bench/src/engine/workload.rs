//! Fits a configuration to a load: frames of a size, many rules, routes or flows.
//!
//! The text that comes out is given to all programs alike. Elements are known by their names: `source` is an
//! InfiniteSource of FRAME, `rules` an IPFilter, `routes` a route table.

use std::fmt::Write;

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// Bytes of a PPPoE header and the PPP protocol number after it.
const PPPOE: usize = 8;
/// Ports of a public address that a rewriter may use, rounded down.
const PORTS: u32 = 60_000;

/// What a configuration is measured with. What is `None` stays as it is in the configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    /// Bytes of each frame.
    pub size: u32,
    /// Rules of the filter, of which the last one allows everything.
    pub rules: Option<u32>,
    /// Routes, to which packets go at random; one of them is the default.
    pub routes: Option<u32>,
    /// Source addresses, of which each packet has a random one.
    pub flows: Option<u32>,
}

/// A configuration's text for a load, and the parameters that it is run with.
pub fn prepare(text: &str, load: &Load) -> (String, Vec<(&'static str, String)>) {
    let mut text = text.to_string();
    let mut parameters = vec![("LENGTH", load.size.to_string())];
    if let Some(frame) = frame_of(&text) {
        parameters.push(("FRAME", hexadecimal(&resized(frame, load.size as usize))));
    }
    if let Some((count, (start, end))) = load.rules.zip(arguments_of(&text, "rules")) {
        text.replace_range(start..end, &rules(count));
    }
    let routed = load.routes.zip(arguments_of(&text, "routes"));
    if let Some((count, (start, end))) = routed {
        text.replace_range(start..end, &routes(count));
    }
    let mut changes = String::new();
    if let Some(flows) = load.flows {
        let _ = write!(changes, " -> SetRandIPAddress(10.0.0.0/8, {flows}) -> StoreIPAddress(src)");
        if text.contains("$PUBLIC") {
            let last = 1 + flows.div_ceil(PORTS);
            parameters.push(("PUBLIC", format!("198.51.{}.1-198.51.{}.{}", 0, last / 250, 1 + last % 250)));
        }
    }
    if routed.is_some() {
        changes += " -> SetRandIPAddress(0.0.0.0/0) -> StoreIPAddress(dst)";
    }
    if let Some((_, end)) = arguments_of(&text, "source").filter(|_| !changes.is_empty()) {
        text.insert_str(end + 1, &format!(" -> MarkIPHeader({}){changes}", network_offset(&text)));
    }
    (text, parameters)
}

/// Whether a configuration has an element of this name with arguments.
pub fn has(text: &str, name: &str) -> bool {
    arguments_of(text, name).is_some()
}

/// How many arguments an element has that stand without commas in them, as rules do.
pub fn count_of(text: &str, name: &str) -> Option<u32> {
    let (start, end) = arguments_of(text, name)?;
    u32::try_from(text[start..end].split(',').count()).ok()
}

/// Where the arguments of the element `name` stand in the text: what is between the parentheses.
fn arguments_of(text: &str, name: &str) -> Option<(usize, usize)> {
    let declaration = text.find(&format!("{name} :: "))?;
    let start = declaration + text[declaration..].find('(')? + 1;
    let mut depth = 1usize;
    for (at, character) in text[start..].char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((start, start + at));
        }
    }
    None
}

/// The bytes of `define($FRAME \<...>)`.
fn frame_of(text: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once("$FRAME \\<")?;
    let (digits, _) = rest.split_once('>')?;
    let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(byte).collect()
}

/// Where the IPv4 header of the frames begins.
fn network_offset(text: &str) -> usize {
    let is_pppoe = frame_of(text).is_some_and(|frame| frame.get(12..14) == Some(&[0x88, 0x64]));
    if is_pppoe { ETHERNET + PPPOE } else { ETHERNET }
}

/// A frame's headers with the lengths in them of a frame of `size` bytes.
fn resized(mut frame: Vec<u8>, size: usize) -> Vec<u8> {
    let mut network = ETHERNET;
    if frame.get(12..14) == Some(&[0x88, 0x64]) {
        // The length in a PPPoE header counts what follows it.
        set(&mut frame, 18, size.saturating_sub(ETHERNET + PPPOE - 2));
        network += PPPOE;
    }
    if frame.get(network).is_some_and(|byte| byte >> 4 == 4) {
        set(&mut frame, network + 2, size.saturating_sub(network));
        set(&mut frame, network + 10, 0);
        if let Some(header) = frame.get(network..network + 20) {
            let sum = packet::checksum::Sum::default().bytes(header).finish();
            set(&mut frame, network + 10, usize::from(sum));
        }
        set(&mut frame, network + 24, size.saturating_sub(network + 20));
    }
    frame
}

/// Writes 16 bits in network order, if the frame is long enough.
fn set(frame: &mut [u8], offset: usize, value: usize) {
    if let Some(field) = frame.get_mut(offset..offset + 2) {
        field.copy_from_slice(&(value as u16).to_be_bytes());
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\\<{digits}>")
}

/// Rules that deny single addresses and ports, none of which the frames have; then one that allows the rest.
fn rules(count: u32) -> String {
    let mut text = String::new();
    for number in 1..count {
        let [_, _, high, low] = number.to_be_bytes();
        let port = 1024 + number % 60_000;
        let _ = writeln!(text, "deny src host 172.16.{high}.{low} and udp and dst port {port},");
    }
    text + "allow all"
}

/// Prefixes spread evenly over all addresses, up to four bits longer than would cover them; then the default.
fn routes(count: u32) -> String {
    let mut text = String::new();
    let shortest = 32 - (count.max(2) - 1).leading_zeros();
    for number in 0..count.saturating_sub(1) {
        let length = (shortest + number.wrapping_mul(0x9e37_79b9) % 5).min(32);
        let base = (u64::from(number) << 32 >> shortest) as u32;
        let address = std::net::Ipv4Addr::from_bits(base);
        let _ = writeln!(text, "{address}/{length} {},", number % 2);
    }
    text + "0.0.0.0/0 0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_get_the_lengths_of_their_size() {
        let example = super::super::EXAMPLES.iter().find(|example| example.name == "bras");
        let frame = resized(frame_of(example.expect("bras").text).expect("frame"), 1500);
        assert_eq!(frame[18..20], 1480u16.to_be_bytes());
        assert!(packet::Ip4View::check(&frame[22..], false).is_err(), "the frame is only its start");
        assert_eq!(frame[24..26], 1478u16.to_be_bytes());
        let sum = packet::checksum::Sum::default().bytes(&frame[22..42]).finish();
        assert_eq!(sum, 0);
    }

    #[test]
    fn rules_and_routes_have_their_number() {
        assert_eq!(rules(1000).lines().count(), 1000);
        assert_eq!(routes(1), "0.0.0.0/0 0");
        assert_eq!(routes(1000).lines().count(), 1000);
        let load = Load { size: 64, rules: Some(3), ..Load::default() };
        let (text, _) = prepare("a :: B; rules :: IPFilter(deny (x or y), allow all) -> c;", &load);
        assert!(text.ends_with("allow all) -> c;"), "{text}");
        assert_eq!(text.matches("deny").count(), 2, "{text}");
    }
}
