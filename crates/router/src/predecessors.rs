//! The elements of the configuration before, from which those of a new one take over state.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use click_lang::steps::pause_every;

use crate::node::Node;
use crate::step_sizes::ELEMENTS_A_STEP;

/// Which elements have one of the same name in the configuration before. They are found while that one still runs.
pub(crate) struct Predecessors {
    /// The names of the configuration before.
    pub(crate) names: Rc<BTreeMap<String, usize>>,
    /// The numbers of each such element and of its predecessor, in the order in which they are initialised.
    pub(crate) pairs: Vec<(usize, usize)>,
}

impl Predecessors {
    /// Finds the predecessors of new elements, which are initialised in this order, among those with these names, in steps.
    pub(crate) async fn find(
        nodes: &[Node],
        order: &[usize],
        names: Rc<BTreeMap<String, usize>>,
    ) -> Predecessors {
        let mut pairs = Vec::new();
        for (done, &index) in order.iter().enumerate() {
            pause_every(ELEMENTS_A_STEP, done).await;
            let before = nodes.get(index).and_then(|node| names.get(&node.element.name));
            pairs.extend(before.map(|before| (index, *before)));
        }
        Predecessors { names, pairs }
    }

    /// Whether they were found among these names. They were not if another configuration was installed since.
    pub(crate) fn are_in(&self, names: &Rc<BTreeMap<String, usize>>) -> bool {
        Rc::ptr_eq(&self.names, names)
    }
}
