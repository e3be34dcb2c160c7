//! Numbers in place of the names of services and chains.

use super::records::SwitchRecord;
use crate::error::{OperationError, PortError};
use crate::limits::MAX_CHAINS;
use model::{ChainName, FlowOutput};
use std::collections::{BTreeMap, BTreeSet};

/// The lowest number that is not taken.
fn lowest(taken: &BTreeSet<u16>, count: usize) -> Option<u16> {
    (0..u16::try_from(count).unwrap_or(u16::MAX)).find(|number| !taken.contains(number))
}

/// Gives each name a number: names that are known keep theirs, and those that are not wanted lose them.
pub(super) fn number<Name: Ord + Clone>(
    numbers: &mut BTreeMap<Name, u16>,
    wanted: &BTreeSet<Name>,
    count: usize,
) -> Result<(), OperationError> {
    numbers.retain(|name, _| wanted.contains(name));
    let mut taken: BTreeSet<u16> = numbers.values().copied().collect();
    for name in wanted {
        if !numbers.contains_key(name) {
            let number = lowest(&taken, count).ok_or(PortError::Malformed("there are too many names"))?;
            taken.insert(number);
            numbers.insert(name.clone(), number);
        }
    }
    Ok(())
}

/// The chains that flows name.
pub(super) fn chains_of_flows(record: &SwitchRecord) -> impl Iterator<Item = ChainName> {
    record.flows.values().filter_map(|flow| match &flow.output {
        FlowOutput::Chain(name) => Some(name.clone()),
        _ => None,
    })
}

/// The number of a chain that a flow names.
pub(super) fn chain_number(record: &mut SwitchRecord, name: &ChainName) -> Result<u16, OperationError> {
    // The flows are not searched for each new one: with thousands of them, packets would wait.
    if let Some(number) = record.services.chains.get(name) {
        return Ok(*number);
    }
    let mut wanted: BTreeSet<ChainName> = chains_of_flows(record).collect();
    wanted.extend(record.services.definition.chains.iter().map(|chain| chain.name.clone()));
    wanted.insert(name.clone());
    number(&mut record.services.chains, &wanted, MAX_CHAINS)?;
    record
        .services
        .chains
        .get(name)
        .copied()
        .ok_or_else(|| PortError::Malformed("there are too many chains").into())
}
