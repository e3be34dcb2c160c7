//! The state of flows that a box hands over, and takes over from another one.

use crate::codec::{DecodeError, Decoder, Encoder};
use crate::limits::{
    MAX_FLOW_GROUPS, MAX_FLOW_STATE, MAX_FLOW_STATES, MAX_GROUP_TUPLES, MAX_PLACE, MAX_STATEFUL_ELEMENTS,
};
use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv6Addr;

/// Addresses and ports of a flow, which are the same for both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateTuple {
    /// The protocol, as in the IP header.
    pub protocol: u8,
    /// Addresses and ports; the identifier of ICMP echo messages at both ends. IPv4 addresses are mapped into IPv6.
    pub ends: [(Ipv6Addr, u16); 2],
}

impl StateTuple {
    /// Whether this stands for all flows between its addresses, whatever their protocol and ports.
    pub fn is_of_addresses(&self) -> bool {
        self.protocol == 0 && self.ends.iter().all(|(_, port)| *port == 0)
    }

    fn encode(self, fields: &mut Encoder) {
        let [(one, one_port), (other, other_port)] = self.ends;
        let ports = u32::from(one_port) << 16 | u32::from(other_port);
        fields.u32(self.protocol.into());
        for address in [one, other].map(Ipv6Addr::to_bits) {
            fields.u64((address >> 64) as u64).u64(address as u64);
        }
        fields.u32(ports);
    }

    fn decode(fields: &mut Decoder) -> Result<Self, DecodeError> {
        let protocol = fields.u32()?;
        let protocol = u8::try_from(protocol).map_err(|_| DecodeError::Value(protocol.into()))?;
        let mut address =
            || Ok(Ipv6Addr::from_bits(u128::from(fields.u64()?) << 64 | u128::from(fields.u64()?)));
        let (one, other) = (address()?, address()?);
        let ports = fields.u32()?;
        Ok(Self { protocol, ends: [(one, (ports >> 16) as u16), (other, ports as u16)] })
    }
}

/// Where a list of flows goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowPosition {
    /// The number of the element.
    pub element: u32,
    /// The position inside it.
    pub inside: u64,
}

impl FlowPosition {
    pub(crate) fn encode(self, fields: &mut Encoder) {
        fields.u32(self.element).u64(self.inside);
    }

    pub(crate) fn decode(fields: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { element: fields.u32()?, inside: fields.u64()? })
    }
}

/// The reply to [`Request::ListFlows`](crate::Request::ListFlows).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowList {
    /// Where the list goes on; `None` at its end.
    pub next: Option<FlowPosition>,
    /// Flows that must move together, by their tuples. States that flows share come first.
    pub groups: Vec<Vec<StateTuple>>,
    /// Elements that keep the state of flows and cannot hand it over.
    pub lost: Vec<String>,
}

/// Encodes groups of flows.
pub fn encode_groups(groups: &[Vec<StateTuple>]) -> Vec<u8> {
    let mut fields = Encoder::default();
    put_groups(&mut fields, groups);
    fields.0
}

/// Decodes groups of flows.
pub fn decode_groups(bytes: &[u8]) -> Result<Vec<Vec<StateTuple>>, DecodeError> {
    let mut fields = Decoder(bytes);
    let groups = take_groups(&mut fields)?;
    fields.end()?;
    Ok(groups)
}

fn put_groups(fields: &mut Encoder, groups: &[Vec<StateTuple>]) {
    fields.u32(groups.len() as u32);
    for group in groups {
        fields.u32(group.len() as u32);
        group.iter().for_each(|tuple| tuple.encode(fields));
    }
}

fn take_groups(fields: &mut Decoder) -> Result<Vec<Vec<StateTuple>>, DecodeError> {
    let mut groups = Vec::new();
    for _ in 0..fields.count(MAX_FLOW_GROUPS)? {
        let count = fields.count(MAX_GROUP_TUPLES)?;
        groups.push((0..count).map(|_| StateTuple::decode(fields)).collect::<Result<_, _>>()?);
    }
    Ok(groups)
}

/// A name that a box wrote, cut to what its host stores.
fn name(fields: &mut Decoder) -> Result<String, DecodeError> {
    let text = fields.text()?;
    Ok(text[..text.floor_char_boundary(MAX_PLACE)].into())
}

impl FlowList {
    /// The reply's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Encoder::default();
        fields.u32(self.next.is_some().into());
        self.next.unwrap_or_default().encode(&mut fields);
        put_groups(&mut fields, &self.groups);
        let lost = self.lost.get(..MAX_STATEFUL_ELEMENTS).unwrap_or(&self.lost);
        fields.u32(lost.len() as u32);
        for name in lost {
            fields.bytes(name.as_bytes());
        }
        fields.0
    }

    /// Decodes a reply.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut fields = Decoder(bytes);
        let goes_on = fields.u32()? != 0;
        let next = Some(FlowPosition::decode(&mut fields)?).filter(|_| goes_on);
        let groups = take_groups(&mut fields)?;
        let count = fields.count(MAX_STATEFUL_ELEMENTS)?;
        let lost = (0..count).map(|_| name(&mut fields)).collect::<Result<_, _>>()?;
        fields.end()?;
        Ok(Self { next, groups, lost })
    }
}

/// The state of one flow in one element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRecord {
    /// The element.
    pub element: String,
    /// The name of the state's format.
    pub format: String,
    /// The version of the format.
    pub version: u32,
    /// The flow.
    pub tuples: [StateTuple; 2],
    /// The state.
    pub payload: Vec<u8>,
}

/// Encodes the states of flows.
pub fn encode_states(states: &[StateRecord]) -> Vec<u8> {
    let mut fields = Encoder::default();
    put_states(&mut fields, states);
    fields.0
}

/// Decodes the states of flows.
pub fn decode_states(bytes: &[u8]) -> Result<Vec<StateRecord>, DecodeError> {
    let mut fields = Decoder(bytes);
    let states = take_states(&mut fields)?;
    fields.end()?;
    Ok(states)
}

fn put_states(fields: &mut Encoder, states: &[StateRecord]) {
    fields.u32(states.len() as u32);
    for StateRecord { element, format, version, tuples, payload } in states {
        fields.bytes(element.as_bytes()).bytes(format.as_bytes()).u32(*version);
        tuples.iter().for_each(|tuple| tuple.encode(fields));
        fields.bytes(payload);
    }
}

fn take_states(fields: &mut Decoder) -> Result<Vec<StateRecord>, DecodeError> {
    let mut states = Vec::new();
    for _ in 0..fields.count(MAX_FLOW_STATES)? {
        let (element, format, version) = (name(fields)?, name(fields)?, fields.u32()?);
        let tuples = [StateTuple::decode(fields)?, StateTuple::decode(fields)?];
        let payload = fields.bytes()?;
        if payload.len() > MAX_FLOW_STATE {
            return Err(DecodeError::Count(payload.len()));
        }
        states.push(StateRecord { element, format, version, tuples, payload: payload.into() });
    }
    Ok(states)
}

/// The reply to [`Request::ExportFlows`](crate::Request::ExportFlows).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowExport {
    /// Groups whose states are here, from the first one on: the others did not fit. `None` if packets wait in the box that may
    /// belong to these flows: nothing was exported then.
    pub groups: Option<u32>,
    /// Their states, which the box has no longer.
    pub states: Vec<StateRecord>,
}

impl FlowExport {
    /// The reply's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Encoder::default();
        fields.u32(self.groups.is_some().into()).u32(self.groups.unwrap_or(0));
        put_states(&mut fields, &self.states);
        fields.0
    }

    /// Decodes a reply.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut fields = Decoder(bytes);
        let is_done = fields.u32()? != 0;
        let groups = Some(fields.u32()?).filter(|_| is_done);
        let states = take_states(&mut fields)?;
        fields.end()?;
        Ok(Self { groups, states })
    }
}

/// The state of a flow that a box does not take. A box wrote it: the reason must be escaped before display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedState {
    /// Its number in the request, from 0.
    pub number: u32,
    /// Why it was refused.
    pub reason: String,
}

impl RefusedState {
    /// Encodes the reply to [`Request::ImportFlows`](crate::Request::ImportFlows).
    pub fn encode(refused: &[Self]) -> Vec<u8> {
        let mut fields = Encoder::default();
        fields.u32(refused.len() as u32);
        for Self { number, reason } in refused {
            fields.u32(*number).bytes(reason.as_bytes());
        }
        fields.0
    }

    /// Decodes the reply to [`Request::ImportFlows`](crate::Request::ImportFlows).
    pub fn decode(bytes: &[u8]) -> Result<Vec<Self>, DecodeError> {
        let mut fields = Decoder(bytes);
        let count = fields.count(MAX_FLOW_STATES)?;
        let refused = (0..count).map(|_| Ok(Self { number: fields.u32()?, reason: name(&mut fields)? }));
        let refused = refused.collect::<Result<_, _>>()?;
        fields.end()?;
        Ok(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(port: u16) -> StateTuple {
        let inside = core::net::Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped();
        StateTuple { protocol: 6, ends: [(inside, port), (Ipv6Addr::LOCALHOST, 80)] }
    }

    fn state(port: u16) -> StateRecord {
        StateRecord {
            element: "nat".into(),
            format: "rewriter".into(),
            version: 1,
            tuples: [tuple(port), tuple(port + 1)],
            payload: (0..port as u8).collect(),
        }
    }

    #[test]
    fn messages_survive_the_trip() {
        let groups = alloc::vec![alloc::vec![tuple(1), tuple(2)], Vec::new(), alloc::vec![tuple(3)]];
        assert_eq!(decode_groups(&encode_groups(&groups)).as_ref(), Ok(&groups));
        for next in [None, Some(FlowPosition { element: 3, inside: 1 << 40 })] {
            let list = FlowList { next, groups: groups.clone(), lost: alloc::vec!["a".into()] };
            assert_eq!(FlowList::decode(&list.encode()), Ok(list));
        }
        let states = alloc::vec![state(1), state(40)];
        assert_eq!(decode_states(&encode_states(&states)).as_ref(), Ok(&states));
        for groups in [None, Some(2)] {
            let export = FlowExport { groups, states: states.clone() };
            assert_eq!(FlowExport::decode(&export.encode()), Ok(export));
        }
        let refused = [RefusedState { number: 7, reason: "no room".into() }];
        assert_eq!(RefusedState::decode(&RefusedState::encode(&refused)).as_deref(), Ok(&refused[..]));
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let list = FlowList { next: None, groups: alloc::vec![alloc::vec![tuple(1)]], lost: Vec::new() };
        let export = FlowExport { groups: Some(1), states: alloc::vec![state(9)] };
        for length in 0..list.encode().len() {
            assert!(FlowList::decode(&list.encode()[..length]).is_err());
        }
        for length in 0..export.encode().len() {
            assert!(FlowExport::decode(&export.encode()[..length]).is_err());
        }
        for bytes in [list.encode(), export.encode()] {
            for at in 0..bytes.len() {
                for value in [0, 1, 127, 255] {
                    let mut changed = bytes.clone();
                    changed[at] = value;
                    let _ = (FlowList::decode(&changed), FlowExport::decode(&changed));
                    let _ = (decode_groups(&changed), decode_states(&changed));
                    let _ = RefusedState::decode(&changed);
                }
            }
        }
        let long = StateRecord { payload: alloc::vec![0; MAX_FLOW_STATE + 1], ..state(1) };
        assert_eq!(decode_states(&encode_states(&[long])), Err(DecodeError::Count(MAX_FLOW_STATE + 1)));
        assert!(matches!(decode_groups(&[255; 4]), Err(DecodeError::Count(_))));
    }
}
