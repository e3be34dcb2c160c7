//! The calls that elements get once, when their configuration begins and when it ends.
//!
//! Packets wait while a configuration replaces another, and most classes have no method of their own for these calls. So the first call
//! for a class finds out, and the others are left out.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cell::Cell;

use click_lang::steps::pause_every;
use element::{Class, ClassInfo, Fate};

use crate::step_sizes::ELEMENTS_A_STEP;

/// A call that an element gets once.
#[derive(Clone, Copy)]
pub(crate) enum Hook {
    Initialize,
    Inherit,
    CleanUp,
}

/// The classes of all elements, and which calls these need.
pub(crate) struct Hooks {
    /// The number of the class of each element.
    numbers: Vec<u16>,
    classes: Vec<ClassHooks>,
    /// The elements that may have packets, also those of which they make copies.
    pub(crate) holders: Vec<usize>,
}

struct ClassHooks {
    info: &'static ClassInfo,
    /// Whether its elements may have packets.
    holds: bool,
    /// Whether the class is known to have no method of its own, for each [`Hook`].
    needless: [Cell<bool>; 3],
}

impl Hooks {
    /// The hooks of elements of these classes, in steps.
    pub(crate) async fn of(elements: &[&'static Class]) -> Hooks {
        let mut known = BTreeMap::new();
        let numbers = Vec::with_capacity(elements.len());
        let mut hooks = Hooks { numbers, classes: Vec::new(), holders: Vec::new() };
        for (done, class) in elements.iter().enumerate() {
            pause_every(ELEMENTS_A_STEP, done).await;
            let number = *known.entry(class.info.name).or_insert_with(|| {
                let holds = class.info.fates.iter().any(|fate| matches!(fate, Fate::Waiting | Fate::Made));
                hooks.classes.push(ClassHooks { info: class.info, holds, needless: Default::default() });
                hooks.classes.len() - 1
            });
            hooks.numbers.push(number as u16);
            if hooks.may_have_packets(done) {
                hooks.holders.push(done);
            }
        }
        hooks
    }

    fn class(&self, element: usize) -> Option<&ClassHooks> {
        self.classes.get(usize::from(*self.numbers.get(element)?))
    }

    /// The name of the class of an element.
    pub(crate) fn class_name(&self, element: usize) -> Option<&'static str> {
        Some(self.class(element)?.info.name)
    }

    /// Whether an element may need a call.
    pub(crate) fn needs(&self, element: usize, hook: Hook) -> bool {
        self.class(element).is_some_and(|class| !class.needless[hook as usize].get())
    }

    /// Notes that no element of this one's class needs a call.
    pub(crate) fn note_needless(&self, element: usize, hook: Hook) {
        if let Some(class) = self.class(element) {
            class.needless[hook as usize].set(true);
        }
    }

    /// Whether an element may have packets, also those of which it makes copies.
    pub(crate) fn may_have_packets(&self, element: usize) -> bool {
        self.class(element).is_some_and(|class| class.holds)
    }
}
