//! Whether a configuration can run in several shards: each class's declaration, and the flows that meet in an element.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use click_lang::{Diagnostic, Graph};
use element::{Fate, FlowUse, ShardMode};

use crate::diagnostics::{error, named};
use crate::hookup::Hookup;
use crate::options::Options;

/// What to do with a configuration that can't be spread.
const REMEDY: &str = "run it in one shard, or take the element out";

/// Finds the elements that can't run in as many shards as `options` say.
pub(crate) fn check(graph: &Graph, hookup: &Hookup, options: &Options, problems: &mut Vec<Diagnostic>) {
    let count = options.shard.count;
    if count < 2 {
        return;
    }
    let mut refuse = |index: usize, why: &str| {
        let location = graph.elements.get(index).map(|element| element.location.clone());
        let text = format!("‘{}’ can't run in {count} shards: {why}", named(graph, index));
        problems.push(error(location, text).with_hint(Some(REMEDY.into())));
    };
    if options.simulated.is_some() {
        refuse(0, "simulated time runs in one");
    }
    for (index, class) in hookup.classes.iter().enumerate() {
        if class.info.shards.mode == ShardMode::Never {
            refuse(index, "its packets or its state could need those of another shard");
        }
    }
    let is = |index: usize, flows: FlowUse| {
        hookup.classes.get(index).is_some_and(|class| class.info.shards.flows == flows)
    };
    let translates = hookup.classes.iter().any(|class| {
        let sharding = &class.info.shards;
        sharding.mode == ShardMode::Divide && sharding.flows == FlowUse::Keeps
    });
    for index in (0..hookup.classes.len()).filter(|index| translates && is(*index, FlowUse::Fragments)) {
        refuse(
            index,
            "replies to a translator are spread by port, which only the first fragment of a packet has",
        );
    }
    for index in misplaced(hookup) {
        if is(index, FlowUse::Keeps) || is(index, FlowUse::Fragments) {
            refuse(
                index,
                "packets of one flow reach it in several, because an element before it changes their addresses or makes them",
            );
        }
    }
}

/// The elements that packets can reach which are not in the shard of their flow: behind elements that change addresses, and
/// behind generators in a configuration that also receives packets.
fn misplaced(hookup: &Hookup) -> Vec<usize> {
    let info = |index: usize| hookup.classes.get(index).map(|class| class.info);
    let all = 0..hookup.classes.len();
    let receives = all.clone().filter_map(info).any(|info| info.fates.contains(&Fate::Received));
    let mut reached = vec![false; hookup.classes.len()];
    let mut queue: Vec<usize> = all
        .filter(|index| {
            let sharding = info(*index).map(|info| &info.shards);
            sharding.is_some_and(|sharding| {
                sharding.flows == FlowUse::Changes || receives && sharding.mode == ShardMode::First
            })
        })
        .collect();
    let mut found = Vec::new();
    while let Some(index) = queue.pop() {
        for (peer, _) in hookup.outputs.get(index).into_iter().flatten().flat_map(|output| &output.peers) {
            if let Some(reached) = reached.get_mut(*peer).filter(|reached| !**reached) {
                *reached = true;
                found.push(*peer);
                queue.push(*peer);
            }
        }
    }
    sorting::sort(&mut found);
    found
}
