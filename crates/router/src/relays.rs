//! Chains of elements that the search for notifiers passes in one step: elements that have no signal of their own, and one way on.

use alloc::vec::Vec;

use click_lang::steps::pause_every;
use element::{Class, Direction, Notifies};

use crate::hookup::{Hookup, PortLinks, PortRef};
use crate::step_sizes::ELEMENTS_A_STEP;

/// No chain.
const NONE: usize = usize::MAX;

/// For each element that is in a chain, the last one of it. Each has one port on the way on, which is port 0.
pub(crate) struct Relays {
    /// Upstream, where packets are pulled.
    pulled: Vec<usize>,
    /// Downstream, where packets are pushed.
    pushed: Vec<usize>,
}

impl Relays {
    /// Finds the chains, in steps.
    pub(crate) async fn find(hookup: &Hookup) -> Relays {
        Relays {
            pulled: last_of_chains(hookup, Direction::Empty).await,
            pushed: last_of_chains(hookup, Direction::Full).await,
        }
    }

    /// The last element of the chain that begins at an element.
    pub(crate) fn last(&self, element: usize, direction: Direction) -> Option<usize> {
        let last = match direction {
            Direction::Empty => &self.pulled,
            Direction::Full => &self.pushed,
        };
        last.get(element).copied().filter(|last| *last != NONE)
    }
}

async fn last_of_chains(hookup: &Hookup, direction: Direction) -> Vec<usize> {
    let mut last = alloc::vec![NONE; hookup.classes.len()];
    let mut chain = Vec::new();
    let mut done = 0;
    for start in 0..last.len() {
        let mut at = start;
        let end = loop {
            pause_every(ELEMENTS_A_STEP, done).await;
            done += 1;
            // In a loop, any element is the last one.
            if last[at] != NONE {
                break last[at];
            }
            let Some((next, _)) = next(hookup, at, direction) else {
                break chain.last().copied().unwrap_or(NONE);
            };
            last[at] = at;
            chain.push(at);
            at = next;
        };
        for element in chain.drain(..) {
            last[element] = end;
        }
    }
    last
}

/// Where the only way through an element leads on, if it has no signal.
fn next(hookup: &Hookup, element: usize, direction: Direction) -> Option<PortRef> {
    let info = hookup.classes.get(element).map(|class: &&Class| class.info)?;
    let (side, notifies, pushes) = match direction {
        Direction::Empty => (&hookup.inputs, Notifies::Empty, false),
        Direction::Full => (&hookup.outputs, Notifies::Full, true),
    };
    let [PortLinks { push, peers }] = &side.get(element)?[..] else { return None };
    let is_plain =
        *push == pushes && info.flow == "x/x" && ![notifies, Notifies::EmptyAndFull].contains(&info.notifies);
    peers.first().copied().filter(|_| is_plain)
}
