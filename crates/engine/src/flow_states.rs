//! Hands over the state of flows, and takes it over from another box.

use crate::engine::Engine;
use alloc::string::ToString;
use alloc::vec::Vec;
use boundary::limits::{FLOW_EXPORT_BYTES, MAX_FLOW_GROUPS};
use boundary::{
    DecodeError, FlowExport, FlowList, FlowPosition, RefusedState, StateRecord, StateTuple, decode_groups,
    decode_states,
};
use element::{FlowState, FlowTuple};
use router::Router;

fn from_message(tuple: StateTuple) -> FlowTuple {
    FlowTuple { protocol: tuple.protocol, ends: tuple.ends }
}

fn for_message(tuple: FlowTuple) -> StateTuple {
    StateTuple { protocol: tuple.protocol, ends: tuple.ends }
}

/// The router of the main configuration.
fn router(engine: &Engine) -> Option<&Router> {
    engine.configurations.iter().find(|it| it.name.is_empty()).map(|it| &it.router)
}

/// Answers [`boundary::Request::ListFlows`].
#[cold]
pub(crate) fn list(
    engine: &Engine,
    position: FlowPosition,
    most: u32,
    range: Option<(u32, u16, u16)>,
) -> Vec<u8> {
    let Some(router) = router(engine) else { return FlowList::default().encode() };
    let is_inside = |(address, port): (u32, u16)| {
        range.is_some_and(|(at, first, last)| address == at && (first..=last).contains(&port))
    };
    let is_wanted = |group: &[FlowTuple]| {
        range.is_none() || group.iter().filter_map(FlowTuple::ipv4_ends).flatten().any(is_inside)
    };
    let position = (position.element, position.inside);
    let listed = router.list_flows(position, MAX_FLOW_GROUPS.min(most as usize), is_wanted);
    let groups = listed.groups.into_iter().map(|group| group.into_iter().map(for_message).collect());
    let list = FlowList {
        next: listed.next.map(|(element, inside)| FlowPosition { element, inside }),
        groups: groups.collect(),
        lost: router.elements_that_lose_flows(),
    };
    list.encode()
}

/// Answers [`boundary::Request::ExportFlows`].
#[cold]
pub(crate) fn export(engine: &Engine, age: u64, groups: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let groups = decode_groups(groups)?;
    let mut export = FlowExport { groups: Some(groups.len() as u32), states: Vec::new() };
    let Some(router) = router(engine) else { return Ok(export.encode()) };
    let age = i64::try_from(age).unwrap_or(i64::MAX);
    if router.longest_wait().is_some_and(|wait| wait.nanos() >= age) {
        return Ok(FlowExport::default().encode());
    }
    let mut bytes = 0;
    for (done, group) in (1..).zip(groups) {
        let group: Vec<FlowTuple> = group.into_iter().map(from_message).collect();
        for FlowState { element, format, version, tuples, payload } in router.export_flow(&group) {
            bytes += payload.len() + element.len() + format.len() + 100;
            let tuples = tuples.map(for_message);
            export.states.push(StateRecord { element, format, version, tuples, payload });
        }
        if bytes >= FLOW_EXPORT_BYTES {
            export.groups = Some(done);
            break;
        }
    }
    Ok(export.encode())
}

/// Answers [`boundary::Request::ImportFlows`].
#[cold]
pub(crate) fn import(engine: &Engine, states: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut refused = Vec::new();
    for (number, state) in (0..).zip(decode_states(states)?) {
        let StateRecord { element, format, version, tuples, payload } = state;
        let state = FlowState { element, format, version, tuples: tuples.map(from_message), payload };
        let imported = router(engine).map(|router| router.import_flow(&state));
        let problem = match imported {
            Some(Ok(())) => continue,
            Some(Err(error)) => error.to_string(),
            None => "the box has no main configuration".to_string(),
        };
        refused.push(RefusedState { number, reason: problem });
    }
    Ok(RefusedState::encode(&refused))
}
