//! The end of elements that have so much memory that packets should not wait until it is free: it is freed in steps.

use alloc::boxed::Box;
use alloc::vec::Vec;

use element::DynElement;

use crate::state::RouterState;

impl RouterState {
    /// Takes out the elements that are freed in steps, and begins with that. No packet reaches them any more.
    pub(crate) fn take_long_work(&mut self) -> Vec<Box<dyn DynElement>> {
        let take = |node: &mut crate::node::Node| {
            let object = node.object.get_mut();
            let is_long = object.as_mut()?.long_work().is_some_and(|work| work.begin_removal());
            object.take_if(|_| is_long)
        };
        self.nodes.iter_mut().filter_map(take).collect()
    }
}

/// Performs a step of the removal of elements. Returns whether all are gone.
pub(crate) fn continue_removal(elements: &mut Vec<Box<dyn DynElement>>) -> bool {
    if elements.last_mut().is_some_and(|last| last.long_work().is_none_or(|work| work.continue_removal())) {
        elements.pop();
    }
    elements.is_empty()
}
