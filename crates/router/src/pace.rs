//! Paced turns: a source and the tasks that take its packets from queues take several turns at once.
//!
//! A task that is alone takes many turns at once, and so fills batches. A source whose packets wait in a queue is not alone: a
//! second task takes them from there. In Click the two alternate, one packet each. Where neither can tell the difference, the
//! source takes several turns here, and then the other task as many. The queue acts as if it had never held more than the packet
//! of one turn.
//!
//! That is so under these conditions, of which the first four are checked when the router is built, the others each time:
//! - from the source, elements push packets on that neither make nor keep any, up to queues;
//! - each queue is emptied by one task, and by no other element;
//! - no order-sensitive element is reached by packets of two of these tasks;
//! - no element on the way reads the state of others;
//! - no other task has ever run, and all have the same number of tickets;
//! - all queues are empty, and all tasks that empty them take what they find.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use click_lang::steps::{pause, pause_every};
use element::Fate;

use crate::hookup::Hookup;
use crate::order;
use crate::step_sizes::ELEMENTS_A_STEP;

/// Task turns between two checks of timers and descriptors.
pub(crate) const TURNS_PER_ROUND: usize = 128;
/// The maximum number of queues behind a source.
const MAX_QUEUES: usize = 8;
/// The maximum number of elements that the search for queues visits. Stops: many sources before a large graph.
const MAX_VISITS: usize = 1 << 16;

/// A source, and what empties the queues that its packets reach.
pub(crate) struct Pace {
    pub(crate) source: usize,
    pub(crate) emptied: Vec<Emptied>,
}

/// A queue, and the task that empties it.
pub(crate) struct Emptied {
    pub(crate) queue: usize,
    pub(crate) task: usize,
}

/// Finds the sources that may take turns at once with others, in steps.
pub(crate) async fn find(hookup: &Hookup) -> Vec<Pace> {
    let mut visits = MAX_VISITS;
    let inputs = |element: usize| hookup.inputs.get(element).map_or(0, Vec::len);
    let sources = (0..hookup.classes.len()).filter(|element| {
        inputs(*element) == 0 && hookup.classes.get(*element).is_some_and(|class| class.info.task)
    });
    let mut found = Vec::new();
    for source in sources {
        found.extend(pace_of(hookup, source, &mut visits).await);
    }
    found
}

/// The queues that the packets of a source reach; `None` if it can't take turns at once.
async fn pace_of(hookup: &Hookup, source: usize, visits: &mut usize) -> Option<Pace> {
    let reached = order::reached(hookup, source, visits).await?;
    let mut emptied = Vec::new();
    for (done, &element) in reached.iter().enumerate() {
        pause_every(ELEMENTS_A_STEP, done).await;
        let info = hookup.classes.get(element)?.info;
        let inputs = hookup.inputs.get(element)?;
        let keeps = [Fate::Received, Fate::Made, Fate::Copied, Fate::Waiting];
        if info.storage {
            let pulled = hookup.outputs.get(element)?.iter().filter(|output| !output.push);
            let pullers: Vec<_> = pulled.flat_map(|output| &output.peers).collect();
            let &[&(task, _)] = pullers.as_slice() else { return None };
            let is_task = hookup.classes.get(task)?.info.task && hookup.inputs.get(task)?.len() == 1;
            if !is_task || emptied.len() == MAX_QUEUES {
                return None;
            }
            emptied.push(Emptied { queue: element, task });
        } else if info.task
            || inputs.iter().any(|input| !input.push)
            || keeps.iter().any(|fate| info.fates.contains(fate))
        {
            return None;
        }
        if !info.reads.is_empty() {
            return None;
        }
    }
    if emptied.is_empty() {
        return None;
    }
    let mut touched = sensitive(hookup, reached);
    for Emptied { task, .. } in &emptied {
        pause().await;
        let mut more = sensitive(hookup, order::reached(hookup, *task, visits).await?);
        if !touched.is_disjoint(&more) {
            return None;
        }
        touched.append(&mut more);
    }
    Some(Pace { source, emptied })
}

/// Those elements whose state or output depends on the order of packets, and those that others among them read.
fn sensitive(hookup: &Hookup, reached: BTreeSet<usize>) -> BTreeSet<usize> {
    let class = |element: usize| hookup.classes.get(element).map(|class| class.info);
    let infos = reached.iter().filter_map(|element| class(*element));
    let read: BTreeSet<_> = sorting::collect(infos.flat_map(|info| info.reads.iter().copied()));
    let others = (0..hookup.classes.len())
        .filter(|element| !read.is_empty() && class(*element).is_some_and(|info| read.contains(info.name)));
    let mut found: BTreeSet<_> = sorting::collect(others);
    found.extend(
        reached.into_iter().filter(|element| class(*element).is_none_or(|info| !info.order_insensitive)),
    );
    found
}
