//! The elements of the configuration before, from which those of a new one take over state.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use click_lang::steps::pause_every;

use crate::state::RouterState;
use crate::step_sizes::ELEMENTS_A_STEP;

/// Which elements have one of the same name in the configuration before. They are found while that one still runs.
pub(crate) struct Predecessors {
    /// The names of the configuration before.
    names: Rc<BTreeMap<String, usize>>,
    /// The numbers of each such element and of its predecessor, in the order in which they are initialised.
    pub(crate) pairs: Vec<(usize, usize)>,
}

impl Predecessors {
    /// Finds the predecessors of the elements of `state` among those with these names, in steps.
    pub(crate) async fn find(state: &RouterState, names: Rc<BTreeMap<String, usize>>) -> Predecessors {
        let mut pairs = Vec::new();
        for (done, &index) in state.order.iter().enumerate() {
            pause_every(ELEMENTS_A_STEP, done).await;
            let before = state.nodes.get(index).and_then(|node| names.get(&node.element.name));
            pairs.extend(before.map(|before| (index, *before)));
        }
        Predecessors { names, pairs }
    }

    /// Whether they are elements of `state`. They are not if another configuration was installed after they were found.
    pub(crate) fn are_in(&self, state: &RouterState) -> bool {
        Rc::ptr_eq(&self.names, &state.by_name)
    }
}
