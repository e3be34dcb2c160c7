//! The elements of the configuration before, from which those of a new one take over state.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use click_lang::steps::pause_every;

use crate::hooks::Hooks;
use crate::node::Node;
use crate::step_sizes::ELEMENTS_A_STEP;

/// The elements of a configuration that is going to be replaced.
#[derive(Clone)]
pub(crate) struct ElementsBefore {
    /// The number of each by its name.
    pub(crate) names: Rc<BTreeMap<String, usize>>,
    pub(crate) hooks: Rc<Hooks>,
}

/// Which elements have one of the same name in the configuration before. They are found while that one still runs.
pub(crate) struct Predecessors {
    pub(crate) before: ElementsBefore,
    /// In the order in which the elements are initialised.
    pub(crate) pairs: Vec<Predecessor>,
}

/// An element and the one of the same name before.
pub(crate) struct Predecessor {
    pub(crate) element: usize,
    pub(crate) before: usize,
    /// Whether both have the same class.
    pub(crate) is_same_class: bool,
    /// Whether the one before may have packets.
    pub(crate) has_packets: bool,
}

impl Predecessors {
    /// Finds the predecessors of new elements, which are initialised in this order, among those before, in steps.
    pub(crate) async fn find(
        nodes: &[Node],
        hooks: &Hooks,
        order: &[usize],
        before: ElementsBefore,
    ) -> Predecessors {
        let mut pairs = Vec::new();
        for (done, &element) in order.iter().enumerate() {
            pause_every(ELEMENTS_A_STEP, done).await;
            let old = nodes.get(element).and_then(|node| before.names.get(&node.element.name));
            pairs.extend(old.map(|&old| Predecessor {
                element,
                before: old,
                is_same_class: hooks.class_name(element) == before.hooks.class_name(old),
                has_packets: before.hooks.may_have_packets(old),
            }));
        }
        Predecessors { before, pairs }
    }

    /// Whether they were found among these elements. They were not if another configuration was installed since.
    pub(crate) fn are_in(&self, names: &Rc<BTreeMap<String, usize>>) -> bool {
        Rc::ptr_eq(&self.before.names, names)
    }
}
