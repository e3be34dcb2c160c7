//! The state of a rewriter's flows as bytes, for the box in which they go on.
//!
//! | bytes | field |
//! |---|---|
//! | 12 | the key of forward packets: source, destination, source port, destination port |
//! | 12 | what they are rewritten to |
//! | 4 | the outputs of forward packets and of replies |
//! | 2 | the input on which the flow began |
//! | 4 | protocol, progress, reply annotation, 1 while the flow is guaranteed |
//! | 8 | milliseconds until its period ends |
//! | 1 | the number of shifts of sequence numbers, newest first |
//! | 20 each | of both directions the shift, the first number that it holds for, and 1 if there is such a number |
//!
//! All numbers are big endian.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;

use element::{Context, FlowStates, FlowTuple, FlowTuples, ImportError};
use packet::checksum::Delta;
use packet::protocol;

use super::flows::{Flows, clock};
use super::mapping::Mapping;
use super::sequence_shifts::{SequenceShifts, Shift};
use super::translate::{KeyFields, ping};
use flow::Ip4Flow;

/// The name of the format.
const FORMAT: &str = "rewriter";

/// The version of the format.
const VERSION: u32 = 1;

/// The longest period that an imported flow may have left, in milliseconds: a year. Stops a state from overflowing the clock.
const MAX_PERIOD: u64 = 365 * 24 * 3600 * 1000;

/// The flows of a rewriter, as they are handed over.
pub(crate) struct RewriterStates(pub(crate) Rc<Flows>);

/// A flow as it is handed over.
struct MappingState {
    from: Ip4Flow,
    to: Ip4Flow,
    mapping: Mapping,
    /// Milliseconds until its period ends.
    left: u64,
}

/// Reads fields from the front.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], ImportError> {
        let (first, rest) = self.0.split_first_chunk().ok_or(ImportError::Malformed)?;
        self.0 = rest;
        Ok(*first)
    }

    fn u16(&mut self) -> Result<u16, ImportError> {
        self.bytes().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, ImportError> {
        self.bytes().map(u32::from_be_bytes)
    }

    fn flag(&mut self) -> Result<bool, ImportError> {
        match self.bytes()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(ImportError::Malformed),
        }
    }

    fn flow(&mut self) -> Result<Ip4Flow, ImportError> {
        Ok(Ip4Flow {
            source: self.u32()?,
            destination: self.u32()?,
            source_port: self.u16()?,
            destination_port: self.u16()?,
        })
    }
}

fn put_flow(bytes: &mut Vec<u8>, flow: Ip4Flow) {
    bytes.extend(flow.source.to_be_bytes());
    bytes.extend(flow.destination.to_be_bytes());
    bytes.extend(flow.source_port.to_be_bytes());
    bytes.extend(flow.destination_port.to_be_bytes());
}

fn encode(from: Ip4Flow, to: Ip4Flow, mapping: &Mapping, now: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(44);
    put_flow(&mut bytes, from);
    put_flow(&mut bytes, to);
    mapping.outputs.iter().for_each(|output| bytes.extend(output.to_be_bytes()));
    bytes.extend(mapping.input.to_be_bytes());
    let guaranteed = u8::from(mapping.guaranteed);
    bytes.extend([mapping.protocol, mapping.progress, mapping.reply_annotation, guaranteed]);
    bytes.extend(mapping.deadline.saturating_sub(now).min(MAX_PERIOD).to_be_bytes());
    let shifts = mapping.shifts.as_deref();
    bytes.push(shifts.map_or(0, |shifts| shifts.steps().len() as u8));
    for Shift { shifts, triggers } in shifts.into_iter().flat_map(SequenceShifts::steps) {
        for (shift, trigger) in shifts.iter().zip(triggers) {
            bytes.extend(shift.to_be_bytes());
            bytes.extend(trigger.unwrap_or(0).to_be_bytes());
            bytes.push(trigger.is_some().into());
        }
    }
    bytes
}

fn decode(bytes: &[u8]) -> Result<MappingState, ImportError> {
    let mut fields = Fields(bytes);
    let (from, to) = (fields.flow()?, fields.flow()?);
    let outputs = [fields.u16()?, fields.u16()?];
    let input = fields.u16()?;
    let [protocol, progress, reply_annotation] = fields.bytes()?;
    let guaranteed = fields.flag()?;
    let left = fields.bytes().map(u64::from_be_bytes)?;
    let [count] = fields.bytes()?;
    let mut shifts = SequenceShifts::default();
    for _ in 0..count {
        let mut shift = Shift::default();
        for (shift, trigger) in shift.shifts.iter_mut().zip(&mut shift.triggers) {
            *shift = fields.u32()? as i32;
            let number = fields.u32()?;
            *trigger = fields.flag()?.then_some(number);
        }
        if !shifts.push_older(shift) {
            return Err(ImportError::Malformed);
        }
    }
    if !fields.0.is_empty() || left > MAX_PERIOD {
        return Err(ImportError::Malformed);
    }
    let mut mapping = Mapping::new(from, to, outputs, input, protocol);
    mapping.shifts = (count > 0).then(|| Box::new(shifts));
    (mapping.progress, mapping.reply_annotation, mapping.guaranteed) =
        (progress, reply_annotation, guaranteed);
    Ok(MappingState { from, to, mapping, left })
}

/// The tuple of a flow's packets with this key. A ping has its identifier at both ends. Where only addresses count, protocol and ports
/// are zero, as in [`FlowTuple::of_addresses`].
fn tuple(key_fields: KeyFields, protocol: u8, key: Ip4Flow) -> FlowTuple {
    let ports = match key_fields {
        KeyFields::Ping => [key.source_port; 2],
        _ => [key.source_port, key.destination_port],
    };
    FlowTuple::ipv4(protocol, (key.source, ports[0]), (key.destination, ports[1]))
}

impl RewriterStates {
    fn tuples(&self, protocol: u8, from: Ip4Flow, to: Ip4Flow) -> FlowTuples {
        let tuple = |key| tuple(self.0.key_fields, protocol, key);
        [tuple(from), tuple(to)]
    }

    /// The table and the handle of the flow that is known by this tuple.
    fn search(&self, tuple: FlowTuple) -> Option<(usize, u32)> {
        let key_fields = self.0.key_fields;
        let map = key_fields.map(tuple.protocol)?;
        let set = self.0.set();
        let set = set.borrow();
        let table = set.table(self.0.member.get(), map)?;
        let [one, other] = tuple.ipv4_ends()?;
        [(one, other), (other, one)].into_iter().find_map(|(source, destination)| {
            let key = Ip4Flow {
                source: source.0,
                destination: destination.0,
                source_port: source.1,
                destination_port: destination.1,
            };
            let keys = match key_fields {
                KeyFields::Ping => [ping(key, key.source_port, true), ping(key, key.source_port, false)],
                _ => [key; 2],
            };
            let side = keys.into_iter().find_map(|key| table.pairs.find(key))?;
            let found = table.pairs.get(side.flow)?;
            (found.flow.protocol == tuple.protocol).then_some((map, side.flow))
        })
    }
}

impl FlowStates for RewriterStates {
    fn format(&self) -> (&'static str, u32) {
        (FORMAT, VERSION)
    }

    fn is_shared(&self) -> bool {
        self.0.key_fields.has_only_addresses()
    }

    fn next(&self, position: u64) -> Option<(u64, FlowTuples)> {
        let set = self.0.set();
        let set = set.borrow();
        let (first, mut from) = ((position >> 32) as usize, position as u32);
        let maps = &set.members.get(self.0.member.get())?.maps;
        for (number, map) in maps.iter().enumerate().skip(first) {
            if let Some((handle, pair)) = map.pairs.at_or_after(from) {
                let [forward, reply] = pair.keys;
                let tuples = self.tuples(pair.flow.protocol, forward, reply.reverse());
                return Some((((number as u64) << 32 | u64::from(handle)) + 1, tuples));
            }
            from = 0;
        }
        None
    }

    fn find(&self, tuple: FlowTuple) -> Option<FlowTuples> {
        let (map, flow) = self.search(tuple)?;
        let set = self.0.set();
        let set = set.borrow();
        let pair = set.table(self.0.member.get(), map)?.pairs.get(flow)?;
        let [forward, reply] = pair.keys;
        Some(self.tuples(pair.flow.protocol, forward, reply.reverse()))
    }

    fn export(&mut self, tuple: FlowTuple, cx: &Context) -> Option<(FlowTuples, Vec<u8>)> {
        let (map, flow) = self.search(tuple)?;
        let set = self.0.set();
        let mut set = set.borrow_mut();
        let member = set.members.get_mut(self.0.member.get())?;
        let pair = member.maps.get(map)?.pairs.get(flow)?;
        let [forward, reply] = pair.keys;
        let rewritten = reply.reverse();
        let payload = encode(forward, rewritten, &pair.flow, clock(cx));
        let tuples = self.tuples(pair.flow.protocol, forward, rewritten);
        member.remove(map, flow);
        Some((tuples, payload))
    }

    fn import(&mut self, tuples: FlowTuples, payload: &[u8], cx: &Context) -> Result<(), ImportError> {
        let MappingState { from, to, mut mapping, left } = decode(payload)?;
        let map = self.0.key_fields.map(mapping.protocol).ok_or(ImportError::Malformed)?;
        let has_output = |output: &u16| usize::from(*output) < self.0.outputs;
        let key_fields = self.0.key_fields;
        if self.tuples(mapping.protocol, from, to) != tuples
            || !mapping.outputs.iter().all(has_output)
            || usize::from(mapping.input) >= self.0.inputs.borrow().len()
            || ![from, to].into_iter().all(|key| key_fields.has_form(key))
            || key_fields.has_only_addresses() && mapping.protocol != 0
        {
            return Err(ImportError::Malformed);
        }
        if key_fields == KeyFields::Ping {
            mapping.transport = Delta::NONE.word(from.source_port, to.source_port).normalised();
        }
        if mapping.shifts.is_some() && mapping.protocol != protocol::TCP {
            return Err(ImportError::Malformed);
        }
        let now = clock(cx);
        mapping.deadline = now.saturating_add(left);
        let set = self.0.set();
        let mut set = set.borrow_mut();
        let place = (self.0.member.get(), map);
        if key_fields.has_only_addresses() && set.use_equal(place, [from, to.reverse()], &mapping, now) {
            return Ok(());
        }
        set.take_over(place, from, to, mapping)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use random::Random;

    fn flow(random: &mut Random) -> Ip4Flow {
        Ip4Flow {
            source: random.next() as u32,
            destination: random.next() as u32,
            source_port: random.next() as u16,
            destination_port: random.next() as u16,
        }
    }

    #[test]
    fn a_state_survives_the_trip() {
        let mut random = Random::new(1);
        for round in 0..1000u64 {
            let (from, to) = (flow(&mut random), flow(&mut random));
            let mut mapping = Mapping::new(from, to, [round as u16, 7], 3, 6);
            (mapping.progress, mapping.reply_annotation, mapping.guaranteed) = (13, 9, round % 2 == 0);
            mapping.deadline = 5000 + round;
            if round % 3 > 0 {
                let mut shifts = SequenceShifts::default();
                for _ in 0..round % 80 {
                    shifts.add(random.below(2) == 0, random.next() as u32, random.below(99) as i32 - 50);
                }
                mapping.shifts = Some(Box::new(shifts));
            }
            let bytes = encode(from, to, &mapping, 5000);
            assert!(bytes.len() <= element::MAX_FLOW_STATE);
            let back = decode(&bytes).unwrap();
            assert_eq!((back.from, back.to, back.left), (from, to, round));
            mapping.deadline = 0;
            assert_eq!(encode(from, to, &mapping, 0)[42..], encode(from, to, &back.mapping, 0)[42..]);
            assert_eq!(back.mapping.transport, mapping.transport);
        }
    }

    #[test]
    fn keys_of_other_fields_are_told_apart() {
        let key = Ip4Flow { source: 1, ..Ip4Flow::default() };
        let forms = |key| {
            let all = [KeyFields::Both, KeyFields::Address, KeyFields::AddressPair, KeyFields::Ping];
            all.map(|fields| fields.has_form(key))
        };
        assert_eq!(forms(key), [true, true, true, false]);
        assert_eq!(forms(Ip4Flow { destination: 2, ..key }), [true, false, true, false]);
        assert_eq!(forms(Ip4Flow { destination_port: 2, ..key }), [true, false, false, false]);
        assert_eq!(forms(ping(key, 7, true)), [true, false, false, true]);
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut random = Random::new(2);
        let (from, to) = (flow(&mut random), flow(&mut random));
        let mut mapping = Mapping::new(from, to, [0, 1], 0, 6);
        let mut shifts = SequenceShifts::default();
        assert!(shifts.add(false, 10, 4) && shifts.add(true, 20, -4));
        mapping.shifts = Some(Box::new(shifts));
        let bytes = encode(from, to, &mapping, 0);
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err(), "{length}");
        }
        for _ in 0..20_000 {
            let mut changed = bytes.clone();
            let at = random.below(changed.len() as u32) as usize;
            changed[at] = random.next() as u8;
            if let Ok(state) = decode(&changed) {
                assert!(state.left <= MAX_PERIOD);
            }
        }
    }
}
